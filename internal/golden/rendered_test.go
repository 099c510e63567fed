package golden_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tegen-dev/tegen/internal/golden"
)

func TestRendered(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := golden.Rendered(filepath.Join(dir, "absent")); err == nil {
		t.Error("an absent directory is accepted")
	}
	write("invalid/case/base.yaml")
	write("case/README.md")
	if files, err := golden.Rendered(dir); err == nil {
		t.Errorf("a walk without a single golden is accepted: %v", files)
	}
	write("case/prod.yaml")
	write("case/invalid/base.yaml")
	files, err := golden.Rendered(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "case/invalid/base.yaml"), filepath.Join(dir, "case/prod.yaml")}
	if !slices.Equal(files, want) {
		t.Errorf("got %v, want %v", files, want)
	}
}
