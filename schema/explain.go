package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// Field documents one field of the schema.
type Field struct {
	Path     string
	Doc      string // the sentence above it in job.cue
	Type     string // what it may hold, in words
	Default  string // empty where it has none
	Required bool
}

// Explain returns the field at a dotted path of a TrainingJob, or of an Environment, and the fields directly below it.
// The empty path is the document itself.
func Explain(kind, path string) (Field, []Field, error) {
	s := jobShape()
	if kind == names.KindEnvironment {
		s = environmentShape()
	}
	at := Field{Path: path, Type: s.typeWords()}
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
	for i, name := range names {
		name, _, _ = strings.Cut(name, "[")
		if s.kind == listKind {
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
			at = Field{Path: strings.Join(names[:i+1], "."), Type: s.typeWords()}
			continue
		}
		f := s.field(name)
		if f == nil {
			return at, nil, fmt.Errorf("%s: unknown field%s", strings.Join(names[:i+1], "."), (&checker{}).known(name, s, nil))
		}
		at, s = f.explain(here), f.shape
	}
	if s.kind == listKind {
		s = s.elem
	}
	var below []Field
	for _, f := range s.fields {
		below = append(below, f.explain(path))
	}
	return at, below, nil
}

func (f *field) explain(parent string) Field {
	out := Field{Path: strings.TrimPrefix(parent+"."+f.name, "."), Doc: f.doc, Required: f.required, Type: f.shape.typeWords()}
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
	case s.kind == listKind && s.elem.scalar != nil:
		return "a list, each " + s.elem.scalar.words()
	case s.kind == listKind:
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
