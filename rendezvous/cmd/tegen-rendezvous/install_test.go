package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
)

// TestInstall: the copy runs, also in place of an earlier one, and where it cannot be made nothing is left.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "tegen-rendezvous")
	for range 2 {
		if code := run([]string{"install", path}, nil, os.Stdout, os.Stderr); code != cli.ExitOK {
			t.Fatalf("exit code %d", code)
		}
		cmd := exec.CommandContext(t.Context(), path, "version")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "tegen-rendezvous ") {
			t.Errorf("the copy says %q, %v", out, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	taken := filepath.Join(dir, "folder")
	if err := os.Mkdir(taken, 0o755); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]int{
		taken: cli.ExitError, filepath.Join(dir, "none", "x"): cli.ExitError,
		"": cli.ExitUsage,
	} {
		var errs strings.Builder
		call := []string{"install", args}
		if args == "" {
			call = call[:1]
		}
		if code := run(call, nil, os.Stdout, &errs); code != want || errs.Len() == 0 {
			t.Errorf("install %q: exit code %d, want %d: %s", args, code, want, errs.String())
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%d files after what failed, %v", len(entries), err)
	}
}
