package tree

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/render"
)

// TestMiddle lets each step of a plan fail in turn, and be interrupted in turn: nothing of the steps before it stays.
func TestMiddle(t *testing.T) {
	bundles := []render.Bundle{
		bundle("ml/a", "etcd: new", "worker: new"), // one new file, one changed, prefetch goes
		bundle("ml/b", "worker: new"),              // a new folder
		bundle("ml/c", "worker: new"),
	}
	prepare := func(t *testing.T) (*writer, map[string]string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "out")
		mustWrite(t, dir, "", bundle("ml/a", "prefetch: p", "worker: old"))
		put(t, filepath.Join(dir, "a/mine.yaml"), "mine")
		before := state(t, dir)
		w := opened(t, dir)
		w.Bundles, w.Rest = bundles, []byte("rest\n")
		if err := w.planAll(); err != nil {
			t.Fatal(err)
		}
		if err := w.stage(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w, before
	}
	first, _ := prepare(t)
	for i, step := range first.plan {
		t.Run("fails/"+step.path, func(t *testing.T) {
			w, before := prepare(t)
			f := w.plan[i]
			gone := f.staged // the disk loses what the step needs
			if f.content == nil {
				gone = f.path
				delete(before, f.path)
			}
			if err := w.root.Remove(gone); err != nil {
				t.Fatal(err)
			}
			if err := w.commit(t.Context()); err == nil {
				t.Fatal("the step did not fail")
			}
			w.clean(true)
			if diff := cmp.Diff(before, state(t, w.Dir)); diff != "" {
				t.Errorf("something stayed changed (-before +after):\n%s", diff)
			}
		})
		t.Run("interrupted/"+step.path, func(t *testing.T) {
			w, before := prepare(t)
			if err := w.commit(&ending{Context: t.Context(), after: i}); !errors.Is(err, context.Canceled) {
				t.Fatalf("%v", err)
			}
			w.clean(true)
			if diff := cmp.Diff(before, state(t, w.Dir)); diff != "" {
				t.Errorf("something stayed changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestMiddleWithoutLinks: what could only be moved aside, as on a file system without links, is put back where its own
// step fails behind that. A directory has no links either.
func TestMiddleWithoutLinks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustWrite(t, dir, "", bundle("ml/a", "worker: old"))
	w := opened(t, dir)
	w.Bundles = []render.Bundle{bundle("ml/a", "worker: new")}
	if err := w.planAll(); err != nil {
		t.Fatal(err)
	}
	before := state(t, dir)
	if err := w.stage(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := w.plan[0]
	before[f.path] = "dir"
	for _, err := range []error{
		w.root.Remove(f.path), w.root.Mkdir(f.path, 0o777), // moved, since it cannot be linked
		w.root.Remove(f.staged), // and then there is nothing to put in its place
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.commit(t.Context()); err == nil {
		t.Fatal("the step did not fail")
	}
	w.clean(true)
	if diff := cmp.Diff(before, state(t, dir)); diff != "" {
		t.Errorf("something stayed changed (-before +after):\n%s", diff)
	}
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
