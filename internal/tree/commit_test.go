package tree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/render"
)

// TestMiddle lets each step of a journal fail, after which the next write of anything completes all of them.
func TestMiddle(t *testing.T) {
	bundles := []render.Bundle{
		bundle("ml/a", "etcd: new", "worker: new"), // one new file, one changed, prefetch goes
		bundle("ml/b", "worker: new"),              // a new folder
	}
	prepare := func(t *testing.T, dir string) *writer {
		t.Helper()
		mustWrite(t, dir, "", bundle("ml/a", "prefetch: p", "worker: old"))
		put(t, filepath.Join(dir, "a/mine.yaml"), "mine")
		w := opened(t, dir)
		w.Bundles, w.Rest = bundles, []byte("rest\n")
		if err := errors.Join(w.planAll(), w.stage(t.Context())); err != nil {
			t.Fatal(err)
		}
		return w
	}
	whole := filepath.Join(t.TempDir(), "out")
	planned := prepare(t, whole)
	steps := planned.steps("")
	planned.release(false)
	mustWrite(t, whole, "rest\n", bundles...)
	for i, s := range steps {
		t.Run(s.Path, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			w := prepare(t, dir)
			if _, err := w.begin(w.steps("")); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, filepath.FromSlash(s.Path))
			restore := blocked(t, path)
			if _, err := w.complete(); err == nil || !strings.Contains(err.Error(), journalFile) {
				t.Fatalf("step %d did not fail: %v", i, err)
			}
			restore()
			w.release(false)
			place := Place{Dir: dir, Bundles: bundles, Rest: []byte("rest\n")}
			_, _, err := Check(&strings.Builder{}, place)
			if err == nil || !strings.Contains(err.Error(), journalFile) {
				t.Errorf("a check says nothing of it: %v", err)
			}
			if _, err := Read(dir, 1<<20); err == nil || !strings.Contains(err.Error(), journalFile) {
				t.Errorf("a reader says nothing of it: %v", err)
			}
			others, err := Write(t.Context(), Place{Dir: dir, Rest: []byte("rest\n")}) // of none of the jobs
			if err != nil || !others.Completed {
				t.Fatalf("%+v, %v", others, err)
			}
			if diff := cmp.Diff(state(t, whole), state(t, dir)); diff != "" {
				t.Errorf("it was not completed (-want +got):\n%s", diff)
			}
		})
	}
}

// blocked puts a directory in the place of a file until the answer is called, so that no file can be renamed to there
// and it cannot be removed.
func blocked(t *testing.T, path string) (restore func()) {
	t.Helper()
	root, err := osRoot(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Base(path)
	had := root.Rename(base, "aside") == nil
	put(t, filepath.Join(path, "in-the-way"), "x")
	return func() {
		t.Helper()
		err := errors.Join(root.Root.Remove(filepath.Join(base, "in-the-way")), root.Root.Remove(base))
		if had {
			err = errors.Join(err, root.Rename("aside", base))
		}
		if err := errors.Join(err, root.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForeignJournal: a journal that somebody wrote, as of a repository that was cloned, changes no file but tegen's.
func TestForeignJournal(t *testing.T) {
	for what, line := range map[string]string{
		"removes a user's file":  `{"path":"a/mine.yaml"}`,
		"replaces a user's file": `{"staged":"a/.mine.yaml.tegen-new-1","path":"a/mine.yaml"}`,
		"moves a user's file":    `{"staged":"a/mine.yaml","path":"a/other.yaml"}`,
		"moves it elsewhere":     `{"staged":".worker.yaml.tegen-new-1","path":"a/worker.yaml"}`,
		"leads out":              `{"path":"../outside.yaml"}`,
		"is no journal":          `rm -rf`,
	} {
		t.Run(what, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "out")
			mustWrite(t, dir, "", bundle("ml/a", "worker: old"))
			put(t, filepath.Join(dir, "a/mine.yaml"), "mine")
			put(t, filepath.Join(dir, "a/.mine.yaml.tegen-new-1"), header("ml/a"))
			put(t, filepath.Join(base, "outside.yaml"), "mine")
			put(t, filepath.Join(dir, journalFile), headerOf(journalOrigin)+line+"\n")
			before := state(t, base)
			err := writeTo(t.Context(), dir, []render.Bundle{bundle("ml/a", "worker: new")}, nil)
			if err == nil || !strings.Contains(err.Error(), journalFile) {
				t.Errorf("%v", err)
			}
			if diff := cmp.Diff(before, state(t, base)); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

// TestUnfinishedAbove: a directory that a write created goes again if the render around it cannot be completed.
func TestUnfinishedAbove(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	put(t, filepath.Join(dir, journalFile), headerOf(journalOrigin)+"rm -rf\n")
	before := state(t, dir)
	_, err := Write(t.Context(), Place{Dir: filepath.Join(dir, "eks")})
	if err == nil || !strings.Contains(err.Error(), journalFile) {
		t.Errorf("%v, want a word about %s", err, journalFile)
	}
	if diff := cmp.Diff(before, state(t, dir)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "eks")); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// TestOrder: nothing is renamed before it is synced, and the journal stays until all of its changes are.
func TestOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustWrite(t, dir, "", bundle("ml/a", "prefetch: p", "worker: old"), bundle("ml/gone", "worker: w"))
	var changes []string
	setChanging(t, func(op, path string) error {
		changes = append(changes, op+" "+filepath.Join(dir, strings.TrimPrefix(path, dir)))
		return nil
	})
	place := Place{Dir: dir, Prune: true, Bundles: []render.Bundle{
		bundle("ml/a", "etcd: e", "worker: new"), bundle("ml/b", "worker: new"),
	}}
	if _, err := Write(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	synced, placed, journal := map[string]bool{}, 0, filepath.Join(dir, journalFile)
	begun := false
	for i, change := range changes {
		op, path, _ := strings.Cut(change, " ")
		folder := filepath.Dir(path)
		switch {
		case op == "create", op == "mkdir":
			if begun {
				t.Errorf("%d: %s after the journal is in place", i, change)
			}
			synced[path] = false
			if !strings.HasPrefix(filepath.Base(path), "."+journalFile) {
				synced[folder] = false
			}
		case op == "remove" && !begun: // what only tried the folder
			delete(synced, path)
		case op == "sync":
			synced[path] = true
		case op == "rename" && path == journal:
			for path, is := range synced {
				if !is && path != filepath.Dir(dir) {
					t.Errorf("%s is not synced before the journal is in place", path)
				}
			}
			begun, synced[dir] = true, false
		case op == "rename", op == "remove" && begun && path != journal:
			if !begun || placed == 0 && !synced[dir] { // so that the journal is kept
				t.Errorf("%d: %s before the journal is in place", i, change)
			}
			placed++
			synced[folder] = false
		case op == "remove" && path == journal:
			for path, is := range synced {
				base := filepath.Base(path)
				if !is && path != filepath.Dir(dir) && !strings.HasPrefix(base, ".") && base != "gone" {
					t.Errorf("%s is not synced before the journal goes", path)
				}
			}
		}
	}
	if !begun || placed < 8 {
		t.Errorf("%d changes alone: %q", placed, changes)
	}
}

// setChanging sets changing for a test.
func setChanging(t *testing.T, f func(op, path string) error) {
	t.Helper()
	before := changing
	changing = f
	t.Cleanup(func() { changing = before })
}

// ending is a context that is cancelled after a number of calls of Err.
type ending struct {
	context.Context
	after int
}

func (e *ending) Err() error {
	if e.after--; e.after < 0 {
		return context.Canceled
	}
	return nil
}
