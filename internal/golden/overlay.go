package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Overlay returns a temporary copy of overlays/<name> below the root, as CopyOverlay makes it.
func Overlay(t testing.TB, root, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := CopyOverlay(dir, root, name); err != nil {
		t.Fatal(err)
	}
	return dir
}

// CopyOverlay copies overlays/<name> below the root to dir and fills in the file system's id, which the overlay eks
// leaves to its user.
func CopyOverlay(dir, root, name string) error {
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "overlays", name))); err != nil {
		return err
	}
	file := filepath.Join(dir, "environment.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	filled := strings.ReplaceAll(string(text), "fs-00000000000000000", "fs-0123456789abcdef0")
	return os.WriteFile(file, []byte(filled), 0o600)
}
