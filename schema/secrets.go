package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/environment"
)

// secretName matches names of variables and options whose value is a secret: TOKEN, but not TOKENIZER or MAX_TOKENS.
var secretName = lazy.Regexp(`(?i)(^|[_.-])(pass(word|wd|phrase)?|secret|token|credentials?|` +
	`(api|access|secret|private|account|auth|encryption|license|signing)[_.-]?key)$|` +
	`(?i)(^|[_.-])(password|passwd|secret)[_.-]|(?i)(^|[a-z])(apikey|accesskey|secretkey)$`)

// modelToken matches names of tokens that a language model reads, which are no secrets.
var modelToken = lazy.Regexp(`(?i)(^|[_.-])(bos|cls|eos|eot|end|image|mask|max|new|next|num|pad|per|` +
	`prefix|sep|special|start|stop|suffix|unk)[_.-]?token$`)

// secretValue matches a secret with a known prefix, a private key, and an address with a password in it, as one word
// of a text.
var secretValue = lazy.Regexp(`(?:^|[\s"'=:,;|&({\[])(?:hf_[A-Za-z0-9]{20,}|gh[opsu]_[A-Za-z0-9]{20,}|` +
	`github_pat_\w{20,}|glpat-[\w-]{20,}|A[KS]IA[0-9A-Z]{16}|xox[abp]-[\w-]{10,}|sk-[\w-]{20,})(?:$|[\s"',;|&)}\]])|` +
	`(?:^|[\s"'=])[a-z][a-z0-9+.-]*://[^/@:\s$]*:[^/@\s$]+@|-----BEGIN [A-Z ]*PRIVATE KEY-----`)

// locatesSecret matches names of variables that hold the place of a secret.
var locatesSecret = lazy.Regexp(`(?i)(file|path|dir|name|url|uri|arn|id)$`)

// harmlessValue matches switches, numbers and files.
var harmlessValue = lazy.Regexp(`^(?i:true|false|yes|no|on|off|none|null|[0-9]|/.*)$`)

// standIn matches words that stand for a value: of the shell, of Flux's substitution and of copied examples.
var standIn = lazy.Regexp("^[\"']?(?:[$`<]|\\{\\{)|" + `^(?i:PLACEHOLDER|CHANGE[_-]?ME|REPLACE[_-]?ME|` +
	`YOUR[_-].+|__[A-Z][A-Z0-9_]*__|x{3,}|\*+|\.\.\.)$`)

// The beginnings of what secretValue matches, and parts of what secretName matches in lower case: nearly no text has
// any of them, and to look for them is faster than the expressions.
var (
	secretStarts = []string{"hf_", "gh", "glpat-", "AKIA", "ASIA", "xox", "sk-", "://", "-----BEGIN"}
	secretWords  = []string{"pass", "secret", "token", "credential", "key"}
)

