package schema

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// explanation documents one field of a schema.
type explanation struct {
	Path     string
	Doc      string // the comment above it in the CUE file
	Type     string // what it may hold, in words
	Default  string // empty where it has none
	Required bool
}

// explain returns the field at a dotted path, and the fields directly below it. The empty path is the root. hint ends the
// message about an unknown field.
func (s *shape) explain(path string, hint func(path, name string, known []string) string) (explanation, []explanation, error) {
	at := explanation{Path: path, Type: s.typeWords()}
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
	for i, name := range names {
		name, _, _ = strings.Cut(name, "[")
		if s.kind == yamldoc.List {
			s = s.elem
		}
		here := strings.Join(names[:i], ".")
		switch {
		case s.scalar != nil:
			return at, nil, fmt.Errorf("%s is one value and has no fields", here)
		case s.open:
			return at, nil, fmt.Errorf("%s takes any field", here)
		case s.elem != nil: // a mapping of names to values
			s = s.elem
			at = explanation{Path: strings.Join(names[:i+1], "."), Type: s.typeWords()}
			continue
		}
		f := s.field(name)
		if f == nil {
			return at, nil, fmt.Errorf("%s: unknown field%s", strings.Join(names[:i+1], "."), hint("", name, s.names()))
		}
		at, s = f.explain(here), f.shape
	}
	if s.kind == yamldoc.List {
		s = s.elem
	}
	var below []explanation
	for _, f := range s.fields {
		below = append(below, f.explain(path))
	}
	return at, below, nil
}

func (f *field) explain(parent string) explanation {
	out := explanation{Path: strings.TrimPrefix(parent+"."+f.name, "."), Doc: f.doc, Required: f.required, Type: f.shape.typeWords()}
	switch {
	case f.value != nil:
		out.Default = f.value.text
	case f.same != nil:
		out.Default = "as " + strings.Join(f.same, ".")
	}
	return out
}

// typeWords says what a place may hold.
func (s *shape) typeWords() string {
	switch {
	case s.scalar != nil:
		return s.scalar.words()
	case s.kind == yamldoc.List && s.elem.scalar != nil:
		return "a list, each " + s.elem.scalar.words()
	case s.kind == yamldoc.List:
		return "a list of mappings" + s.elem.alternatives()
	case s.elem != nil:
		return "a mapping of names to values, each " + s.elem.typeWords()
	case s.open:
		return "a mapping of any fields"
	}
	return "a mapping" + s.alternatives()
}

func (s *shape) alternatives() string {
	switch {
	case s.oneOf == nil:
		return ""
	case s.exact:
		return " with one of " + strings.Join(s.oneOf, ", ")
	}
	return " with at most one of " + strings.Join(s.oneOf, ", ")
}
