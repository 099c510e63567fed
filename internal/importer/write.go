package importer

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema"
)

// ordered is a job as JSON with its fields in the order of the schema; other keys are sorted.
func ordered(job tree) []byte {
	whole := tree{}
	for key, value := range job {
		whole[key] = value
	}
	for key, value := range head {
		whole[key] = value
	}
	var b bytes.Buffer
	encode(&b, whole, reflect.TypeFor[schema.Job]())
	return b.Bytes()
}

func encode(b *bytes.Buffer, value any, t reflect.Type) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch x := value.(type) {
	case tree:
		names, types := fieldsOf(t)
		keys := sortedKeys(x)
		slices.SortStableFunc(keys, func(a, b string) int { return rank(names, a) - rank(names, b) })
		b.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			encode(b, key, nil)
			b.WriteByte(':')
			encode(b, x[key], types[key])
		}
		b.WriteByte('}')
	case []any:
		var elem reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			elem = t.Elem()
		}
		b.WriteByte('[')
		for i, item := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			encode(b, item, elem)
		}
		b.WriteByte(']')
	default:
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(x); err != nil { // it was read from JSON, or made here
			panic(err)
		}
		b.Truncate(b.Len() - 1) // the encoder's newline
	}
}

// fieldsOf lists the JSON names of a struct in order, those of embedded structs among them, with their types.
func fieldsOf(t reflect.Type) (names []string, types map[string]reflect.Type) {
	types = map[string]reflect.Type{}
	if t == nil || t.Kind() != reflect.Struct {
		return nil, types
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || !f.IsExported() {
			continue
		}
		names = append(names, name)
		types[name] = f.Type
	}
	return names, types
}

// rank of a name that no struct has is behind all others; the name of an item of a pod template is ahead of them.
func rank(names []string, name string) int {
	if i := slices.Index(names, name); i >= 0 {
		return i
	}
	if names == nil && name == "name" {
		return -1
	}
	return len(names)
}
