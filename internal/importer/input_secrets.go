package importer

import (
	"regexp"
	"strings"
)

// secretName matches names of variables whose value is a secret: TOKEN, but not TOKENIZER or MAX_TOKENS.
var secretName = regexp.MustCompile(`(?i)(^|[_.-])(pass(word|wd|phrase)?|secret|token|credentials?|` +
	`(api|access|secret|private|account|auth|encryption|license|signing)[_.-]?key)$|` +
	`(?i)(^|[_.-])(password|passwd|secret)[_.-]|(?i)(^|[a-z])(apikey|accesskey|secretkey)$`)

// secretValue matches secrets with a known prefix, and addresses with a password in them.
var secretValue = regexp.MustCompile(`^(hf_[A-Za-z0-9]{20,}|gh[opsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|` +
	`glpat-[\w-]{20,}|` +
	`A[KS]IA[0-9A-Z]{16}|xox[abp]-[\w-]{10,}|sk-[\w-]{20,})$|` +
	`^[a-z][a-z0-9+.-]*://[^/@:\s]*:[^/@\s]+@`)

// locatesSecret are names of variables that say where a secret is, and are none.
var locatesSecret = regexp.MustCompile(`(?i)(file|path|dir|name|url|uri|arn|id)$`)

// isSecret says whether the value of a variable is a secret in plain text.
func isSecret(name, value string) bool {
	if value == "" || placeholder(value) || strings.HasPrefix(value, "$(") {
		return false
	}
	return secretName.MatchString(name) && !locatesSecret.MatchString(name) && !harmlessValue.MatchString(value) ||
		secretValue.MatchString(value)
}

// harmlessValue are values that are switches, numbers or files.
var harmlessValue = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|none|null|[0-9]|/.*)$`)

// redacted is printed in place of a secret.
const redacted = "(not shown)"

// redactSecrets is a value without the secrets among its variables.
func redactSecrets(value any) any {
	switch x := value.(type) {
	case tree:
		out := make(tree, len(x))
		for key, child := range x {
			out[key] = redactSecrets(child)
		}
		name, _ := x["name"].(string)
		if text, ok := x["value"].(string); ok && isSecret(name, text) {
			out["value"] = redacted
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, child := range x {
			out[i] = redactSecrets(child)
		}
		return out
	}
	return value
}

// secret says whether a view is the value of a variable with a secret.
func (v view) secret() bool {
	n := len(v.path)
	if n < 3 || v.path[n-1] != "value" || v.path[n-3] != "env" {
		return false
	}
	return isSecret(v.object.view().walk(v.path[:n-1]).at("name").text(), v.text())
}

// secrets warns of variables whose value is a secret, by their names.
func (s *stream) secrets(v view) {
	switch x := v.value.(type) {
	case tree:
		for _, key := range sortedKeys(x) {
			s.secrets(v.at(key))
		}
	case []any:
		for _, item := range v.items() {
			name := item.at("name").text()
			if len(v.path) > 0 && v.path[len(v.path)-1] == "env" && isSecret(name, item.at("value").text()) {
				n := item.at("value").note(Warning,
					"%s holds a secret that everyone who reads the manifest, or the pod, can see: put it into a "+
						"Secret, and name that in spec.env", name)
				n.Value = redacted
				s.notes = append(s.notes, n)
				continue
			}
			s.secrets(item)
		}
	}
}
