package tree

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/test/cases"
)

// TestObjectLines holds the reading of lines against a parser, over everything that is rendered.
func TestObjectLines(t *testing.T) {
	files, err := cases.Write("../..", t.TempDir())
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := manifest.Read(file, text)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, obj := range objects {
			m, err := meta.Accessor(obj)
			if err != nil {
				t.Fatal(err)
			}
			gvk, err := manifest.GVK(obj)
			if err != nil {
				t.Fatal(err)
			}
			name := m.GetName()
			if m.GetNamespace() != "" {
				name = m.GetNamespace() + "/" + name
			}
			want = append(want, fmt.Sprintf("x.yaml %s %s %s\n", gvk.GroupVersion(), gvk.Kind, name))
		}
		if diff := cmp.Diff(want, objectLines("x.yaml", text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// TestObjectLinesForms: what kustomize prints, whose keys are sorted, and values that need quotes.
func TestObjectLinesForms(t *testing.T) {
	for text, want := range map[string][]string{
		"apiVersion: v1\ndata:\n  text: |\n    kind: Pod\n    metadata:\n      name: no\nkind: ConfigMap\nmetadata:\n" +
			"  annotations:\n    name: no\n  name: \"1\"\n": {"f v1 ConfigMap 1\n"},
		"kind: Secret\nmetadata:\n  namespace: 'ml'\n  name: s\napiVersion: v1": {"f v1 Secret ml/s\n"},
		"apiVersion: v1\nkind: A\nmetadata:\n  name: a\nspec:\n  name: b\n---\napiVersion: v2\nkind: B\nmetadata:\n  " +
			"name: b\n": {"f v1 A a\n", "f v2 B b\n"},
		"":                      {"f\n"},
		"not: an object\n":      {"f\n"},
		"kind: List\nitems: []": {"f\n"},
	} {
		if diff := cmp.Diff(want, objectLines("f", []byte(text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestInventory: after whatever renders of some of the jobs, with prune or without, the inventory is that of a render
// of all that is there.
func TestInventory(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	var there []render.Bundle // the last of each job
	for range 60 {
		var now []render.Bundle
		for _, name := range []string{"a", "b", "c", "d"} {
			if chance.IntN(2) == 0 {
				continue
			}
			var files []string
			for _, concern := range []string{"etcd", "worker"} {
				if chance.IntN(3) > 0 {
					files = append(files, fmt.Sprintf("%s: apiVersion: v1\nkind: X\nmetadata:\n  name: n%d", concern,
						chance.IntN(9)))
				}
			}
			now = append(now, bundle("ml/"+name, files...))
		}
		prune := chance.IntN(3) == 0
		if _, err := Write(t.Context(), Place{Dir: dir, Bundles: now, Prune: prune}); err != nil {
			t.Fatal(err)
		}
		there = slices.DeleteFunc(there, func(b render.Bundle) bool {
			return prune || slices.ContainsFunc(now, func(n render.Bundle) bool {
				return n.Summary.Name == b.Summary.Name
			})
		})
		there = append(there, now...)
		fresh := t.TempDir()
		mustWrite(t, fresh, "", there...)
		if diff := cmp.Diff(state(t, fresh), state(t, dir)); diff != "" {
			t.Fatalf("(-rendered at once +in steps):\n%s", diff)
		}
	}
}

// TestInventoryInTheWay: a file of that name that tegen did not write is not replaced, and nothing else is written. One
// that git left with the marks of a conflict is.
func TestInventoryInTheWay(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, inventoryFile), "mine\n")
	before := state(t, dir)
	err := writeTo(t.Context(), dir, []render.Bundle{bundle("ml/a", "worker: w")}, nil)
	if err == nil || !strings.Contains(err.Error(), "tegen-inventory.txt was not written by tegen") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, state(t, dir)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	put(t, filepath.Join(dir, inventoryFile), inventory("a/worker.yaml")+"<<<<<<< HEAD\nb/worker.yaml\n=======\n")
	mustWrite(t, dir, "", bundle("ml/a", "worker: w"))
	if diff := cmp.Diff(inventory("a/kustomization.yaml", "a/worker.yaml"), state(t, dir)[inventoryFile]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
