package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Overlay is a copy of overlays/<name> below the root in which the file system's id, which that of eks leaves to its
// user, is filled in.
func Overlay(t testing.TB, root, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "overlays", name))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "environment.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.ReplaceAll(string(text), "fs-00000000000000000", "fs-0123456789abcdef0")
	if err := os.WriteFile(file, []byte(filled), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
