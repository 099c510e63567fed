package tree

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/render"
)

// TestUnclear: a folder that is not as tegen rendered it is not held for an upgrade, because the cause of the change
// can be the edit. It is an error of the write and of the check until one of the flags decides.
func TestUnclear(t *testing.T) {
	const worker = "a/worker.yaml"
	edit := func(name, old, now string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			path := filepath.Join(dir, name)
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), old) {
				t.Fatalf("%s has no %q: %v", name, old, err)
			}
			put(t, path, strings.Replace(string(text), old, now, 1))
		}
	}
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { t.Helper(); remove(t, filepath.Join(dir, name)) }
	}
	for what, c := range map[string]struct {
		change func(t *testing.T, dir string)
		behind string
		rest   bool
		want   string // "" where the job is held
	}{
		"untouched":                  {},
		"another version":            {change: edit(worker, "version: v1", "version: v0")},
		"another image":              {change: edit(worker, "template: one", "template: evil"), want: edited},
		"another Service":            {change: edit("a/service.yaml", "port: 1", "port: 9"), want: edited},
		"a file that is gone":        {change: remove("a/service.yaml"), want: edited},
		"a kustomization":            {change: edit("a/kustomization.yaml", "- service.yaml\n", ""), want: edited},
		"a kustomization without it": {change: edit("a/kustomization.yaml", filesSeal, "# "), want: edited},
		"untouched, transformed":     {rest: true, behind: "sha256:1"},
		"another transformer":        {rest: true, behind: "sha256:2", want: transforms},
		"a transformed object": {
			rest: true, behind: "sha256:1", change: edit("overlay-resources/resources.yaml", "template: one",
				"template: evil"), want: edited,
		},
	} {
		t.Run(what, func(t *testing.T) {
			place := func(dir, behind, version, image string) Place {
				job := bundle("ml/a", "service: "+serviceText+"1", "worker: "+workloadText(version, "sha256:1", image))
				if !c.rest {
					return Place{Dir: dir, Bundles: []render.Bundle{job}}
				}
				rest := serviceText + "1\n---\n" + workloadText(version, "sha256:1", image) + "\n"
				return Place{
					Dir: dir, Rest: []byte(rest), Behind: behind, Bundles: []render.Bundle{{Summary: job.Summary}},
				}
			}
			dir := filepath.Join(t.TempDir(), "out")
			if _, err := Write(t.Context(), place(dir, "sha256:1", "v1", "one")); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(t, dir)
			}
			before := state(t, dir)
			next := place(dir, c.behind, "v2", "two")
			_, _, checked := Check(io.Discard, next)
			got, err := Write(t.Context(), next)
			if c.want == "" {
				if err != nil || checked != nil || len(got.Held) != 1 {
					t.Fatalf("held %v, %v, and a check: %v", got.Held, err, checked)
				}
				return
			}
			for _, err := range []error{err, checked} {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--upgrade") {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
			if diff := cmp.Diff(before, state(t, dir)); diff != "" {
				t.Errorf("something was written (-before +after):\n%s", diff)
			}
			next.Keep = true
			if _, err := Write(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			next.Keep = false
			if got, err := Write(t.Context(), next); err != nil || len(got.Held) != 1 {
				t.Errorf("after --keep: held %v, %v", got.Held, err)
			}
			next.Upgrade = true
			if _, err := Write(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			fresh := filepath.Join(t.TempDir(), "out")
			if _, err := Write(t.Context(), place(fresh, c.behind, "v2", "two")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(state(t, fresh), state(t, dir)); diff != "" {
				t.Errorf("after --upgrade (-fresh +got):\n%s", diff)
			}
		})
	}
}
