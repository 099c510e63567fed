package structural

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Decode fills what into points to, a zero value, as json.Unmarshal would from the tree's JSON. A type says by its
// tags and by its UnmarshalJSON what it is made of, which is looked at once.
func (n *Node) Decode(into any) error {
	v := reflect.ValueOf(into).Elem()
	return setterOf(v.Type()).set(n, v)
}

// setter fills values of one Go type.
type setter struct {
	typ    reflect.Type
	form   form
	fields map[string][]int // of a struct: where they are, those of embedded structs among them
	below  map[string]*setter
	elem   *setter // of what a pointer, a list or a map holds
}

type form int

const (
	viaJSON form = iota // what encoding/json is asked for
	ownJSON             // a type that has UnmarshalJSON
	structure
	pointer
	list
	mapping
	text
	boolean
	integer
)

var setters sync.Map // of reflect.Type to *setter

func setterOf(t reflect.Type) *setter {
	if s, ok := setters.Load(t); ok {
		return s.(*setter)
	}
	p := planner{}
	s := p.setter(t)
	for t, s := range p { // all are whole now
		setters.Store(t, s)
	}
	return s
}

// planner holds the setters that are being made: a type may hold itself.
type planner map[reflect.Type]*setter

func (p planner) setter(t reflect.Type) *setter {
	if s := p[t]; s != nil {
		return s
	}
	s := &setter{typ: t, form: formOf(t)}
	p[t] = s
	switch s.form {
	case structure:
		s.fields, s.below = map[string][]int{}, map[string]*setter{}
		if !p.fields(s, t, nil) {
			s.form = viaJSON
		}
	case pointer, list, mapping:
		s.elem = p.setter(t.Elem())
	}
	return s
}

func formOf(t reflect.Type) form {
	to := reflect.PointerTo(t)
	switch {
	case to.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return ownJSON
	case to.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return viaJSON
	}
	switch t.Kind() {
	case reflect.Struct:
		return structure
	case reflect.Pointer:
		return pointer
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return list
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && formOf(t.Key()) == text {
			return mapping
		}
	case reflect.String:
		if t != reflect.TypeFor[json.Number]() {
			return text
		}
	case reflect.Bool:
		return boolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return integer
	}
	return viaJSON
}

// fields says no of a struct in which encoding/json would have to choose among fields, or to make one.
func (p planner) fields(s *setter, t reflect.Type, at []int) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		index := append(at[:len(at):len(at)], i)
		if f.Anonymous && name == "" {
			if formOf(f.Type) != structure || !p.fields(s, f.Type, index) {
				return false
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		if s.fields[name] != nil || strings.Contains(options, "string") {
			return false
		}
		s.fields[name], s.below[name] = index, p.setter(f.Type)
	}
	return true
}

// set fills v with what the node says. What is the same in all documents is read once.
func (s *setter) set(n *Node, v reflect.Value) error {
	if n.Kind == yamldoc.Null {
		return nil
	}
	if n.constant == nil {
		return s.read(n, v)
	}
	known, ok := n.constant.Load(s.typ)
	if !ok {
		err := s.read(n, v)
		if err == nil && shareable(v) {
			kept := reflect.New(s.typ).Elem()
			kept.Set(v)
			n.constant.Store(s.typ, kept)
		}
		return err
	}
	v.Set(known.(reflect.Value))
	return nil
}

// shareable says whether a copy of a value shares nothing with it that could be changed.
func shareable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface, reflect.Func, reflect.Chan:
		return v.IsNil()
	case reflect.Struct:
		for i := range v.NumField() {
			if !shareable(v.Field(i)) {
				return false
			}
		}
	case reflect.Array:
		return false
	}
	return true
}

// read goes on behind a mistake, of which it returns the first.
func (s *setter) read(n *Node, v reflect.Value) (err error) {
	note := func(e error) {
		if err == nil {
			err = e
		}
	}
	switch s.form {
	case structure:
		if n.Kind != yamldoc.Map {
			return s.mismatch(n)
		}
		for i := range n.Fields {
			if name := s.known(n.Fields[i].Key); name != "" {
				note(s.below[name].set(n.Fields[i].Value, v.FieldByIndex(s.fields[name])))
			}
		}
	case pointer:
		v.Set(reflect.New(s.typ.Elem()))
		note(s.elem.set(n, v.Elem()))
	case list:
		if n.Kind != yamldoc.List {
			return s.mismatch(n)
		}
		v.Set(reflect.MakeSlice(s.typ, len(n.Items), len(n.Items)))
		for i, item := range n.Items {
			note(s.elem.set(item, v.Index(i)))
		}
	case mapping:
		if n.Kind != yamldoc.Map {
			return s.mismatch(n)
		}
		v.Set(reflect.MakeMapWithSize(s.typ, len(n.Fields)))
		for _, e := range n.Fields {
			value := reflect.New(s.typ.Elem()).Elem()
			note(s.elem.set(e.Value, value))
			v.SetMapIndex(reflect.ValueOf(e.Key).Convert(s.typ.Key()), value)
		}
	default:
		return s.scalar(n, v)
	}
	return err
}

// known is the name of a field that a key means, "" for none. Like encoding/json it takes other cases, of a field that
// is reported as unknown, so that its value has no part in other mistakes.
func (s *setter) known(key string) string {
	if s.below[key] != nil {
		return key
	}
	for name := range s.below {
		if strings.EqualFold(name, key) {
			return name
		}
	}
	return ""
}

func (s *setter) scalar(n *Node, v reflect.Value) error {
	switch s.form {
	case ownJSON:
		return v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(n.AppendJSON(nil))
	case viaJSON:
		return json.Unmarshal(n.AppendJSON(nil), v.Addr().Interface())
	case text:
		if n.Kind != yamldoc.String {
			return s.mismatch(n)
		}
		v.SetString(n.Text)
	case boolean:
		if n.Kind != yamldoc.Bool {
			return s.mismatch(n)
		}
		v.SetBool(n.Text == "true")
	case integer:
		i, err := strconv.ParseInt(n.Text, 10, s.typ.Bits())
		if n.Kind != yamldoc.Int || err != nil {
			return s.mismatch(n)
		}
		v.SetInt(i)
	}
	return nil
}

func (s *setter) mismatch(n *Node) error { return fmt.Errorf("%s is no %s", n.Show(), s.typ) }
