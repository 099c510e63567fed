package images

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNotice: what is linked into a program is in its NOTICE, and what is not is not.
func TestNotice(t *testing.T) {
	text, err := Target{Root: "..", Name: "tegen", System: System{"linux", "arm64"}}.Notice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"==== Go, LICENSE", "==== Go, src/vendor/golang.org/x/text/LICENSE", "==== cuelang.org/go v",
		"==== github.com/spf13/cobra v",
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

// TestLicences: a module without a licence is an error; Go's licence may be in the folder above its root.
func TestLicences(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "libexec")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("as you like\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := licences("Go", root, []string{root}); err != nil || text != "==== Go, LICENSE\n\nas you like\n\n" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := licences("example.org/a", root, []string{root}); err == nil ||
		!strings.Contains(err.Error(), "has no licence") {
		t.Errorf("%q, %v", text, err)
	}
}
