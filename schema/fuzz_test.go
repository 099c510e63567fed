package schema

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/definition"
)

// addFixtures has a fuzz test begin with all fixtures.
func addFixtures(f *testing.F) {
	f.Helper()
	for _, kind := range []string{"valid", "invalid"} {
		files, err := filepath.Glob("../fixtures/" + kind + "/*.yaml")
		if err != nil || len(files) < 100 {
			f.Fatalf("%d fixtures: %v", len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
}

// FuzzDefinitions: of any document the definitions as data say, in the same words, what those of CUE's compiler say,
// and complete it alike.
func FuzzDefinitions(f *testing.F) {
	addFixtures(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, doc := range yamldoc.Split("f.yaml", text) {
			first, second := structural.Parse(doc), structural.Parse(doc)
			if first.Root == nil {
				continue
			}
			packed, compiled := newChecker(names.KindTrainingJob), newChecker(names.KindTrainingJob)
			packed.Check(first.Root, definition.Job(), nil, first.Root.At)
			compiled.Check(second.Root, compiledJob(), nil, second.Root.At)
			if diff := cmp.Diff(compiled.Errs, packed.Errs); diff != "" {
				t.Fatalf("(-compiled +packed):\n%s", diff)
			}
			if len(packed.Errs) > 0 {
				continue
			}
			a := structural.Completed(first.Root, definition.Job()).AppendJSON(nil)
			b := structural.Completed(second.Root, compiledJob()).AppendJSON(nil)
			if string(a) != string(b) {
				t.Fatalf("completed by packed definitions %s, by compiled ones %s", a, b)
			}
		}
	})
}
