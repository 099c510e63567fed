// Package structural holds YAML against the structure of CUE definitions, and knows nothing of what they define.
//
// Input: CUE files, and the bytes of documents.
// Output: a [Schema] of each definition, the documents as trees of [Node], which are decoded with the schema's
// defaults, or every mistake with its position.
// Invariant: each place yields one mistake at most, none hides another, and what is accepted is what CUE accepts.
package structural

import (
	"slices"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Schema is what one definition allows at one place.
type Schema struct {
	Kind   yamldoc.Kind
	open   bool // a mapping without a schema of its own: any field
	Fields []*Field
	Elem   *Schema  // of a list, or of a mapping's values
	keys   *scalar  // of a mapping of values
	OneOf  []string // fields of which at most one may be given,
	exact  bool     // or exactly one
	limits *limits  // of a list, nil where any number of items may stand
	scalar *scalar
	adds   int // fields that a document may lack and a completed one has, of a packed schema
}

// Field is one field of a mapping.
type Field struct {
	Name     string
	doc      string
	required bool
	Schema   *Schema
	Value    *Node    // the default, if it is a literal,
	Same     []string // or the path of the field that it equals
	create   bool     // the mapping is there even when an author leaves it out
	whole    *Node    // what then stands there, of a packed schema, where that is always the same
}

// Field returns a field by name, nil where there is none.
func (s *Schema) Field(name string) *Field {
	for _, f := range s.Fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Names returns the field names of a mapping, sorted.
func (s *Schema) Names() []string {
	out := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		out[i] = f.Name
	}
	slices.Sort(out)
	return out
}
