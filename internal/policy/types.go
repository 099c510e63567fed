package policy

import (
	"encoding"
	"encoding/json"
	"iter"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kinds is a set of kinds of JSON values.
type kinds uint

const (
	isString kinds = 1 << iota
	isInt
	isFraction // a number that is no integer
	isBool
	isList
	isMapping
	isNull

	isNumber = isInt | isFraction
	anyKind  = isString | isNumber | isBool | isList | isMapping | isNull
)

var kindNames = []struct {
	kinds
	name string
}{
	{isNumber, "a number"},
	{isString, "a string"},
	{isInt, "an integer"},
	{isFraction, "a fraction"},
	{isBool, "a boolean"},
	{isList, "a list"},
	{isMapping, "a mapping"},
	{isNull, "null"},
}

func (k kinds) String() string {
	var names []string
	for _, n := range kindNames {
		if k&n.kinds == n.kinds {
			names = append(names, n.name)
			k &^= n.kinds
		}
	}
	return strings.Join(names, " or ")
}

// kindOf is the kind of a JSON value.
func kindOf(v any) kinds {
	switch v := v.(type) {
	case nil:
		return isNull
	case bool:
		return isBool
	case string:
		return isString
	case []any:
		return isList
	case map[string]any:
		return isMapping
	case json.Number:
		if r, ok := number(v, false); ok && r.IsInt() {
			return isInt
		}
		return isFraction
	}
	return 0
}

// goType is what is known about the values at a place. The zero value is a place of any type.
type goType struct {
	t         reflect.Type
	omitEmpty bool // the zero value is left out when it is encoded
}

// kinds are those that a value of the type can have in JSON.
func (g goType) kinds() kinds {
	t := g.bare()
	switch {
	case t == nil:
		return anyKind
	case g.isQuantity():
		return isString | isNumber // as rules see it: the text of a quantity is compared as a number
	case t == reflect.TypeFor[intstr.IntOrString]():
		return isString | isInt
	case t == reflect.TypeFor[metav1.Time](), t == reflect.TypeFor[metav1.MicroTime](), g.isDuration():
		return isString
	case encodesItself(t):
		return anyKind
	}
	switch t.Kind() {
	case reflect.String:
		return isString
	case reflect.Bool:
		return isBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return isInt
	case reflect.Float32, reflect.Float64:
		return isNumber
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return isString
		}
		return isList
	case reflect.Map, reflect.Struct:
		return isMapping
	}
	return anyKind
}

// bare is the type without pointers; nil for any.
func (g goType) bare() reflect.Type {
	t := g.t
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() == reflect.Interface {
		return nil
	}
	return t
}

func (g goType) isQuantity() bool { return is(g.bare(), reflect.TypeFor[resource.Quantity]()) }

func (g goType) isDuration() bool { return is(g.bare(), reflect.TypeFor[metav1.Duration]()) }

// is reports whether a type is another, or has it embedded.
func is(t, other reflect.Type) bool {
	if t == nil || t == other || t.Kind() != reflect.Struct {
		return t == other
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && f.Type == other {
			return true
		}
	}
	return false
}

// encodesItself reports whether the JSON of a type is not that of its Go fields.
func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// item is the type of a list's items.
func (g goType) item() goType {
	if t := g.bare(); t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		return goType{t: t.Elem()}
	}
	return goType{}
}

// field is the type of a field, and whether the type has it.
func (g goType) field(name string) (goType, bool) {
	t := g.bare()
	switch {
	case t == nil, g.kinds() == anyKind:
		return goType{}, true
	case t.Kind() == reflect.Map:
		return goType{t: t.Elem()}, true
	}
	for f, found := range g.fields() {
		if f == name {
			return found, true
		}
	}
	return goType{}, false
}

// fields are those of a struct in JSON.
func (g goType) fields() iter.Seq2[string, goType] {
	return func(yield func(string, goType) bool) {
		t := g.bare()
		if t == nil || t.Kind() != reflect.Struct {
			return
		}
		eachField(t, yield)
	}
}

func eachField(t reflect.Type, yield func(string, goType) bool) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-", !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous && inner.Kind() == reflect.Struct:
			if !eachField(inner, yield) {
				return false
			}
		default:
			empty := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
			if name == "" {
				name = f.Name
			}
			// a pointer is left out if it is nil, and not if it points to the zero value
			if !yield(name, goType{f.Type, empty && f.Type.Kind() != reflect.Pointer}) {
				return false
			}
		}
	}
	return true
}

// isOpen reports whether any field name is possible.
func (g goType) isOpen() bool {
	t := g.bare()
	return t == nil || t.Kind() == reflect.Map || g.kinds() == anyKind
}

// always reports whether the field is in every object, at least as an empty mapping: Go's omitempty keeps structs.
func (g goType) always() bool {
	return g.t != nil && g.t.Kind() == reflect.Struct && g.kinds() == isMapping
}

// encoded is what tegen's encoding of an object does with a field, and a custom resource in a cluster does not.
type encoded struct {
	always bool
	zero   string // in CEL, the value that is left out; "" if there is none
}

func (g goType) encoded() encoded {
	e := encoded{always: g.always()}
	if g.omitEmpty {
		switch g.kinds() {
		case isString:
			e.zero = `""`
		case isBool:
			e.zero = "false"
		case isInt, isNumber:
			e.zero = "0"
		case isList:
			e.zero = "[]"
		case isMapping:
			if !e.always {
				e.zero = "{}"
			}
		}
	}
	return e
}

// renamed returns the newer or the older name of a field that has two: an API server takes either and stores both.
func (g goType) renamed(name string) (newer, older string) {
	t := g.bare()
	switch {
	case t == nil || t.Name() != "PodSpec":
	case name == "serviceAccount":
		return "serviceAccountName", ""
	case name == "serviceAccountName":
		return "", "serviceAccount"
	}
	return "", ""
}
