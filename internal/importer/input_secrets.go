package importer

import "github.com/tegen-dev/tegen/schema"

// isSecret says whether the value of a variable is a secret in plain text.
func isSecret(name, value string) bool {
	return !placeholder(value) && schema.IsSecret(name, value)
}

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
