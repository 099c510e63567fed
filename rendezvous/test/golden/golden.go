// Package golden compares what a test got with a file, and rewrites the file when TEGEN_UPDATE=1 is set. It refuses to
// rewrite where CI=true, so that a run that should compare cannot accept. Files that no test compared with are orphans.
package golden

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Dir is a directory of golden files.
type Dir struct {
	root string
	seen map[string]bool
}

// Open returns the golden files below root.
func Open(t testing.TB, root string) *Dir {
	t.Helper()
	if updating() && os.Getenv("CI") == "true" {
		t.Fatal("TEGEN_UPDATE is set where CI=true: golden files are updated by people, who read the difference")
	}
	if !strings.Contains(t.Name(), "Golden") && !strings.Contains(t.Name(), "Script") {
		t.Fatal("'make golden' runs the tests whose names have Golden or Script in them: name this one so")
	}
	return &Dir{root: root, seen: map[string]bool{}}
}

func updating() bool { return os.Getenv("TEGEN_UPDATE") == "1" }

// Compare holds got against the file of that name below the directory.
func (d *Dir) Compare(t testing.TB, name string, got []byte) {
	t.Helper()
	d.seen[name] = true
	path := filepath.Join(d.root, name)
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err == nil && string(want) == string(got) {
		return
	}
	if !updating() {
		t.Errorf("%s differs (-want +got); read the difference, then accept it with 'make golden':\n%s",
			path, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, got, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Orphans fails for every file below sub that nothing was compared with, or removes it when updating. It does nothing
// where only some of a test's cases run: the files of the others are no orphans.
func (d *Dir) Orphans(t testing.TB, sub string) {
	t.Helper()
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && strings.Contains(f.Value.String(), "/") {
			return
		}
	}
	err := filepath.WalkDir(filepath.Join(d.root, sub), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(d.root, path)
		switch {
		case err != nil || d.seen[filepath.ToSlash(name)]:
			return err
		case updating():
			return os.Remove(path)
		}
		t.Errorf("%s is an orphan: no fixture makes it; 'make golden' removes it", path)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
