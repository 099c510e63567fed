// Package tegen renders fixtures for tests that compare manifests with the program that they run. It runs the command
// tegen of the same checkout and imports nothing of it: the rendezvous is a module of its own.
package tegen

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Render returns the manifests of the fixtures whose names match a pattern, with further arguments of 'tegen render'.
func Render(t testing.TB, pattern string, args ...string) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), "fixtures", "valid", pattern+".yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixture %s: %v", pattern, err)
	}
	return Run(t, slices.Concat([]string{"render"}, files, args)...)
}

// Run returns what a command of tegen prints.
func Run(t testing.TB, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "./cmd/tegen"}, args...)...)
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), "GOWORK=off")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tegen %s: %v\n%s", args[0], err, errs.String())
	}
	return out
}

// root is the folder of the checkout; a test outside of one is skipped.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "tegen", "main.go")); err == nil {
			return dir
		}
	}
	t.Skip("this renders jobs with the command tegen: run it in a checkout of the whole repository")
	return ""
}
