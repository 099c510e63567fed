package command

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestInitAllOrNone: a file in the way, or a directory that cannot be made, leaves what was there.
func TestInitAllOrNone(t *testing.T) {
	all := map[string][]byte{"a/b/one.yaml": []byte("1\n"), "two.yaml": []byte("2\n"), "z/three.yaml": []byte("3\n")}
	dir := filepath.Join(t.TempDir(), "new", "er")
	if err := writeNew(dir, all); err != nil {
		t.Fatal(err)
	}
	if got := leftBelow(t, dir); !slices.Equal(got, []string{"a/b/one.yaml", "two.yaml", "z/three.yaml"}) {
		t.Errorf("wrote %v", got)
	}
	if err := writeNew(dir, all); err == nil || !strings.Contains(err.Error(), "a/b/one.yaml, two.yaml, z/three.yaml") {
		t.Errorf("wrote over files: %v", err)
	}
	for name, inTheWay := range map[string]string{"a file": "two.yaml", "a file for a directory": "z"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, inTheWay), []byte("mine\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := writeNew(dir, all); err == nil {
			t.Errorf("%s: no error", name)
		}
		text, err := os.ReadFile(filepath.Join(dir, inTheWay))
		if got := leftBelow(t, dir); err != nil || string(text) != "mine\n" || !slices.Equal(got, []string{inTheWay}) {
			t.Errorf("%s: left %v, %q, %v", name, got, text, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
			t.Errorf("%s: left a directory", name)
		}
	}
}

func leftBelow(t *testing.T, dir string) (all []string) {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, name); err == nil && !d.IsDir() {
			found[filepath.ToSlash(rel)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(found))
}
