package structural

import (
	"reflect"
	"sync"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// DecodeCompleted is Completed and Decode in one, without a node for each default: those make nine tenths of a
// completed tree, and are the same in all documents but for a few. What into points to is a zero value as far as the
// schema goes.
func (n *Node) DecodeCompleted(s *Schema, into any) error {
	v := reflect.ValueOf(into).Elem()
	d := defaultsDecoder{root: n, schema: s}
	to := setterOf(v.Type())
	if d.value(n, s, to, v, false); !d.otherCase {
		return d.err
	}
	for _, index := range to.fields {
		v.FieldByIndex(index).SetZero()
	}
	return Completed(n, s).Decode(into)
}

// defaultsDecoder fills Go values with what a tree says, and with the schema's defaults where it says nothing.
type defaultsDecoder struct {
	root   *Node // from which references are followed, and its schema
	schema *Schema
	err    error // the first
	// otherCase says that a key has a field's name in another case. The check refuses it, but encoding/json would read
	// it, and both may be there.
	otherCase bool
}

func (d *defaultsDecoder) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

// value fills v, which is zero. fresh says that all of it is what n says, so that it may be overwritten as a whole.
func (d *defaultsDecoder) value(n *Node, s *Schema, to *setter, v reflect.Value, fresh bool) {
	switch {
	case s == nil || s.scalar != nil || s.open || n.constant != nil || n.Kind != yamldoc.Map && n.Kind != yamldoc.List:
		d.note(to.set(n, v))
	case to.form == pointer:
		v.Set(reflect.New(to.typ.Elem()))
		d.value(n, s, to.elem, v.Elem(), true)
	case to.form == list && s.Kind == yamldoc.List && n.Kind == yamldoc.List:
		v.Set(reflect.MakeSlice(to.typ, len(n.Items), len(n.Items)))
		for i, item := range n.Items {
			d.value(item, s.Elem, to.elem, v.Index(i), true)
		}
	case to.form == structure && s.Kind == yamldoc.Map && s.Elem == nil && n.Kind == yamldoc.Map:
		d.structure(n, s, to, v, fresh)
	case s.Kind == yamldoc.Map && s.Elem != nil: // whose values have no defaults
		d.note(to.set(n, v))
	default: // a type that reads JSON of its own
		whole := n.opened()
		CompleteIn(whole, s, d.root)
		d.note(to.set(whole, v))
	}
}

func (d *defaultsDecoder) structure(n *Node, s *Schema, to *setter, v reflect.Value, fresh bool) {
	defaults := defaultsFor(s, to)
	if fresh {
		v.Set(defaults.zero)
	}
	for i := range n.Fields {
		e := &n.Fields[i]
		name := to.known(e.Key)
		if name == "" {
			continue
		}
		if name != e.Key {
			d.otherCase = true
			return
		}
		into := v.FieldByIndex(to.fields[name])
		into.SetZero() // of a default
		var below *Schema
		if f := s.Field(e.Key); f != nil {
			below = f.Schema
		}
		d.value(e.Value, below, to.below[name], into, true)
	}
	for i := range defaults.fields {
		f := &defaults.fields[i]
		if fresh && f.inZero || n.Entry(f.of.Name) != nil {
			continue
		}
		if child := d.byDefault(f.of); child != nil {
			d.value(child, f.of.Schema, f.to, v.FieldByIndex(f.index), true)
		}
	}
}

// byDefault is what a field is that nobody wrote, nil where it has no default.
func (d *defaultsDecoder) byDefault(f *Field) *Node {
	switch {
	case f.Value != nil:
		return f.Value
	case f.Same != nil:
		return d.resolve(f.Same, 0)
	case f.create && f.whole != nil:
		return f.whole
	case f.create:
		return empty
	}
	return nil
}

// empty is a mapping that is there though nobody wrote it.
var empty = &Node{Kind: yamldoc.Map}

// resolve returns the value of a referenced field: its own, or its default, which may be a reference in turn. Two
// fields that refer to each other and are both left out have none.
func (d *defaultsDecoder) resolve(ref []string, hops int) *Node {
	n, s := d.root, d.schema
	var f *Field
	for _, name := range ref {
		if n != nil {
			n = n.Field(name)
		}
		if f = s.Field(name); f == nil {
			return n
		}
		s = f.Schema
	}
	switch {
	case n != nil:
		return n
	case f.Same == nil:
		return f.Value
	case hops > maxHops:
		return nil
	}
	return d.resolve(f.Same, hops+1)
}

// maxHops is more than the longest chain of defaults.
const maxHops = 8

// structDefaults are the defaults of a schema's fields in a Go type.
type structDefaults struct {
	zero   reflect.Value // with all that are the same each time, and share nothing that could be changed
	fields []defaultField
}

type defaultField struct {
	of     *Field
	to     *setter
	index  []int
	inZero bool
}

var allDefaults sync.Map // of defaultsKey to *structDefaults

type defaultsKey struct {
	s *Schema
	t reflect.Type
}

func defaultsFor(s *Schema, to *setter) *structDefaults {
	key := defaultsKey{s, to.typ}
	if known, ok := allDefaults.Load(key); ok {
		return known.(*structDefaults)
	}
	out := &structDefaults{zero: reflect.New(to.typ).Elem()}
	for _, f := range s.Fields {
		if f.Value == nil && f.Same == nil && !f.create || to.below[f.Name] == nil {
			continue
		}
		field := defaultField{of: f, to: to.below[f.Name], index: to.fields[f.Name]}
		constant := f.Value
		if constant == nil && f.Same == nil {
			constant = f.whole
		}
		if constant != nil && constant.constant != nil {
			value := reflect.New(field.to.typ).Elem()
			if err := field.to.set(constant, value); err == nil && shareable(value) {
				out.zero.FieldByIndex(field.index).Set(value)
				field.inZero = true
			}
		}
		out.fields = append(out.fields, field)
	}
	allDefaults.Store(key, out)
	return out
}
