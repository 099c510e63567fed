package generators

import (
	"testing"

	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// TestLiteral runs the kubelet's own expansion over what is rendered: an author's URL has to come out of it as written.
func TestLiteral(t *testing.T) {
	for _, text := range []string{
		"plain", "a$b", "a$$b", "$$$", "$$$$", "end$",
		"https://data.acme.example/a?sig=$$x$y", "$${HOME}",
	} {
		if got := expansion.Expand(literal(text), func(string) string { return "replaced" }); got != text {
			t.Errorf("%q reaches the program as %q", text, got)
		}
	}
}
