package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// encoder prints Go values.
type encoder struct {
	printer
	typed bool     // of Go types, whose nulls are fields that nobody filled in
	keys  []string // of the maps that are being printed
	err   error    // the first
}

// value prints what follows a ":" or a "-" on its line; indent is that of the line.
func (e *encoder) value(p *plan, v reflect.Value, indent int, inSeq bool) {
	switch p.form {
	case asStruct:
		o := e.begin(indent, inSeq)
		e.fields(p, v, o)
		e.end(o)
	case asPointer, asDynamic:
		if v.IsNil() {
			e.literal("null")
			return
		}
		v = v.Elem()
		if p.form == asDynamic {
			e.value(planOf(v.Type()), v, indent, inSeq)
		} else {
			e.value(p.elem, v, indent, inSeq)
		}
	case asList:
		e.list(p, v, indent, inSeq)
	case asLabels, asAmounts, asMap:
		e.mapping(p, v, indent, inSeq)
	default:
		e.scalar(p, v, indent, inSeq)
	}
}

func (e *encoder) scalar(p *plan, v reflect.Value, indent int, inSeq bool) {
	switch p.form {
	case asText:
		e.text(v.String(), indent)
	case asBool:
		e.literal(strconv.FormatBool(v.Bool()))
	case asInt:
		e.integer(v.Int())
	case asUint:
		e.literal(strconv.FormatUint(v.Uint(), 10))
	case asAmount:
		q := *held[resource.Quantity](v) // a copy, since it keeps its text
		e.text(q.String(), indent)
	case asIntOrString:
		switch x := held[intstr.IntOrString](v); x.Type {
		case intstr.Int:
			e.integer(int64(x.IntVal))
		case intstr.String:
			e.text(x.StrVal, indent)
		default:
			e.fail(fmt.Errorf("an IntOrString is of type %d", x.Type))
		}
	default:
		e.viaJSON(v, indent, inSeq)
	}
}

// held spares what stands in a struct a copy.
func held[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	x := v.Interface().(T)
	return &x
}

func (e *encoder) viaJSON(v reflect.Value, indent int, inSeq bool) {
	if v.CanAddr() {
		v = v.Addr() // which may have methods that the value has not
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		e.fail(err)
		return
	}
	typed := e.typed
	e.typed = false
	e.json(decoder(text), indent, inSeq)
	e.typed = typed
}

// fail notes a mistake; what is printed is thrown away in the end.
func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
	e.literal("null")
}

func (e *encoder) fields(p *plan, v reflect.Value, o object) {
	for i := range p.fields {
		f := &p.fields[i]
		value := v.Field(f.index)
		if f.embedded {
			e.fields(f.plan, value, o)
			continue
		}
		if f.head && o.indent == 0 || f.empty && isEmpty(value) || f.zero && isZero(value) {
			continue
		}
		entry := e.entry(o)
		e.out = append(e.out, f.key...)
		start := len(e.out)
		e.value(f.plan, value, o.indent, false)
		e.drop(entry, start, f.noise)
	}
}

// isEmpty is what omitempty asks.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// isZero is what omitzero asks: a type may say what is zero.
func isZero(v reflect.Value) bool {
	type zeroer interface{ IsZero() bool }
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return true
	}
	if v.CanAddr() {
		if z, ok := v.Addr().Interface().(zeroer); ok {
			return z.IsZero()
		}
	} else if z, ok := v.Interface().(zeroer); ok {
		return z.IsZero()
	}
	return v.IsZero()
}

func (e *encoder) list(p *plan, v reflect.Value, indent int, inSeq bool) {
	switch {
	case v.Kind() == reflect.Slice && v.IsNil():
		e.literal("null")
		return
	case v.Len() == 0:
		e.literal("[]")
		return
	}
	indent = e.beginList(indent, inSeq)
	for i := range v.Len() {
		e.item(indent, inSeq && i == 0)
		e.value(p.elem, v.Index(i), indent, true)
	}
}

func (e *encoder) mapping(p *plan, v reflect.Value, indent int, inSeq bool) {
	if v.IsNil() {
		e.literal("null")
		return
	}
	o := e.begin(indent, inSeq)
	first := len(e.keys)
	switch p.form {
	case asLabels:
		m := *held[map[string]string](v)
		for _, key := range sorted(e, m) {
			e.key(o, key)
			e.text(m[key], o.indent)
		}
	case asAmounts:
		m := *held[corev1.ResourceList](v)
		for _, key := range sorted(e, m) {
			e.key(o, key)
			q := m[corev1.ResourceName(key)]
			e.text(q.String(), o.indent)
		}
	default:
		e.entries(p, v, o)
	}
	e.keys = e.keys[:first]
	e.end(o)
}

// sorted are the keys of a map, in room that the encoder keeps.
func sorted[K ~string, V any](e *encoder, m map[K]V) []string {
	first := len(e.keys)
	for key := range m {
		e.keys = append(e.keys, string(key))
	}
	keys := e.keys[first:]
	slices.Sort(keys)
	return keys
}

func (e *encoder) entries(p *plan, v reflect.Value, o object) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		entry := e.key(o, key.String())
		start := len(e.out)
		e.value(p.elem, v.MapIndex(key), o.indent, false)
		e.drop(entry, start, e.nulls(key.String()))
	}
}

// ordered prints the entries of a foreign kind's object: first ahead, the others sorted, which would put spec ahead of
// the name only by luck of the alphabet.
func (e *encoder) ordered(m map[string]any, o object, first ...string) {
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(key string) bool { return slices.Contains(first, key) })
	for _, key := range append(first, rest...) {
		value, ok := m[key]
		if !ok || key == "status" && o.indent == 0 { // which is the cluster's to write
			continue
		}
		entry := e.key(o, key)
		start := len(e.out)
		if meta, ok := value.(map[string]any); ok && key == "metadata" {
			below := e.begin(o.indent, false)
			e.ordered(meta, below, "name", "namespace")
			e.end(below)
		} else {
			e.value(planOf(reflect.TypeFor[any]()), reflect.ValueOf(&value).Elem(), o.indent, false)
		}
		e.drop(entry, start, e.nulls(key))
	}
}

// nulls is what a map's entry is left out for.
func (e *encoder) nulls(key string) []string {
	if e.typed || key == "creationTimestamp" {
		return noise("")
	}
	return nil
}
