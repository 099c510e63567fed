package yamldoc

import (
	"strings"
	"testing"
)

// TestCheckCount: a file of markers is refused before anything is kept of each, and a file of as many jobs as before
// is not.
func TestCheckCount(t *testing.T) {
	const refused = "x:60001:1: the file has more documents than the limit of 60000: split it"
	for text, want := range map[string]string{
		strings.Repeat("---\n", 2<<20):                                    refused,
		strings.Repeat("...\n", 2<<20):                                    refused,
		strings.Repeat("a: b\n", 1<<20):                                   "",
		strings.Repeat("---\na: "+strings.Repeat("b", 300)+"\n", 100_000): "",
		strings.Repeat("---\na: b\n", 60_000):                             "",
	} {
		got := ""
		if err := CheckCount("x", []byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.10q, %d bytes: %q, want %q", text, len(text), got, want)
		}
	}
}
