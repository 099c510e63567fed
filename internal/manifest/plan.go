package manifest

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// plan says how values of one Go type are printed: as encoding/json would by the type's tags and methods, which are
// looked at once.
type plan struct {
	form   form
	fields []field // of a struct
	elem   *plan   // of what a pointer, a list or a map holds
}

type form int

const (
	asJSON form = iota // what encoding/json is asked for: methods of a type's own, floats, bytes
	asStruct
	asPointer
	asDynamic
	asList
	asMap
	asLabels  // as labels are
	asAmounts // as limits are
	asAmount
	asIntOrString
	asText
	asBool
	asInt
	asUint
)

type field struct {
	index    int
	name     string
	key      []byte   // as YAML, with its colon
	noise    []string // values for which the field is left out
	plan     *plan
	embedded bool // its fields stand among those around it
	head     bool // left out at the top of an object
	empty    bool // omitempty
	zero     bool // omitzero
}

// forms are the types that are common enough for a way of their own.
var forms = map[reflect.Type]form{
	reflect.TypeFor[map[string]string]():   asLabels,
	reflect.TypeFor[corev1.ResourceList](): asAmounts,
	reflect.TypeFor[resource.Quantity]():   asAmount,
	reflect.TypeFor[intstr.IntOrString]():  asIntOrString,
	reflect.TypeFor[json.Number]():         asJSON,
}

var plans sync.Map // of reflect.Type to *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	m := planner{}
	p := m.plan(t)
	for t, p := range m { // all are whole now
		plans.Store(t, p)
	}
	return p
}

// planner holds the plans that are being made: a type may hold itself.
type planner map[reflect.Type]*plan

func (m planner) plan(t reflect.Type) *plan {
	if p := m[t]; p != nil {
		return p
	}
	p := &plan{form: formOf(t)}
	m[t] = p
	switch p.form {
	case asStruct:
		fields, ok := m.fields(t)
		if ok {
			p.fields = fields
		} else {
			p.form = asJSON
		}
	case asPointer, asList, asMap:
		p.elem = m.plan(t.Elem())
	}
	return p
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func formOf(t reflect.Type) form {
	if f, ok := forms[t]; ok {
		return f
	}
	switch t.Kind() {
	case reflect.Pointer:
		return asPointer
	case reflect.Interface:
		return asDynamic
	}
	if p := reflect.PointerTo(t); p.Implements(jsonMarshaler) || p.Implements(textMarshaler) {
		return asJSON
	}
	switch t.Kind() {
	case reflect.Struct:
		return asStruct
	case reflect.Array:
		return asList
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return asList
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return asMap
		}
	case reflect.String:
		return asText
	case reflect.Bool:
		return asBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return asInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return asUint
	}
	return asJSON
}

// fields says no of a struct in which encoding/json would have to choose among fields, or to quote one.
func (m planner) fields(t reflect.Type) (fields []field, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		out := field{index: i, plan: m.plan(f.Type), embedded: f.Anonymous && name == ""}
		if out.embedded && out.plan.form != asStruct {
			return nil, false
		}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				out.empty = true
			case "omitzero":
				out.zero = true
			case "string":
				return nil, false
			}
		}
		if name == "" {
			name = f.Name
		}
		out.name, out.key, out.noise = name, append(appendKey(nil, name), ':'), noise(name)
		out.head = name == "apiVersion" || name == "kind" || name == "status"
		fields = append(fields, out)
	}
	return fields, unique(fields, map[string]bool{})
}

func unique(fields []field, seen map[string]bool) bool {
	for _, f := range fields {
		if f.embedded && !unique(f.plan.fields, seen) || !f.embedded && seen[f.name] {
			return false
		}
		if !f.embedded {
			seen[f.name] = true
		}
	}
	return true
}

// noise is what a Go struct holds that nobody filled in, as it is printed. Only fields named here lose an empty value:
// elsewhere {} and [] carry meaning, as in "emptyDir: {}", "podSelector: {}" (all pods) and "egress: []" (deny all).
func noise(name string) []string {
	switch name {
	case "metadata", "resources", "strategy", "updateStrategy", "status", "spec":
		// Struct fields without a pointer, for which omitempty does nothing;
		// absent and empty are the same object to the API server.
		return []string{null, " {}\n"}
	case "targetPort":
		// IntOrString is a struct too. The API server takes 0 as unset.
		return []string{null, " 0\n"}
	case "divisor":
		// Quantity likewise, in resourceFieldRef.
		return []string{null, " \"0\"\n"}
	}
	return []string{null}
}

// null is how a value that is none is printed, behind its key.
const null = " null\n"
