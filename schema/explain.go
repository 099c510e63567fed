package schema

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// Explain returns the field at a dotted path of a TrainingJob, or of an Environment, and the fields directly below it.
// The empty path is the document itself.
func Explain(kind, path string) (Field, []Field, error) {
	s := jobSchema()
	if kind == names.KindEnvironment {
		s = environmentSchema()
	}
	return s.Explain(path, meant)
}

// Paths returns every path of a kind's schema, sorted, for completion.
func Paths(kind string) []string {
	var out []string
	var walk func(path string)
	walk = func(path string) {
		_, below, err := Explain(kind, path)
		if err != nil {
			return
		}
		for _, f := range below {
			out = append(out, f.Path)
			if !strings.HasPrefix(f.Path, "spec.defaults.") && !strings.HasPrefix(f.Path, "spec.overrides.") {
				walk(f.Path)
			}
		}
	}
	walk("")
	slices.Sort(out)
	return out
}
