package program

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
		if got, err := (Target{Root: dir}).ldflags(); got != want || err != nil {
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
	target := Target{Root: dir, Link: map[string]string{"a/c.D": "2", "a/b.C": "1"}}
	if got, err := target.ldflags(); got != "-s -w -X a/b.C=1 -X a/c.D=2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestRoot: the module is found from any of its folders.
func TestRoot(t *testing.T) {
	root, err := Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "images", "program", "program.go")); err != nil {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	if root, err := Root(t.Context()); err == nil {
		t.Errorf("a folder of no module is in %s", root)
	}
}

// TestBuildFails: the error has the compiler's words, and an interruption is one.
func TestBuildFails(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module a\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() { b() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	target := Target{Root: dir, Package: ".", OS: "linux", Arch: "amd64"}
	file := filepath.Join(t.TempDir(), "program")
	err := target.Build(t.Context(), file)
	if err == nil || !strings.Contains(err.Error(), "compiling . for linux/amd64: ") ||
		!strings.Contains(err.Error(), "undefined: b") {
		t.Errorf("a program that does not compile: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := target.Build(ctx, file); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted build: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a program was left behind")
	}
}

// TestRead: what is no program of Go's is named.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + ".none"} {
		if _, err := Read(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEnv: what the caller set for its own programs does not reach these.
func TestEnv(t *testing.T) {
	t.Setenv("GOAMD64", "v4")
	t.Setenv("GOFLAGS", "-race")
	t.Setenv("GOEXPERIMENT", "nosuch")
	env := Target{OS: "linux", Arch: "arm64"}.Env()
	for _, want := range []string{
		"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "GOAMD64=v1", "GOFLAGS=-mod=readonly",
		"GOEXPERIMENT=",
	} {
		name, _, _ := strings.Cut(want, "=")
		last := ""
		for _, e := range env {
			if strings.HasPrefix(e, name+"=") {
				last = e // as os/exec has it
			}
		}
		if last != want {
			t.Errorf("%s counts, want %s", last, want)
		}
	}
}
