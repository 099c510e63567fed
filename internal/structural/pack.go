package structural

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// packed is a Schema as data. Schemas that are alike are kept once, since an environment has a job's many times over:
// those of fields and of elements are indexes, and come before the schemas that they are of.
type packed struct {
	Kind   yamldoc.Kind  `json:"kind"`
	Open   bool          `json:"open,omitempty"`
	Fields []packedField `json:"fields,omitempty"`
	Elem   *int          `json:"elem,omitempty"`
	Keys   *restriction  `json:"keys,omitempty"`
	OneOf  []string      `json:"oneOf,omitempty"`
	Exact  bool          `json:"exact,omitempty"`
	Limits *limits       `json:"limits,omitempty"`
	Scalar *restriction  `json:"scalar,omitempty"`
}

type packedField struct {
	Name     string   `json:"name"`
	Doc      string   `json:"doc,omitempty"`
	Required bool     `json:"required,omitempty"`
	Schema   int      `json:"schema"`
	Value    *value   `json:"value,omitempty"`
	Same     []string `json:"same,omitempty"`
	Create   bool     `json:"create,omitempty"`
}

// pack is all schemas below some, and the indexes of those.
type pack struct {
	Schemas []packed `json:"schemas"`
	Roots   []int    `json:"roots"`

	known map[string]int // what is packed, by its JSON
}

// Pack is schemas as data, with which Unpack needs no CUE.
func Pack(schemas ...*Schema) ([]byte, error) {
	p := pack{known: map[string]int{}}
	for _, s := range schemas {
		index, err := p.add(s)
		if err != nil {
			return nil, err
		}
		p.Roots = append(p.Roots, index)
	}
	return p.text()
}

// text has each schema in a line of its own, so that a change of one is seen as such.
func (p *pack) text() ([]byte, error) {
	out := []byte("{\"schemas\":[\n")
	for i, s := range p.Schemas {
		if i > 0 {
			out = append(out, ",\n"...)
		}
		line, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("packing a schema: %w", err)
		}
		out = append(out, line...)
	}
	roots, err := json.Marshal(p.Roots)
	if err != nil {
		return nil, fmt.Errorf("packing a schema: %w", err)
	}
	return append(append(append(out, "\n],\"roots\":"...), roots...), "}\n"...), nil
}

func (p *pack) add(s *Schema) (int, error) {
	out := packed{Kind: s.Kind, Open: s.open, OneOf: s.OneOf, Exact: s.exact, Limits: s.limits}
	if s.scalar != nil {
		out.Scalar = s.scalar.known()
	}
	if s.keys != nil {
		out.Keys = s.keys.known()
	}
	if s.Elem != nil {
		elem, err := p.add(s.Elem)
		if err != nil {
			return 0, err
		}
		out.Elem = &elem
	}
	for _, f := range s.Fields {
		field := packedField{Name: f.Name, Doc: f.doc, Required: f.required, Same: f.Same, Create: f.create}
		if f.Value != nil {
			field.Value = &value{f.Value.Kind, f.Value.Text}
		}
		var err error
		if field.Schema, err = p.add(f.Schema); err != nil {
			return 0, err
		}
		out.Fields = append(out.Fields, field)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return 0, fmt.Errorf("packing a schema: %w", err)
	}
	index, known := p.known[string(text)]
	if !known {
		index = len(p.Schemas)
		p.known[string(text)] = index
		p.Schemas = append(p.Schemas, out)
	}
	return index, nil
}

// Unpack returns the schemas that Pack was given. formats are those of NewCompiler.
func Unpack(data []byte, formats map[string]func(text string) bool) ([]*Schema, error) {
	var p pack
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("unpacking a schema: %w", err)
	}
	all := make([]*Schema, len(p.Schemas))
	for i := range p.Schemas {
		all[i] = p.Schemas[i].schema(all[:i], formats)
	}
	roots := make([]*Schema, len(p.Roots))
	for i, index := range p.Roots {
		roots[i] = all[index]
	}
	return roots, nil
}

// schema is what was packed, of schemas that come before it. Those that are alike are one: nobody changes them.
func (in *packed) schema(before []*Schema, formats map[string]func(text string) bool) *Schema {
	s := &Schema{Kind: in.Kind, open: in.Open, OneOf: in.OneOf, exact: in.Exact, limits: in.Limits}
	s.scalar, s.keys = in.Scalar.scalar(formats), in.Keys.scalar(formats)
	if in.Elem != nil {
		s.Elem = before[*in.Elem]
	}
	for _, f := range in.Fields {
		field := &Field{
			Name: f.Name, doc: f.Doc, required: f.Required, Schema: before[f.Schema], Same: f.Same, create: f.Create,
		}
		if f.Value != nil {
			field.Value = &Node{Kind: f.Value.Kind, Text: f.Value.Text, constant: &sync.Map{}}
		}
		if f.Create {
			field.whole = field.Schema.whole()
		}
		if field.Value != nil || field.Same != nil || field.create {
			s.adds++
		}
		s.Fields = append(s.Fields, field)
	}
	return s
}

// scalar is what was packed, and nil of nothing.
func (r *restriction) scalar(formats map[string]func(text string) bool) *scalar {
	if r == nil {
		return nil
	}
	r.parses = formats[r.Format]
	return &scalar{known: func() *restriction { return r }}
}
