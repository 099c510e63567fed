package yamldoc

import (
	"strings"
	"testing"
)

// TestTrailing: the YAML parser stops where a root in brackets ends, or at a line of dots. Text behind it is an error
// with its line, by each way of reading.
func TestTrailing(t *testing.T) {
	for text, line := range map[string]int{
		"{a: 1}\n":                         0,
		"{a: 1} # a comment\n# another\n":  0,
		"[a]\n...\n# a comment\n":          0,
		"a: 1\n...\n":                      0,
		"{a: 1}\n{a: 2}\n":                 2,
		"# one\n{a: 1}\n\nspec: {b: 1}\n":  4,
		"--- {a: 1}\n]\n":                  2,
		"{\"a\": 1}\n\n  trailing words\n": 3,
		"a: 1\n... more\n":                 2,
		"[1]\na: 1\n":                      2,
	} {
		for _, doc := range Split("x.yaml", []byte(text)) {
			_, parsed := doc.Parse()
			_, printed := doc.JSON()
			for way, err := range map[string]error{"Parse": parsed, "JSON": printed} {
				switch {
				case line == 0 && err != nil:
					t.Errorf("%s of %q: %v", way, text, err)
				case line > 0 && (err == nil || !strings.Contains(err.Error(), "more text after the end")):
					t.Errorf("%s of %q: %v", way, text, err)
				}
			}
		}
	}
}
