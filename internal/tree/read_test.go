package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRead: what was written is what is read, in order, below any directory; what begins with a dot is nobody's.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, filepath.Join(dir, "kind"), "kind: Namespace\n", bundle("ml/bert", "service: 1", "worker: 2"))
	mustWrite(t, filepath.Join(dir, "eks"), "", bundle("ml/bert", "worker: 3"))
	put(t, filepath.Join(dir, ".git", "config"), "x")
	put(t, filepath.Join(dir, "eks", ".hidden"), "x")
	files, err := Read(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Path)
		if text, err := os.ReadFile(filepath.Join(dir, f.Path)); err != nil || string(text) != string(f.Content) {
			t.Errorf("%s: got %q, want %q: %v", f.Path, f.Content, text, err)
		}
	}
	want := []string{
		"eks/bert/kustomization.yaml", "eks/bert/worker.yaml",
		"kind/bert/kustomization.yaml", "kind/bert/service.yaml", "kind/bert/worker.yaml",
		"kind/overlay-resources/kustomization.yaml", "kind/overlay-resources/resources.yaml",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestReadErrors: what a render did not leave like that is refused, all of it at once.
func TestReadErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		max    int64
		want   []string
	}{
		"foreign files": {
			change: func(t *testing.T, dir string) {
				put(t, filepath.Join(dir, "README.md"), "# Jobs\n")
				put(t, filepath.Join(dir, "bert", "note.yaml"), "kind: ConfigMap\n")
			},
			want: []string{"README.md was not written by tegen: move it out of", "note.yaml was not written by tegen"},
		},
		"link": {
			change: func(t *testing.T, dir string) {
				if err := os.Symlink("/etc/passwd", filepath.Join(dir, "bert", "link.yaml")); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{"link.yaml is a symbolic link"},
		},
		"missing": {
			change: func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "bert", "service.yaml")) },
			want: []string{
				"bert is not as tegen rendered it: kustomization.yaml lists service.yaml, worker.yaml, and there are " +
					"worker.yaml: render it again",
			},
		},
		"no kustomization": {
			change: func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "bert", "kustomization.yaml")) },
			want:   []string{"kustomization.yaml lists no files, and there are service.yaml, worker.yaml"},
		},
		"left over": {
			change: func(t *testing.T, dir string) {
				put(t, filepath.Join(dir, "bert", "etcd.yaml"), signature+"TrainingJob ml/bert; x\n")
			},
			want: []string{"lists service.yaml, worker.yaml, and there are etcd.yaml, service.yaml, worker.yaml"},
		},
		"nothing": {
			change: func(t *testing.T, dir string) {
				if err := os.RemoveAll(filepath.Join(dir, "bert")); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{"there is nothing in it that tegen rendered: render into it first, with 'tegen render -o "},
		},
		"too much": {
			change: func(*testing.T, string) {},
			max:    100,
			want:   []string{"it holds more than is published at once"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mustWrite(t, dir, "", bundle("ml/bert", "service: 1", "worker: 2"))
			c.change(t, dir)
			limit := c.max
			if limit == 0 {
				limit = 1 << 20
			}
			_, err := Read(dir, limit)
			if err == nil {
				t.Fatal("nothing was found")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got:\n%v\nwant: %s", err, want)
				}
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "nosuch"), 1); err == nil {
		t.Error("a directory that does not exist was read")
	}
}
