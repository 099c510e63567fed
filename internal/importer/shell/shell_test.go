package shell_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/importer/shell"
)

// TestScan: words are cut as bash cuts them. A word in brackets has yet to be expanded, and a bar ends a command.
func TestScan(t *testing.T) {
	for text, want := range map[string]string{
		`a 'b c' "d e" f\ g`:           `a,b c,d e,f g`,
		"a \\\nb # c\nd":               `a,b,|,d`,
		`x && y; z | w`:                `x,|,|,y,|,z,|,w`,
		`a $B "${C}/d" $(e f) g`:       `a,[$B],[${C}/d],[$(e f)],g`,
		"cat <<EOF\nit's\nEOF\nnext x": `cat,|,|,next,x`,
		`a "b $(c "d")" e`:             `a,[b $(c "d")],e`,
	} {
		s, ok := shell.Scan(text)
		if !ok {
			t.Errorf("%s is not understood", text)
		}
		var got []string
		for _, token := range s.Tokens {
			switch {
			case token.Ends:
				got = append(got, "|")
			case token.Expands:
				got = append(got, "["+token.Text+"]")
			default:
				got = append(got, token.Text)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, ",")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"a 'b", `a "b`, "a $(b", "a `b"} {
		if _, ok := shell.Scan(text); ok {
			t.Errorf("%s is understood", text)
		}
	}
}

// TestTextIn: the text of sh -c is the first word that is no option, nor what an option sets.
func TestTextIn(t *testing.T) {
	for command, want := range map[string]string{
		"sh -c TEXT":                          "TEXT",
		"/bin/bash -ec TEXT name":             "TEXT",
		"bash -o pipefail -c TEXT":            "TEXT",
		"bash -c -o pipefail TEXT":            "TEXT",
		"bash -ceuo pipefail TEXT":            "TEXT",
		"bash +O extglob -c TEXT":             "TEXT",
		"bash --login -c TEXT":                "TEXT",
		"bash --rcfile /etc/rc -c TEXT":       "TEXT",
		"bash --init-file /etc/rc -c TEXT":    "TEXT",
		"bash -c --init-file /etc/rc -- TEXT": "TEXT",
		"sh script.sh":                        "",
		"sh -e script.sh -c x":                "",
		"sh -- script.sh":                     "",
		"sh -c":                               "",
		"python -c TEXT":                      "",
	} {
		words, got := strings.Fields(command), ""
		if i := shell.TextIn(words); i >= 0 {
			got = words[i]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
