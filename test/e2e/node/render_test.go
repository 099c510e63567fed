package node

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// golden is the manifest of a fixture with an overlay. It is held to what tegen render prints now: what is applied in these
// tests is no older text.
func golden(t *testing.T, fixture, overlay string) (file string) {
	t.Helper()
	file = filepath.Join(root, "golden", fixture, overlay+".yaml")
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name, text := readFixture(t, fixture)
	if diff := cmp.Diff(string(want), string(rendering(t, name, text, overlay))); diff != "" {
		t.Fatalf("%s is not what is rendered (-golden +rendered): run make golden\n%s", file, diff)
	}
	return file
}

func readFixture(t *testing.T, fixture string) (name, text string) {
	t.Helper()
	name = filepath.Join(root, "fixtures/valid", fixture+".yaml")
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return name, string(content)
}

// rendering is what tegen render prints of a job with an overlay; base is none.
func rendering(t *testing.T, name, text, overlay string) []byte {
	t.Helper()
	out, sources := &krm.Output{}, []schema.Source{{Name: name, Data: []byte(text)}}
	var err error
	if overlay == "base" {
		var jobs []*schema.Job
		if jobs, err = schema.Load(sources); err == nil {
			out.Bundles, err = render.Jobs(jobs, nil)
		}
	} else {
		out, err = krm.Overlay(filepath.Join(root, "overlays", overlay), sources)
	}
	if err != nil {
		t.Fatalf("rendering %s: %v", name, err)
	}
	var manifest bytes.Buffer
	if err := out.Write(&manifest); err != nil {
		t.Fatalf("rendering %s: %v", name, err)
	}
	return manifest.Bytes()
}

// TestGolden needs no lab: that the manifests are what is rendered is known before one starts.
func TestGolden(t *testing.T) {
	t.Parallel()
	golden(t, "imagenet", "kind")
	golden(t, "node-loss", "base")
}
