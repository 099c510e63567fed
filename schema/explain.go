package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/definition"
)

// Explain returns the field at a dotted path of a TrainingJob, or of an Environment, and the fields directly below it.
// The empty path is the document itself.
func Explain(kind, path string) (Field, []Field, error) {
	at, below, err := schemaOf(kind).Explain(path, hints(kind))
	if err == nil {
		return at, below, nil
	}
	for _, other := range ownKinds {
		_, _, elsewhere := schemaOf(other).Explain(path, hints(other))
		switch {
		case path == other:
			return at, nil, fmt.Errorf("%s is a kind: '%s' begins with its fields", path, explains(other, ""))
		case other != kind && elsewhere == nil:
			return at, nil, fmt.Errorf("%s: no field of kind %s but of %s: '%s'", path, kind, other,
				explains(other, path))
		}
	}
	return at, nil, err
}

func schemaOf(kind string) *structural.Schema {
	if kind == names.KindEnvironment {
		return definition.Environment()
	}
	return definition.Job()
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
