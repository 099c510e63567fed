package render

import "github.com/tegen-dev/tegen/generators"

// Objects are what the bundle's files hold. They are generated again rather than kept: of all jobs at once they would
// take more memory than their YAML, and generation is a pure function that takes microseconds.
func (b *Bundle) Objects() []generators.Concern {
	if len(b.Files) == 0 {
		return nil
	}
	names := make([]string, len(b.Files))
	for i, f := range b.Files {
		names[i] = f.Concern
	}
	return generators.Generate(b.Job, names...)
}
