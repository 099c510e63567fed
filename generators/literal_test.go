package generators

import (
	"strings"
	"testing"

	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	"github.com/tegen-dev/tegen/schema/job"
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

// TestLiteralConf: a value of --rdzv-conf reaches torchrun, an operator's torchrun and the proxy as it is written.
func TestLiteralConf(t *testing.T) {
	const written = "a$$b$c"
	j := &job.Job{}
	j.Spec.Rendezvous.Conf = map[string]string{"user": written, "x": written}
	for what, text := range map[string]string{
		"conf": conf(j), "a pair": "x=" + confPairs(j)["x"], "proxy": strings.Join(proxyWords(j), " "),
	} {
		got := expansion.Expand(text, func(string) string { return "replaced" })
		if !strings.Contains(got, "="+written) {
			t.Errorf("%s reaches the program as %q", what, got)
		}
	}
}
