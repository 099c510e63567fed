package tree

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/test/cases"
)

// workloadText is a Job as the encoder prints it, with a record where there is a version.
func workloadText(version, input, image string) string {
	record := ""
	if version != "" {
		record = "  annotations:\n    tegen.dev/input: " + input + "\n    tegen.dev/version: " + version + "\n"
	}
	return "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  namespace: ml\n  labels:\n" +
		"    app.kubernetes.io/managed-by: tegen\n    tegen.dev/job: a\n" + record +
		"spec:\n  template: " + image
}

const serviceText = "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  namespace: ml\n  labels:\n" +
	"    app.kubernetes.io/managed-by: tegen\n    tegen.dev/job: a\nspec:\n  port: "

// TestUpgrade: what becomes of a job's folder, and of its objects in the folder of an overlay, when another version of
// tegen renders it.
func TestUpgrade(t *testing.T) {
	type rendering struct{ version, input, image, port string }
	old := rendering{"v1", "sha256:1", "one", "1"}
	for what, c := range map[string]struct {
		was, is       rendering
		upgrade, keep bool
		want          rendering
		held, moved   bool
		refused       bool
	}{
		"another version, another workload": {
			was: old, is: rendering{"v2", "sha256:1", "two", "2"}, want: old, held: true,
		},
		"the same with --upgrade": {
			was: old, is: rendering{"v2", "sha256:1", "two", "2"}, want: rendering{"v2", "sha256:1", "two", "2"},
			upgrade: true,
		},
		"another version, the same bytes": {was: old, is: rendering{"v2", "sha256:1", "one", "1"}, want: old},
		"another version, the same workload": {
			was: old, is: rendering{"v2", "sha256:1", "one", "2"}, want: rendering{"v2", "sha256:1", "one", "2"},
		},
		"another input": {
			was: old, is: rendering{"v1", "sha256:2", "two", "1"}, want: rendering{"v1", "sha256:2", "two", "1"},
		},
		"another input and version": {
			was: old, is: rendering{"v2", "sha256:2", "two", "1"}, want: rendering{"v2", "sha256:2", "two", "1"},
			moved: true,
		},
		"the same version and input": { // somebody changed the file
			was: old, is: rendering{"v1", "sha256:1", "two", "1"}, want: rendering{"v1", "sha256:1", "two", "1"},
		},
		"no record": {
			was: rendering{"", "", "one", "1"}, is: rendering{"v2", "sha256:1", "two", "2"},
			want: rendering{"", "", "one", "1"}, refused: true,
		},
		"no record, the same workload": {
			was: rendering{"", "", "one", "1"}, is: rendering{"v2", "sha256:1", "one", "2"},
			want: rendering{"v2", "sha256:1", "one", "2"},
		},
		"no record, with --upgrade": {
			was: rendering{"", "", "one", "1"}, is: rendering{"v2", "sha256:1", "two", "2"}, upgrade: true,
			want: rendering{"v2", "sha256:1", "two", "2"},
		},
		"no record, with --keep": {
			was: rendering{"", "", "one", "1"}, is: rendering{"v2", "sha256:1", "two", "2"}, keep: true,
			want: rendering{unknownVersion, "sha256:1", "one", "1"},
		},
	} {
		bundles := func(r rendering) []render.Bundle {
			return []render.Bundle{bundle("ml/a", "service: "+serviceText+r.port,
				"worker: "+workloadText(r.version, r.input, r.image))}
		}
		rest := func(r rendering) []byte {
			const own = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: own\n"
			return []byte(own + "---\n" + serviceText + r.port + "\n---\n" +
				workloadText(r.version, r.input, r.image) + "\n")
		}
		places := map[string]func(dir string, r rendering) Place{
			"folder": func(dir string, r rendering) Place { return Place{Dir: dir, Bundles: bundles(r)} },
			"rest": func(dir string, r rendering) Place {
				return Place{Dir: dir, Rest: rest(r), Bundles: []render.Bundle{{Summary: bundles(r)[0].Summary}}}
			},
		}
		for where, place := range places {
			t.Run(where+"/"+what, func(t *testing.T) {
				base := t.TempDir()
				dir := filepath.Join(base, "out")
				for at, r := range map[string]rendering{"out": c.was, "want": c.want} {
					if _, err := Write(t.Context(), place(filepath.Join(base, at), r)); err != nil {
						t.Fatal(err)
					}
				}
				p := place(dir, c.is)
				p.Upgrade, p.Keep = c.upgrade, c.keep
				differ, others, checked := Check(io.Discard, p)
				before := state(t, dir)
				got, err := Write(t.Context(), p)
				if (err != nil) != c.refused || (checked != nil) != c.refused {
					t.Fatalf("%v, and a check: %v", err, checked)
				}
				if c.refused {
					if !strings.Contains(err.Error(), "ml/a") || !strings.Contains(err.Error(), "--upgrade") {
						t.Error(err)
					}
				} else if len(others[0].Held) != len(got.Held) || (differ > 0) == cmp.Equal(before, state(t, dir)) {
					t.Errorf("a check says %d files and %v, the write %v", differ, others, got.Held)
				}
				if (len(got.Held) > 0) != c.held || (len(got.Moved) > 0) != c.moved {
					t.Errorf("held %v, moved %v", got.Held, got.Moved)
				}
				if diff := cmp.Diff(state(t, filepath.Join(base, "want")), state(t, dir)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestRecord: what is taken out of an object and put in again is where the encoder has put it, in all cases.
func TestRecord(t *testing.T) {
	files, err := cases.Write("../..", t.TempDir())
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range documents(text) {
			version, input, rest := recorded(doc)
			if input == "" {
				continue
			}
			found++
			if diff := cmp.Diff(string(doc), string(record([]byte(rest), version, input))); diff != "" {
				t.Fatalf("%s (-encoded +recorded):\n%s", file, diff)
			}
		}
	}
	if found < 100 {
		t.Errorf("%d objects in %d files alone have a record", found, len(files))
	}
}
