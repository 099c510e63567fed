package cases

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/golden"
)

const root = "../.."

// TestInFull: every case that is listed for a golden file exists and is listed once.
func TestInFull(t *testing.T) {
	all, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range inFull {
		for name := range strings.FieldsSeq(g.cases) {
			if seen[name] || !slices.ContainsFunc(all, func(c Case) bool { return c.String() == name }) {
				t.Errorf("%s is listed twice or is no case", name)
			}
			seen[name] = true
		}
	}
}

// TestWrite: the files of all cases and of 'tegen install' are written, with the bytes of the golden files.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	files, err := Write(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := golden.Rendered(filepath.Join(root, "golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range want {
		name, err := filepath.Rel(filepath.Join(root, "golden"), file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != string(text) {
			t.Errorf("%s is not written or has other bytes: %v", name, err)
		}
	}
	if len(files) <= len(want) {
		t.Errorf("%d files, of which %d have golden files: those with digests alone are missing", len(files), len(want))
	}
}
