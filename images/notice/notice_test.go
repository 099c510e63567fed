package notice

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/images/program"
)

// TestNotice: what is linked into a program is in its NOTICE, and what is not is not.
func TestNotice(t *testing.T) {
	text, err := Of(t.Context(), program.Target{Root: "../..", Package: "./cmd/tegen", OS: "linux", Arch: "arm64"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"==== Go, LICENSE", "==== cuelang.org/go v", "==== github.com/spf13/cobra v",
		"==== k8s.io/api v",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	// With a licence of its own in a folder.
	for _, taken := range []string{"k8s.io/apimachinery", "k8s.io/utils", "k8s.io/kube-openapi"} {
		if !regexp.MustCompile("(?m)^==== " + regexp.QuoteMeta(taken) + " v[^,]*, .*third_party/.*/LICENSE").
			MatchString(text) {
			t.Errorf("no licence of what %s took from others", taken)
		}
	}
	if heads := regexp.MustCompile("(?m)^==== .*$").FindAllString(text,
		-1); len(slices.Compact(slices.Sorted(slices.Values(heads)))) < len(heads) {
		t.Error("a licence stands there twice")
	}
	for _, foreign := range []string{
		"==== github.com/tegen-dev/tegen", "==== k8s.io/kubernetes ", "==== go.etcd.io/etcd/server",
	} {
		if strings.Contains(text, foreign) {
			t.Errorf("%q, which cmd/tegen does not link", foreign)
		}
	}
}

// TestWithout: a module without a licence is no reason to say nothing of it.
func TestWithout(t *testing.T) {
	m := module{name: "example.org/a", root: t.TempDir()}
	if err := m.texts(&strings.Builder{}); err == nil || !strings.Contains(err.Error(), "has no licence") {
		t.Errorf("got %v", err)
	}
}

// TestGo: a distribution's Go has its licence above the root that is compiled from, behind a link too, or nowhere.
func TestGo(t *testing.T) {
	dir := t.TempDir()
	for _, root := range []string{"own/libexec/src/a", "none/lib/go"} {
		if err := os.MkdirAll(filepath.Join(dir, root), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"own/LICENSE":               "as you like",
		"own/libexec/src/a/LICENSE": "from elsewhere",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("own/libexec", filepath.Join(dir, "root")); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"own", "own/libexec", "root"} {
		var out strings.Builder
		m := module{
			name: "Go", root: filepath.Join(dir, root),
			folders: []string{filepath.Join(dir, "own/libexec/src/a")},
		}
		if err := m.goTexts(&out); err != nil ||
			!strings.HasPrefix(out.String(), "==== Go, LICENSE\n\nas you like\n\n") ||
			strings.Count(out.String(), "from elsewhere") > 1 {
			t.Errorf("%s: %v, %q", root, err, out.String())
		}
	}
	if err := (&module{name: "Go", root: filepath.Join(dir, "none/lib/go")}).goTexts(&strings.Builder{}); err == nil ||
		!strings.Contains(err.Error(), "comes without its licence") {
		t.Errorf("got %v", err)
	}
}
