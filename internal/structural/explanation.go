package structural

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Explanation documents one field of a schema.
type Explanation struct {
	Path     string
	Doc      string // the comment above it in the CUE file
	Type     string // what it may hold, in words
	Default  string // empty where it has none
	Required bool
}

// Explain returns the field at a dotted path, and the fields directly below it. The empty path is the root. hint ends
// the message about an unknown field.
func (s *Schema) Explain(path string, hint func(path, name string, known []string) string) (Explanation, []Explanation,
	error,
) {
	at := Explanation{Path: path, Type: s.Words()}
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
	for i, name := range names {
		name, _, _ = strings.Cut(name, "[")
		if s.Kind == yamldoc.List {
			s = s.Elem
		}
		here := strings.Join(names[:i], ".")
		switch {
		case s.scalar != nil:
			return at, nil, fmt.Errorf("%s is one value and has no fields", here)
		case s.open:
			return at, nil, fmt.Errorf("%s takes any field", here)
		case s.Elem != nil: // a mapping of names to values
			s = s.Elem
			at = Explanation{Path: strings.Join(names[:i+1], "."), Type: s.Words()}
			continue
		}
		f := s.Field(name)
		if f == nil {
			whole := strings.Join(names[:i+1], ".")
			return at, nil, fmt.Errorf("%s: unknown field%s", whole, hint(whole, name, s.Names()))
		}
		at, s = f.explain(here), f.Schema
	}
	if s.Kind == yamldoc.List {
		s = s.Elem
	}
	var below []Explanation
	for _, f := range s.Fields {
		below = append(below, f.explain(path))
	}
	return at, below, nil
}

func (f *Field) explain(parent string) Explanation {
	out := Explanation{
		Path: strings.TrimPrefix(parent+"."+f.Name, "."), Doc: f.doc, Required: f.required,
		Type: f.Schema.Words(),
	}
	switch {
	case f.Value != nil:
		out.Default = f.Value.Text
	case f.Same != nil:
		out.Default = "as " + strings.Join(f.Same, ".")
	}
	return out
}

// Words says what a place may hold.
func (s *Schema) Words() string {
	switch {
	case s.scalar != nil:
		return s.scalar.words()
	case s.Kind == yamldoc.List && s.Elem.scalar != nil:
		return "a list, each " + s.Elem.scalar.words()
	case s.Kind == yamldoc.List:
		return "a list of mappings" + s.Elem.alternatives()
	case s.Elem != nil:
		return "a mapping of names to values, each " + s.Elem.Words()
	case s.open:
		return "a mapping of any fields"
	}
	return "a mapping" + s.alternatives()
}

func (s *Schema) alternatives() string {
	switch {
	case s.OneOf == nil:
		return ""
	case s.exact:
		return " with one of " + strings.Join(s.OneOf, ", ")
	}
	return " with at most one of " + strings.Join(s.OneOf, ", ")
}
