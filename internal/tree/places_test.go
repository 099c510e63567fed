package tree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/render"
)

// TestPlaces interrupts a write to two places at each of its files in turn: nothing of either is changed.
func TestPlaces(t *testing.T) {
	base := t.TempDir()
	old := bundle("ml/a", "etcd: e", "worker: old")
	for _, dir := range []string{"eks", "kind"} {
		mustWrite(t, filepath.Join(base, dir), "", old, bundle("ml/gone", "worker: old"))
	}
	before := state(t, base)
	bundles := []render.Bundle{bundle("ml/a", "worker: new"), bundle("ml/b", "worker: new")}
	for i := 0; ; i++ {
		// stage asks once for each file that changes, commit once more
		_, _, err := (Top{Dir: base}).Write(&ending{Context: t.Context(), after: i},
			Place{Dir: filepath.Join(base, "kind"), Bundles: bundles, Prune: true},
			Place{Dir: filepath.Join(base, "eks"), Bundles: bundles, Prune: true})
		if err == nil {
			break
		}
		if diff := cmp.Diff(before, state(t, base)); diff != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("step %d: %v; something stayed changed (-before +after):\n%s", i, err, diff)
		}
	}
	if got := state(t, base); got["eks/b/worker.yaml"] == "" || got["kind/b/worker.yaml"] == "" {
		t.Errorf("it was not written in the end: %v", got)
	}
}

// TestPlacesRefused: a file in the way of the second place, and nothing of the first one is left, nor what was made
// for both.
func TestPlacesRefused(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "out/kind/a/worker.yaml"), "mine\n")
	before := state(t, base)
	_, _, err := (Top{Dir: filepath.Join(base, "out")}).Write(t.Context(),
		Place{Dir: filepath.Join(base, "out/eks"), Bundles: []render.Bundle{bundle("ml/a", "worker: w")}},
		Place{Dir: filepath.Join(base, "out/kind"), Bundles: []render.Bundle{bundle("ml/a", "worker: w")}},
		Place{Dir: filepath.Join(base, "out/new"), Bundles: []render.Bundle{bundle("ml/a", "worker: w")}})
	if err == nil || !strings.Contains(err.Error(), "kind/a/worker.yaml was not written by tegen") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, state(t, base)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestTwoWritersOfPlaces: writes of the same places in another order neither wait for each other nor mix.
func TestTwoWritersOfPlaces(t *testing.T) {
	base := t.TempDir()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			who := string(rune('a' + i))
			places := []Place{
				{Dir: filepath.Join(base, "eks"), Bundles: []render.Bundle{bundle("ml/a", "worker: "+who)}},
				{Dir: filepath.Join(base, "kind"), Bundles: []render.Bundle{bundle("ml/a", "worker: "+who)}},
			}
			if i%2 == 1 {
				slices.Reverse(places)
			}
			_, _, errs[i] = (Top{Dir: base}).Write(t.Context(), places...)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	got := state(t, base)
	if got["eks/a/worker.yaml"] != got["kind/a/worker.yaml"] {
		t.Errorf("a mixture: %q and %q", got["eks/a/worker.yaml"], got["kind/a/worker.yaml"])
	}
}

