package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

type position struct {
	file      string
	line, col int
}

// fail is a mistake at the position.
func (p position) fail(path, rule, format string, args ...any) Error {
	return Error{File: p.file, Line: p.line, Col: p.col, Path: path, Rule: rule, Msg: fmt.Sprintf(format, args...)}
}

// kindWord is a kind in a message.
func kindWord(k yamldoc.Kind) string { return kindWords[k] }

var kindWords = [...]string{
	"something", "nothing", "a boolean", "an integer", "a number", "a string", "a list", "a mapping",
}

// node is a YAML value without anchors, tags and comments, which knows where it was written.
type node struct {
	kind   yamldoc.Kind
	text   string // of a scalar; numbers and booleans as JSON writes them
	fields []entry
	items  []*node
	at     position

	merged bool // from another document: the author of this one did not write it
}

type entry struct {
	key   string
	at    position // of the key
	value *node
}

// add puts a field behind the others. Without a position it is a default, which nobody wrote.
func (n *node) add(key string, at position, value *node) {
	n.fields = append(n.fields, entry{key, at, value})
}

func (n *node) field(name string) *node {
	if e := n.entry(name); e != nil {
		return e.value
	}
	return nil
}

func newNode(file string, y *yaml.Node) *node {
	n := &node{kind: yamldoc.KindOf(y), text: y.Value, at: position{file, y.Line, y.Column}}
	switch n.kind {
	case yamldoc.Map:
		n.fields = make([]entry, 0, len(y.Content)/2)
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := y.Content[i]
			n.fields = append(n.fields, entry{key.Value, position{file, key.Line, key.Column}, newNode(file, y.Content[i+1])})
		}
	case yamldoc.List:
		n.items = make([]*node, len(y.Content))
		for i, item := range y.Content {
			n.items[i] = newNode(file, item)
		}
	case yamldoc.Bool:
		n.text = strings.ToLower(n.text)
	}
	return n
}

// appendJSON writes the tree as JSON, the language that every typed field can decode itself from.
func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case yamldoc.Null:
		return append(b, "null"...)
	case yamldoc.Bool, yamldoc.Int, yamldoc.Float:
		return append(b, n.text...)
	case yamldoc.String:
		return appendString(b, n.text)
	case yamldoc.List:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	default:
		b = append(b, '{')
		for i, f := range n.fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, f.key), ':')
			b = f.value.appendJSON(b)
		}
		return append(b, '}')
	}
}

// appendString spares nearly all strings the way through encoding/json: they hold nothing that JSON escapes.
func appendString(b []byte, s string) []byte {
	if !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
		return append(append(append(b, '"'), s...), '"')
	}
	quoted, err := json.Marshal(s)
	if err != nil { // a string always has a JSON form
		panic(errors.Join(errors.New("encoding a string as JSON"), err))
	}
	return append(b, quoted...)
}

// without drops what cannot be decoded from a tree.
func (n *node) without(bad map[*node]bool) {
	n.fields = slices.DeleteFunc(n.fields, func(e entry) bool { return bad[e.value] })
	n.items = slices.DeleteFunc(n.items, func(item *node) bool { return bad[item] })
	for _, e := range n.fields {
		e.value.without(bad)
	}
	for _, item := range n.items {
		item.without(bad)
	}
}

// credentials are what a URL may carry before its host.
var credentials = regexp.MustCompile(`://[^/@]*@`)

// show prints a scalar for a message, cut where it is long, and without credentials: messages end in logs.
func (n *node) show() string {
	text := credentials.ReplaceAllString(n.text, "://***@")
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:77], "") + "..."
	}
	if n.kind == yamldoc.String {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// fail is a mistake at a path, or as near to it as the document goes.
func (n *node) fail(path, rule, format string, args ...any) Error {
	return n.find(path).fail(path, rule, format, args...)
}

func (n *node) isSet(dotted string) bool {
	for _, name := range strings.Split(dotted, ".") {
		name, index, item := strings.Cut(name, "[")
		e := n.entry(name)
		if e == nil || e.at.line == 0 {
			return false
		}
		n = e.value
		if i, err := strconv.Atoi(strings.TrimSuffix(index, "]")); item && err == nil && i < len(n.items) {
			n = n.items[i]
		}
	}
	return true
}

// below returns the value at a path, nil where there is none.
func (n *node) below(names ...string) *node {
	for _, name := range names {
		if n == nil {
			return nil
		}
		n = n.field(name)
	}
	return n
}

// find returns the position of the deepest part of a dotted path that the document has: of the value where the whole
// path is there, of the parent's key where a field is missing.
func (n *node) find(dotted string) position {
	at := n.at
	for dotted != "" {
		var name string
		if strings.HasPrefix(dotted, "[") {
			var text string
			text, dotted, _ = strings.Cut(dotted[1:], "]")
			dotted = strings.TrimPrefix(dotted, ".")
			if i, err := strconv.Atoi(text); err == nil {
				if i >= len(n.items) {
					return at
				}
				n = n.items[i]
				at = n.at
				continue
			}
			name, _ = strconv.Unquote(text)
		} else {
			end := strings.IndexAny(dotted, ".[")
			if end < 0 {
				end = len(dotted)
			}
			name, dotted = dotted[:end], strings.TrimPrefix(dotted[end:], ".")
		}
		child := n.entry(name)
		if child == nil || child.at.line == 0 { // a default was written by nobody
			return at
		}
		n, at = child.value, child.at
		if dotted == "" {
			return n.at
		}
	}
	return at
}

// findKey is find, but returns the position of the last part's key.
func (n *node) findKey(mapping, key string) position {
	for _, name := range strings.Split(mapping, ".") {
		if n = n.field(name); n == nil {
			return position{}
		}
	}
	if e := n.entry(key); e != nil {
		return e.at
	}
	return n.at
}

func (n *node) entry(name string) *entry {
	for i := range n.fields {
		if n.fields[i].key == name {
			return &n.fields[i]
		}
	}
	return nil
}
