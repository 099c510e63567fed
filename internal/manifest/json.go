package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// AppendJSON prints a JSON value at the end of dst as block YAML, in the order of its keys. The caller has made the
// JSON: a broken one is a fault of the program.
func AppendJSON(dst, text []byte) []byte {
	start := len(dst)
	e := encoder{printer: printer{out: dst}}
	e.json(decoder(text), -2, false)
	return append(e.out[:start], e.out[start+1:]...) // without what separates a value from its key
}

func decoder(text []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d
}

// json prints the next value.
func (e *encoder) json(d *json.Decoder, indent int, inSeq bool) {
	switch x := next(d).(type) {
	case json.Delim:
		if x == '{' {
			o := e.begin(indent, inSeq)
			for d.More() {
				key, _ := next(d).(string)
				entry := e.key(o, key)
				start := len(e.out)
				e.json(d, o.indent, false)
				e.drop(entry, start, e.nulls(key))
			}
			e.end(o)
		} else if !d.More() {
			e.literal("[]")
		} else {
			indent = e.beginList(indent, inSeq)
			for first := inSeq; d.More(); first = false {
				e.item(indent, first)
				e.json(d, indent, true)
			}
		}
		next(d) // the end
	case string:
		e.text(x, indent)
	case json.Number:
		e.literal(x.String())
	case bool:
		e.literal(strconv.FormatBool(x))
	default:
		e.literal("null")
	}
}

func next(d *json.Decoder) json.Token {
	t, err := d.Token()
	if err != nil {
		panic(errors.Join(errors.New("printing JSON"), err))
	}
	return t
}
