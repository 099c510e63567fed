package manifest

import (
	"maps"
	"slices"
)

// orderedObject encodes m with the keys in first ahead, in that order, and the
// rest sorted. encoding/json sorts them all, which would put the spec of a
// foreign kind ahead of its name only by luck of the alphabet.
func (e *encoder) orderedObject(m map[string]any, first ...string) error {
	e.buf.WriteByte('{')
	sep := false
	field := func(key string) error {
		if sep {
			e.buf.WriteByte(',')
		}
		sep = true
		if err := e.json.Encode(key); err != nil {
			return err
		}
		e.dropNewline()
		e.buf.WriteByte(':')
		if meta, ok := m[key].(map[string]any); ok && key == "metadata" {
			return e.orderedObject(meta, "name", "namespace")
		}
		if err := e.json.Encode(m[key]); err != nil {
			return err
		}
		e.dropNewline()
		return nil
	}
	for _, key := range first {
		if _, ok := m[key]; !ok {
			continue
		}
		if err := field(key); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if slices.Contains(first, key) {
			continue
		}
		if err := field(key); err != nil {
			return err
		}
	}
	e.buf.WriteByte('}')
	return nil
}

// dropNewline takes back the newline that json.Encoder puts after each value:
// the printer wants compact JSON.
func (e *encoder) dropNewline() { e.buf.Truncate(e.buf.Len() - 1) }
