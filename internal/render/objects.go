package render

import (
	"slices"

	"github.com/tegen-dev/tegen/generators"
)

// Objects are what the bundle's files hold. Those of tegen's own generators are generated again rather than kept: of
// all jobs at once they would take more memory than their YAML, and generation is a pure function that takes
// microseconds. An added generator may be slow, so its objects are kept.
func (b *Bundle) Objects() []generators.Concern {
	if len(b.Files) == 0 {
		return nil
	}
	names := make([]string, len(b.Files))
	for i, f := range b.Files {
		names[i] = f.Concern
	}
	return slices.Concat(generators.Generate(b.Job, names...), b.more)
}