// TestPrune: the folders of other jobs go, what tegen did not write stays, and the answer says which is which.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, "rest\n", bundle("ml/a", "worker: w"), bundle("ml/gone", "etcd: e", "worker: w"),
		bundle("ml/shared", "worker: w"), bundle("ml/torn", "worker: w"))
	put(t, filepath.Join(dir, "shared/notes.yaml"), "mine\n")
	put(t, filepath.Join(dir, "gone/.worker.yaml.tegen-new-1"), "half of a killed render\n")
	put(t, filepath.Join(dir, "mine/worker.yaml"), "mine\n")
	put(t, filepath.Join(dir, "mine/kustomization.yaml"), "resources: [worker.yaml]\n")
	put(t, filepath.Join(dir, "worker.yaml"), header("ml/gone"))
	put(t, filepath.Join(dir, ".tegen-inventory.txt.tegen-new-1"), "half of a killed render\n")
	if err := os.Remove(filepath.Join(dir, "torn/kustomization.yaml")); err != nil {
		t.Fatal(err)
	}
	want := state(t, dir)
	for name := range want {
		if name == "gone" || strings.HasPrefix(name, "gone/") || strings.HasPrefix(name, "torn") ||
			strings.HasPrefix(name, ".tegen") {
			delete(want, name)
		}
	}
	delete(want, "shared/worker.yaml")
	delete(want, "shared/kustomization.yaml")
	want["tegen-inventory.txt"] = inventory("a/kustomization.yaml", "a/worker.yaml",
		"overlay-resources/kustomization.yaml", "overlay-resources/resources.yaml")

	if err := os.Symlink("gone", filepath.Join(dir, "link")); err != nil {
		t.Skip("no links here")
	}
	place := Place{Dir: dir, Bundles: []render.Bundle{bundle("ml/a", "worker: w")}, Prune: true}
	others, err := Write(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Others{Removed: []string{"gone", "torn"}, Kept: []string{"shared"}}, others); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, state(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if others, err := Write(t.Context(), place); err != nil || others.Removed != nil || others.Kept != nil {
		t.Errorf("again: %v, %v", others, err)
	}
}

// TestRestGone: what an overlay held beside jobs stays, and is named, until Prune. A render without an overlay has no
// say in it.
func TestRestGone(t *testing.T) {
	dir := t.TempDir()
	job := []render.Bundle{bundle("ml/a", "worker: w")}
	mustWrite(t, dir, "kind: ConfigMap\n", job...)
	there := state(t, dir)
	for _, c := range []struct {
		rest  []byte
		prune bool
		want  Others
	}{
		{nil, false, Others{}},
		{nil, true, Others{}},
		{[]byte{}, false, Others{Kept: []string{RestFolder}}},
		{[]byte{}, true, Others{Removed: []string{RestFolder}}},
		{[]byte{}, true, Others{}},
	} {
		others, err := Write(t.Context(), Place{Dir: dir, Bundles: job, Rest: c.rest, Prune: c.prune})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, others); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c, diff)
		}
		if diff := cmp.Diff(there, state(t, dir)); (diff == "") != (c.rest == nil || !c.prune) {
			t.Errorf("%+v (-before +after):\n%s", c, diff)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, RestFolder)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}

// TestWithin: a place neither holds another one nor is in one.
func TestWithin(t *testing.T) {
	base := t.TempDir()
	mustWrite(t, filepath.Join(base, "rendered/eks"), "", bundle("ml/a", "worker: w"))
	before := state(t, base)
	for dir, says := range map[string]string{
		"rendered":           "rendered holds a directory of jobs, as ",
		"rendered/eks/below": "rendered/eks/below is in a directory that holds jobs itself",
		"rendered/eks/a":     "rendered/eks/a is in a directory that holds jobs itself",
	} {
		for _, prune := range []bool{false, true} {
			bundles := []render.Bundle{bundle("ml/b", "worker: w")}
			p := Place{Dir: filepath.Join(base, dir), Bundles: bundles, Prune: prune}
			if _, err := Write(t.Context(), p); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", dir, err)
			}
			if _, _, err := Check(os.Stdout, p); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: check: %v", dir, err)
			}
		}
	}
	if diff := cmp.Diff(before, state(t, base)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(base, "rendered/eks/tegen-inventory.txt")); err != nil {
		t.Fatal(err)
	}
	inFolder := filepath.Join(base, "rendered/eks/a")
	err := writeTo(t.Context(), inFolder, []render.Bundle{bundle("ml/b", "worker: w")}, nil)
	if err == nil || !strings.Contains(err.Error(), "rendered/eks/a was rendered from TrainingJob ml/a") {
		t.Errorf("%v", err)
	}
	mustWrite(t, filepath.Join(base, "rendered/kind"), "", bundle("ml/a", "worker: w"))
}