func holdsOne(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// isSecretValue reports whether a text has the form of a secret, whatever it is called.
func isSecretValue(text string) bool {
	return holdsOne(text, secretStarts) && secretValue().MatchString(text)
}

// isSecretName reports whether a variable or an option of that name holds a secret.
func isSecretName(name string) bool {
	return holdsOne(strings.ToLower(name), secretWords) && secretName().MatchString(name) &&
		!locatesSecret().MatchString(name) && !modelToken().MatchString(name)
}

// IsSecret reports whether the value of a variable or an option is a secret in plain text.
func IsSecret(name, value string) bool {
	if value == "" || standIn().MatchString(value) {
		return false
	}
	return isSecretName(name) && !harmlessValue().MatchString(value) || isSecretValue(value)
}

// assignment matches a variable or an option with its value, in what a shell reads.
var assignment = lazy.Regexp(`(?:^|[\s;&|("'])-{0,2}([A-Za-z_][\w.-]*)(?:=|[ \t]+)` +
	`("[^"]*"|'[^']*'|[^\s;&|)"']+)`)

// secretIn returns the name of the first variable or option in a text whose value is a secret. The name is empty if
// only the value shows it.
func secretIn(text string) (name string, found bool) {
	rest := text
	if !holdsOne(strings.ToLower(text), secretWords) {
		return "", isSecretValue(text)
	}
	for {
		m := assignment().FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		name, value := rest[m[2]:m[3]], strings.Trim(rest[m[4]:m[5]], `"'`)
		option := m[2] > 1 && rest[m[2]-1] == '-' && rest[m[2]-2] == '-'
		if joined := rest[m[3]] == '='; (joined || option) && !strings.HasPrefix(value, "-") && IsSecret(name, value) {
			return name, true
		}
		rest = rest[m[3]:] // the value may be the next name
	}
	return "", isSecretValue(text)
}

// What to do about a secret, by where it is written.
const (
	secretInEnv   = "put it into a Secret, and set secret: {name, key} instead of value"
	secretInPatch = "put it into a Secret, and set valueFrom.secretKeyRef instead of value"
	secretInText  = "put it into a Secret, and read it from a variable of env"
)

// secrets collects the values of a tree that are secrets in plain text. A mapping with a name and a value is a
// variable; in the words of a program, options and variables of a shell are looked for; any other text is judged by
// its form, and by its key if its mapping takes any key.
type secrets struct{ notes []string }

// report adds a note that does not contain the value.
func (s *secrets) report(name string, at *structural.Place, remedy string) {
	if name == "" {
		name = "the text"
	}
	s.notes = append(s.notes, fmt.Sprintf("%s: %s holds a secret that everyone who can read the manifest or the pod "+
		"sees: %s", at, name, remedy))
}

// anyKey are the fields whose mappings take any key.
var anyKey = []string{"annotations", "conf", "env", "labels"}

// look visits a value whose nearest field is called key.
func (s *secrets) look(n *structural.Node, at *structural.Place, key string) {
	name, value := n.Field("name"), n.Field("value")
	variable := name != nil && value != nil && name.Kind == yamldoc.String && value.Kind == yamldoc.String
	if variable && IsSecret(name.Text, value.Text) {
		remedy := secretInEnv
		if strings.Contains(at.String(), "podTemplate") {
			remedy = secretInPatch
		}
		s.report(name.Text, at.Key("value"), remedy)
	}
	for _, f := range n.Fields {
		switch {
		case variable && f.Value == value:
		case f.Value.Kind != yamldoc.String:
			s.look(f.Value, at.Key(f.Key), f.Key)
		case isSecretValue(f.Value.Text), slices.Contains(anyKey, key) && IsSecret(path.Base(f.Key), f.Value.Text):
			s.report(f.Key, at.Key(f.Key), secretInText)
		}
	}
	for i, item := range n.Items {
		if item.Kind != yamldoc.String {
			s.look(item, at.At(i), key)
		} else if name, found := secretWord(n.Items, i); found {
			s.report(name, at.At(i), secretInText)
		}
	}
}

// secretWord finds a secret in a word of a list, which may be the value of the option before it.
func secretWord(words []*structural.Node, i int) (name string, found bool) {
	text := words[i].Text
	if name, found = secretIn(text); found || i == 0 || strings.HasPrefix(text, "-") {
		return name, found
	}
	option, isOption := strings.CutPrefix(words[i-1].Text, "--")
	return option, isOption && !strings.Contains(option, "=") && IsSecret(option, text)
}

// secretNotes reports secrets of a job, and those that an Environment adds to it.
func secretNotes(job *structural.Node, env *environment.Environment) []string {
	var found secrets
	found.look(job, nil, "")
	if env != nil {
		spec := env.Root.Field("spec")
		for _, field := range []string{"env", "machines"} { // the others are merged into the job
			if n := spec.Field(field); n != nil {
				var at *structural.Place
				found.look(n, at.Key("Environment spec").Key(field), field)
			}
		}
	}
	return found.notes
}
