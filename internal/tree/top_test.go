package tree

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tegen-dev/tegen/internal/render"
)

// placesOf are places of one job below a directory.
func placesOf(base string, names ...string) (places []Place) {
	for _, name := range names {
		bundles := []render.Bundle{bundle("ml/a", "worker: "+name)}
		places = append(places, Place{Dir: filepath.Join(base, name), Bundles: bundles})
	}
	return places
}

var visible = cmpopts.IgnoreUnexported(Unnamed{})

// TestUnnamed: a place goes only with an overlay that is known to be gone.
func TestUnnamed(t *testing.T) {
	kept := func(overlay string) Unnamed { return Unnamed{Kept: []Listed{{"kind", overlay}}} }
	const listed = "eks\t../a/eks\nkind\t../b/kind\n"
	gone := Unnamed{Removed: []string{"kind"}}
	for name, c := range map[string]struct {
		list  string
		there string // an overlay beside a/eks
		named []string
		want  Unnamed
	}{
		"its overlay is there":     {listed, "b/kind", []string{"a/eks"}, kept("b/kind")},
		"all others are named":     {listed, "b/kind", []string{"a/eks", "a/x"}, kept("b/kind")},
		"its overlay is gone":      {listed, "", []string{"a/eks"}, gone},
		"another clone":            {"eks\t../../a/eks\nkind\t../../b/kind\n", "b/kind", []string{"a/eks"}, kept("")},
		"it moved with the others": {"eks\t../eks\nkind\t../kind\n", "a/kind", []string{"a/eks"}, kept("a/kind")},
		"an old list":              {"eks\nkind\n", "b/kind", []string{"a/eks"}, kept("")},
		"an old list, beside":      {"eks\nkind\n", "a/kind", []string{"a/eks", "a/x"}, kept("a/kind")},
		"an old list, as many":     {"eks\nkind\n", "", []string{"a/eks", "a/x"}, gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, overlay := range append(c.named, c.there) {
				put(t, filepath.Join(overlay, "kustomization.yaml"), "")
			}
			if _, _, err := (Top{Dir: "out"}).Write(t.Context(), placesOf("out", "eks", "kind")...); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join("out", topFile), headerOf(topOrigin)+c.list)
			var places []Place
			for _, overlay := range c.named {
				p := placesOf("out", filepath.Base(overlay))[0]
				p.Overlay = overlay
				places = append(places, p)
			}
			_, unnamed, err := Top{Dir: "out", Prune: true}.Write(t.Context(), places...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, unnamed, visible); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTop interrupts a run that removes a place at each of its steps: that place, the others and the list are as they
// were.
func TestTop(t *testing.T) {
	for i := 0; ; i++ {
		base := t.TempDir()
		if _, _, err := (Top{Dir: base}).Write(t.Context(), placesOf(base, "eks", "kind")...); err != nil {
			t.Fatal(err)
		}
		before := state(t, base)
		prune := Top{Dir: base, Prune: true}
		_, unnamed, err := prune.Write(&ending{Context: t.Context(), after: i}, placesOf(base, "eks", "lab")...)
		after := state(t, base)
		if err != nil {
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("step %d: something stayed changed (-before +after):\n%s", i, diff)
			}
			continue
		}
		if diff := cmp.Diff(Unnamed{Removed: []string{"kind"}}, unnamed, visible); i == 0 || diff != "" {
			t.Errorf("after %d steps (-want +got):\n%s", i, diff)
		}
		if _, there := after["kind"]; there {
			t.Error("the place is there")
		}
		if diff := cmp.Diff(headerOf(topOrigin)+"eks\nlab\n", after[topFile]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return
	}
}

// TestTwoTops: of two runs at the same time, each with an overlay of its own, the list has both.
func TestTwoTops(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "overlays/kustomization.yaml"), "")
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			own := string(rune('a' + i))
			places := placesOf(base, "all", own)
			places[1].Overlay = filepath.Join(base, "overlays")
			_, _, errs[i] = Top{Dir: base, Prune: true}.Write(t.Context(), places...)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	want := headerOf(topOrigin) + "a\toverlays\nall\nb\toverlays\nc\toverlays\nd\toverlays\n"
	if diff := cmp.Diff(want, state(t, base)[topFile]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTopList: what a hand or a merge in git leaves in the list names no directory to remove.
func TestTopList(t *testing.T) {
	base := t.TempDir()
	mustWrite(t, filepath.Join(base, "out/alone"), "", bundle("ml/a", "worker: w"))
	mustWrite(t, filepath.Join(base, "beside"), "", bundle("ml/a", "worker: w"))
	put(t, filepath.Join(base, "out", topFile),
		headerOf(topOrigin)+"<<<<<<< HEAD\neks\n=======\n.\n..\n../beside\nalone/a\n/\n\n>>>>>>> main\n")
	before := state(t, base)
	out := filepath.Join(base, "out")
	_, unnamed, err := Top{Dir: out, Prune: true}.Write(t.Context(), placesOf(out, "eks")...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Unnamed{}, unnamed, visible); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	after := state(t, base)
	if after["out/"+topFile] != headerOf(topOrigin)+"eks\n" {
		t.Errorf("%q", after["out/"+topFile])
	}
	for name := range after {
		if before[name] == "" {
			delete(after, name)
		}
	}
	before["out/"+topFile] = after["out/"+topFile]
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	put(t, filepath.Join(out, topFile), "mine\n")
	if _, _, err := (Top{Dir: out}).Write(t.Context(), placesOf(out, "eks")...); err == nil {
		t.Error("a file of somebody's was replaced")
	}
}
