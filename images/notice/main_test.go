package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNotice: what is linked into a program is in its NOTICE, and what is not is not.
func TestNotice(t *testing.T) {
	text, err := notice([]string{own + "/cmd/tegen"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"==== Go, LICENSE", "==== cuelang.org/go v", "==== github.com/spf13/cobra v", "==== k8s.io/api v"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, foreign := range []string{"==== " + own, "==== k8s.io/kubernetes ", "==== go.etcd.io/etcd/server"} {
		if strings.Contains(text, foreign) {
			t.Errorf("%q, which cmd/tegen does not link", foreign)
		}
	}
}

// TestImages: every image carries our licence, and the notices of what its program links.
func TestImages(t *testing.T) {
	files, err := filepath.Glob("../*/Dockerfile")
	if err != nil || len(files) == 0 {
		t.Fatalf("no images: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(file))
		for _, want := range []string{"go run ./images/notice ./cmd/" + name + " >/NOTICE", "COPY --from=build /NOTICE /src/LICENSE /", "ARG GO="} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %q", file, want)
			}
		}
	}
}

// TestWithout: a module without a licence is no reason to say nothing of it.
func TestWithout(t *testing.T) {
	if err := texts(&strings.Builder{}, "example.org/a", t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no licence") {
		t.Errorf("got %v", err)
	}
}
