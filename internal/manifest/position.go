package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
)

// path leads from a document's root to a value, by keys and [0]-like indices.
type path []string

func (p path) add(steps ...string) path { return append(p[:len(p):len(p)], steps...) }

func (p path) index(i int) path { return p.add("[" + strconv.Itoa(i) + "]") }

// parsePath takes a path in the words of sigs.k8s.io/json.
func parsePath(s string) path { return strings.Split(strings.ReplaceAll(s, "[", ".["), ".") }

func (p path) String() string { return strings.ReplaceAll(strings.Join(p, "."), ".[", "[") }

// syntaxError turns the line of a go-yaml message, which counts from the
// document's start, into one of the stream.
func (d document) syntaxError(err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	msg = strings.TrimPrefix(msg, "unmarshal errors:\n  ")
	line := d.firstLine()
	re := regexp.MustCompile(`^line (\d+): `)
	if m := re.FindStringSubmatch(msg); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = d.line + n - 1
		}
		msg = msg[len(m[0]):]
	}
	return fmt.Errorf("%s:%d: parsing YAML: %s", d.name, line, msg)
}

// decodeError finds the line of the field that the decoder complains of. text
// is the JSON it was given, of the value at p.
func (d document) decodeError(p path, what string, text []byte, err error) error {
	var field kjson.FieldError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &field):
		p = p.add(parsePath(field.FieldPath())...)
	case errors.As(err, &wrongType):
		at := pathAt(text, wrongType.Offset)
		p = p.add(at...)
		// Say it in the words of YAML: "json: cannot unmarshal bool into Go
		// struct field" helps nobody who left the quotes off a "no".
		err = fmt.Errorf("got %s, want %s", gotWord(wrongType.Value), wantWord(wrongType.Type))
		if len(at) > 0 {
			err = fmt.Errorf("%s: %w", at, err)
		}
	}
	return d.errorAt(p, fmt.Errorf("reading %s: %w", what, err))
}

// gotWord is a value of the JSON decoder's as YAML calls it.
func gotWord(value string) string {
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

// wantWord is a Go type as YAML calls its values.
func wantWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wantWord(t.Elem())
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

// namesField says whether a decoder's error tells where it is, or can be asked.
func namesField(text []byte, err error) bool {
	var field kjson.FieldError
	var wrongType *json.UnmarshalTypeError
	return errors.As(err, &field) || errors.As(err, &wrongType) && len(pathAt(text, wrongType.Offset)) > 0
}

// culprit finds the value that a type with a decoder of its own, such as a quantity, refused without naming it: the one
// without which the error is another, or none.
func culprit(text []byte, err error, decode func([]byte) error) path {
	var root any
	if json.Unmarshal(text, &root) != nil {
		return nil
	}
	without := func() bool {
		rest, marshalErr := json.Marshal(root)
		again := decode(rest)
		return marshalErr == nil && (again == nil || again.Error() != err.Error())
	}
	var find func(value any, p path) path
	find = func(value any, p path) path {
		try := func(child any, step path, set func(any)) path {
			set(nil)
			is := without()
			set(child)
			if !is {
				return nil
			}
			if deeper := find(child, step); deeper != nil {
				return deeper
			}
			return step
		}
		switch x := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(x)) {
				if at := try(x[key], p.add(key), func(v any) { x[key] = v }); at != nil {
					return at
				}
			}
		case []any:
			for i := range x {
				if at := try(x[i], p.index(i), func(v any) { x[i] = v }); at != nil {
					return at
				}
			}
		}
		return nil
	}
	return find(root, nil)
}

func (d document) errorAt(p path, err error) error {
	return fmt.Errorf("%s:%d: %w", d.name, d.lineOf(p), err)
}

// pathAt gives the path of the value that the JSON has at offset. The decoder
// names the field of a wrong type, but neither list index nor map key.
func pathAt(text []byte, offset int64) path {
	at, _ := locate(json.NewDecoder(bytes.NewReader(text)), nil, offset)
	return at
}

// locate reads one value, the one at p, and says where in it offset is.
func locate(dec *json.Decoder, p path, offset int64) (path, bool) {
	token, err := dec.Token()
	if err != nil || dec.InputOffset() >= offset {
		return p, true
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil, false
	}
	for i := 0; dec.More(); i++ {
		step := p.index(i)
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return p, true
			}
			step = p.add(key.(string))
		}
		if at, found := locate(dec, step, offset); found {
			return at, true
		}
	}
	// More stops ahead of the closing bracket.
	_, err = dec.Token()
	return p, err != nil
}

// lineOf gives the line of the value at p, or of as much of the path as the
// document has. The document is parsed anew, with a parser that keeps
// positions, as only errors ask for them.
func (d document) lineOf(p path) int {
	node := d.root()
	if node == nil {
		return d.firstLine()
	}
	return d.lineBelow(node, p)
}

// root is nil where the document cannot be parsed.
func (d document) root() *yamlv3.Node {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(d.text, &root); err != nil || len(root.Content) == 0 {
		return nil
	}
	return root.Content[0]
}

func (d document) lineBelow(node *yamlv3.Node, p path) int {
	line := node.Line
	for _, step := range p {
		var at int
		if node, at = child(node, step); node == nil {
			break
		}
		line = at
	}
	return d.line + line - 1
}

const mergeTag = "!!merge"

// target is the node that an alias stands for, and any other itself.
func target(node *yamlv3.Node) *yamlv3.Node {
	if node != nil && node.Kind == yamlv3.AliasNode {
		return node.Alias
	}
	return node
}

// child follows one step, "name" or "[0]", and gives the line it stands on.
func child(node *yamlv3.Node, step string) (*yamlv3.Node, int) {
	node = target(node)
	switch node.Kind {
	case yamlv3.SequenceNode:
		i, err := strconv.Atoi(strings.Trim(step, "[]"))
		if err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line
			}
		}
		return merged(node, step)
	}
	return nil, 0
}

// merged is child for what a mapping takes from others by the key <<.
func merged(node *yamlv3.Node, step string) (*yamlv3.Node, int) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Tag != mergeTag {
			continue
		}
		from := []*yamlv3.Node{node.Content[i+1]}
		if list := target(from[0]); list.Kind == yamlv3.SequenceNode {
			from = list.Content
		}
		for _, other := range from {
			if found, line := child(other, step); found != nil {
				return found, line
			}
		}
	}
	return nil, 0
}

// firstLine is that of the first content, past comments and the marker.
func (d document) firstLine() int {
	line := d.line
	for text := range strings.Lines(string(d.text)) {
		text = strings.TrimRight(text, "\r\n")
		if startsContent([]byte(text)) && !hasMarker([]byte(text), "---") {
			return line
		}
		line++
	}
	return d.line
}
