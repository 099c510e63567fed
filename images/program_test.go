package images

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLdflags: a program of Kubernetes' modules says which release it is made of, whatever the form of go.mod.
func TestLdflags(t *testing.T) {
	const stripped, released = "-s -w", "-s -w -X k8s.io/component-base/version.gitVersion=v1.2.3"
	for mod, want := range map[string]string{
		"module a\n": stripped,
		"module a\n\nrequire k8s.io/kubernetes v1.2.3\n":                     released,
		"module a\n\nrequire (\n\tk8s.io/kubernetes v1.2.3 // indirect\n)\n": released,
		"module a\n\nrequire (\n\tx.org/k8s.io/kubernetes v1.2.3\n)\n":       "-s -w",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := (Target{Root: dir, Name: "tegen"}).ldflags(); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", mod, got, err, want)
		}
	}
}

// TestLink: variables are linked in one order, whatever they are.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	target := Target{Root: dir, Name: "tegen", Link: map[string]string{"a/c.D": "2", "a/b.C": "1"}}
	if got, err := target.ldflags(); got != "-s -w -X a/b.C=1 -X a/c.D=2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestBuildFails: the error has the compiler's words, and an interruption is one.
func TestBuildFails(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module a\n\ngo 1.26.0\n", "cmd/tegen/main.go": "package main\n\nfunc main() { b() }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	target := Target{Root: dir, Name: "tegen", System: System{"linux", "amd64"}}
	file := filepath.Join(t.TempDir(), "program")
	_, err := target.Build(t.Context(), file)
	if err == nil || !strings.Contains(err.Error(), "compiling tegen for linux/amd64: ") ||
		!strings.Contains(err.Error(), "undefined: b") {
		t.Errorf("a program that does not compile: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := target.Build(ctx, file); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted build: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a program was left behind")
	}
}
