package node

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// rendered is a file of what tegen render prints of a fixture with an overlay.
func rendered(t *testing.T, fixture, overlay string) (file string) {
	t.Helper()
	name, text := readFixture(t, fixture)
	return manifest(t, name, text, overlay)
}

// manifest is a file of what tegen render prints of a job with an overlay.
func manifest(t *testing.T, name, text, overlay string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(file, rendering(t, name, text, overlay), 0o600); err != nil {
		t.Fatal(err)
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

// rendering is what tegen render prints of a job with an overlay; base is none. kubectl applies it here, so that names
// have no hash that nobody would prune.
func rendering(t *testing.T, name, text, overlay string) []byte {
	t.Helper()
	if !strings.Contains(text, "\nspec:\n") {
		t.Fatalf("%s has no spec to say gitops: false in", name)
	}
	text = strings.ReplaceAll(text, "\nspec:\n", "\nspec:\n  gitops: false\n")
	out, sources := &krm.Output{}, []schema.Source{{Name: name, Data: []byte(text)}}
	var err error
	if overlay == "base" {
		var jobs []*job.Job
		if jobs, err = schema.Load(sources); err == nil {
			out.Bundles, err = render.Jobs(jobs, render.Options{})
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
