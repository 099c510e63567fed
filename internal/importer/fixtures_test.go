package importer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// unread are the fixtures with what import tells, and does not read: podTemplate of the pods that serve the rendezvous,
// and settings of those that fetch.
var unread = map[string]bool{"roles-companion": true, "roles-etcd": true}

// TestFixtures holds the promise of import against every job that the project shows: what a fixture renders is imported,
// and the imported jobs render the same bytes, with nothing lost and nothing to say.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/valid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if unread[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := rendered(t, text)
			out := importer.Jobs([]schema.Source{{Name: "rendered.yaml", Data: want}})
			for _, n := range out.Notes {
				t.Error(n)
			}
			if diff := cmp.Diff(string(want), string(rendered(t, out.YAML))); diff != "" {
				t.Errorf("imported as\n%s(-want +got):\n%s", out.YAML, diff)
			}
		})
	}
}

func rendered(t *testing.T, jobs []byte) []byte {
	t.Helper()
	loaded, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: jobs}})
	if err != nil {
		t.Fatalf("%v\n%s", err, jobs)
	}
	bundles, err := render.Jobs(loaded, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, jobs)
	}
	var b bytes.Buffer
	if err := render.Write(&b, bundles); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
