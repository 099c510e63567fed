package importer

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tegen-dev/tegen/schema/job"
)

// ordered is a job as JSON with its fields in the order of the schema; other keys are sorted.
func ordered(j tree) []byte {
	whole := tree{}
	for key, value := range j {
		whole[key] = value
	}
	for key, value := range head {
		whole[key] = value
	}
	var e encoder
	e.scalars = json.NewEncoder(&e.Buffer)
	e.scalars.SetEscapeHTML(false)
	e.value(whole, reflect.TypeFor[job.Job]())
	return e.Bytes()
}

type encoder struct {
	bytes.Buffer
	scalars *json.Encoder
}

func (e *encoder) value(value any, t reflect.Type) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch x := value.(type) {
	case tree:
		e.tree(x, fieldsOf(t))
	case []any:
		var elem reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			elem = t.Elem()
		}
		e.WriteByte('[')
		for i, item := range x {
			if i > 0 {
				e.WriteByte(',')
			}
			e.value(item, elem)
		}
		e.WriteByte(']')
	default:
		e.scalar(x)
	}
}

func (e *encoder) tree(t tree, of *fields) {
	keys := sortedKeys(t)
	slices.SortStableFunc(keys, func(a, b string) int { return of.rank(a) - of.rank(b) })
	e.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			e.WriteByte(',')
		}
		e.scalar(key)
		e.WriteByte(':')
		e.value(t[key], of.types[key])
	}
	e.WriteByte('}')
}

func (e *encoder) scalar(value any) {
	if err := e.scalars.Encode(value); err != nil { // it was read from JSON, or made here
		panic(err)
	}
	e.Truncate(e.Len() - 1) // the encoder's newline
}

// fields are those of a struct, by their JSON names.
type fields struct {
	ranks map[string]int // nil for a type that is no struct
	types map[string]reflect.Type
}

// structs has the fields of each type that was asked for: a job is encoded for every field that might be left out.
var structs sync.Map

// fieldsOf reads the fields of a struct, those of embedded structs among them.
func fieldsOf(t reflect.Type) *fields {
	if known, ok := structs.Load(t); ok {
		return known.(*fields)
	}
	f := &fields{types: map[string]reflect.Type{}}
	if t != nil && t.Kind() == reflect.Struct {
		f.ranks = map[string]int{}
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" || !field.IsExported() {
				continue
			}
			f.ranks[name] = len(f.ranks)
			f.types[name] = field.Type
		}
	}
	structs.Store(t, f)
	return f
}

// rank of a name that no struct has is behind all others; the name of an item of a pod template is ahead of them.
func (f *fields) rank(name string) int {
	if i, ok := f.ranks[name]; ok {
		return i
	}
	if f.ranks == nil && name == "name" {
		return -1
	}
	return len(f.ranks)
}
