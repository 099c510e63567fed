package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/generators"
)

func TestTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain: é, 😀\n\tnext\n":             "plain: é, 😀\n\tnext\n",
		"\x1b]0;title\x07 and \x1b[2J":      `\x1b]0;title\a and \x1b[2J`,
		"over\rwritten\x7f":                 `over\rwritten\x7f`,
		"\u009b2J and \x9b2J":               `\u009b2J and \x9b2J`,
		"turned \u202e round\u200b":         `turned \u202e round\u200b`,
		"lines\u2028of their own\ufeff":     `lines\u2028of their own\ufeff`,
		"a\n::error::b\n \t::set-env\na::b": "a\n\\x3a:error::b\n \t\\x3a:set-env\na::b",
		"a character for none: \ufffd":      "a character for none: \ufffd",
	} {
		var out bytes.Buffer
		if n, err := (terminal{w: &out}).Write([]byte(in)); n != len(in) || err != nil || out.String() != want {
			t.Errorf("%q became %q (%d, %v), want %q", in, out.String(), n, err, want)
		}
	}
}

// TestNamesOfFiles: a file's name neither controls the terminal nor looks like another message.
func TestNamesOfFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a\x1b[2J\nb.yaml:1:1: spec: forged.yaml")
	if err := os.WriteFile(name, []byte("apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\n"+
		"metadata: {name: \"x\\e[2J\"}\nspec: {}\n"), 0o644); err != nil {
		t.Skip("no such names here")
	}
	for _, args := range [][]string{
		{"vet", name},
		{"vet", name + "gone"},
		{"check", name + "gone"},
		{"import", name},
		{"explain", "spec.\x1b[2J"},
		{"plan", name},
	} {
		var out, msg bytes.Buffer
		run(generators.Set{}, append([]string{"tegen"}, args...), strings.NewReader(""), &out, &msg)
		if strings.ContainsRune(out.String()+msg.String(), 0x1b) || msg.Len() == 0 {
			t.Errorf("%s: %q, %q", args[0], out.String(), msg.String())
		}
		if strings.Contains(msg.String(), "\nb.yaml:1:1: spec: forged") {
			t.Errorf("%s prints a line of the name's own:\n%s", args[0], msg.String())
		}
	}
}
