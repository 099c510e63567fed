package yamldoc

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// PathAt is the path of the value that a JSON text has at an offset, such as that of json.UnmarshalTypeError, whose
// field is without list indexes and keys of maps.
func PathAt(text []byte, offset int64) Path {
	at, _ := locate(json.NewDecoder(bytes.NewReader(text)), nil, offset)
	return at
}

// locate reads one value, the one at p, and says where in it offset is.
func locate(dec *json.Decoder, p Path, offset int64) (Path, bool) {
	token, err := dec.Token()
	if err != nil || dec.InputOffset() >= offset {
		return p, true
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil, false
	}
	for i := 0; dec.More(); i++ {
		step := p.Index(i)
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return p, true
			}
			step = p.Add(key.(string))
		}
		if at, found := locate(dec, step, offset); found {
			return at, true
		}
	}
	// More stops ahead of the closing bracket.
	_, err = dec.Token()
	return p, err != nil
}

// GotWord is a value of the JSON decoder's as YAML calls it.
func GotWord(value string) string {
	kind, _, _ := strings.Cut(value, " ") // "number 1.5"
	switch kind {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// WantWord is a Go type as YAML calls its values.
func WantWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return WantWord(t.Elem())
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a string"
		}
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	}
	return "a number"
}
