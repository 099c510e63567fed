package tree

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/render"
)

// TestCheck: the difference names every file that a write would change, and nothing is written by it. After the write
// there is none.
func TestCheck(t *testing.T) {
	whole := []render.Bundle{bundle("ml/a", "etcd: e", "worker: one\ntwo\nthree"), bundle("ml/b", "worker: w")}
	for what, c := range map[string]struct {
		change func(t *testing.T, dir string)
		prune  bool
		want   string
		files  int
	}{
		"nothing": {func(*testing.T, string) {}, true, "", 0},
		"a changed line": {
			func(t *testing.T, dir string) {
				put(t, filepath.Join(dir, "a/worker.yaml"), header("ml/a")+"one\n2\nthree\n")
			},
			true, "--- DIR/a/worker.yaml\n+++ DIR/a/worker.yaml as rendered\n@@ -1,4 +1,4 @@\n " + header("ml/a") +
				" one\n-2\n+two\n three\n", 1,
		},
		"a missing file": {
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "a/etcd.yaml")) },
			true, "DIR/a/etcd.yaml: is not there\n", 1,
		},
		"a missing folder": {
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "b")) },
			true, "DIR/b: is not there\n", 2,
		},
		"a file too many": {
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "a/ssh.yaml"), header("ml/a")) },
			true, "DIR/a/ssh.yaml: is there, and is not rendered any more\n", 1,
		},
		"a folder too many": {
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "gone/worker.yaml"), header("ml/gone")) },
			true, "DIR/gone: is there, and is not rendered any more\n", 1,
		},
		"a folder that is another's business": {
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "gone/worker.yaml"), header("ml/gone")) },
			false, "--- DIR/tegen-inventory.txt\n+++ DIR/tegen-inventory.txt as rendered\n@@ -4,3 +4,4 @@\n " +
				"a/worker.yaml\n b/kustomization.yaml\n b/worker.yaml\n+gone/worker.yaml\n", 1,
		},
		"no inventory": {
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, inventoryFile)) },
			true, "DIR/tegen-inventory.txt: is not there\n", 1,
		},
		"no directory": {
			remove, true, "DIR/a: is not there\nDIR/b: is not there\nDIR/tegen-inventory.txt: is not there\n", 6,
		},
		"somebody's file beside": {
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "a/mine.yaml"), "mine\n") }, true, "", 0,
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			mustWrite(t, dir, "", whole...)
			c.change(t, dir)
			before := state(t, dir)
			place := Place{Dir: dir, Bundles: whole, Prune: c.prune}
			var out bytes.Buffer
			n, _, err := Check(&out, place)
			if err != nil || n != c.files {
				t.Errorf("%d files differ, want %d; %v", n, c.files, err)
			}
			if diff := cmp.Diff(strings.ReplaceAll(c.want, "DIR", dir), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, state(t, dir)); diff != "" {
				t.Errorf("something was written (-before +after):\n%s", diff)
			}
			if _, err := Write(t.Context(), place); err != nil {
				t.Fatal(err)
			}
			out.Reset()
			if n, _, err := Check(&out, place); n > 0 || err != nil {
				t.Errorf("after a write %d files differ, %v:\n%s", n, err, out.String())
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// TestCheckRefuses: what a write refuses is no difference.
func TestCheckRefuses(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a/worker.yaml"), "mine\n")
	place := Place{Dir: dir, Bundles: []render.Bundle{bundle("ml/a", "worker: w")}}
	var out bytes.Buffer
	if _, _, err := Check(&out, place); err == nil || !strings.Contains(err.Error(), "was not written by tegen") ||
		out.Len() > 0 {
		t.Errorf("%v, %q", err, out.String())
	}
	place.Dir = filepath.Join(dir, "a/worker.yaml")
	if _, _, err := Check(&out, place); err == nil || out.Len() > 0 {
		t.Errorf("a file for a directory: %v, %q", err, out.String())
	}
	failing := errors.New("a full disk")
	place = Place{Dir: filepath.Join(dir, "new"), Bundles: place.Bundles}
	fails := writerFunc(func([]byte) (int, error) { return 0, failing })
	if _, _, err := Check(fails, place); !errors.Is(err, failing) {
		t.Errorf("%v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
