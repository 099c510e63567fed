package structural

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Position is where something was written. A line of 0 is that of a default, which nobody wrote.
type Position struct {
	File      string
	Line, Col int
}

// Errorf is a mistake at the position.
func (p Position) Errorf(path, rule, format string, args ...any) Error {
	return Error{File: p.File, Line: p.Line, Col: p.Col, Path: path, Rule: rule, Msg: fmt.Sprintf(format, args...)}
}

// KindWord is a kind in a message.
func KindWord(k yamldoc.Kind) string { return kindWords[k] }

var kindWords = [...]string{
	"something", "nothing", "a boolean", "an integer", "a number", "a string", "a list", "a mapping",
}

// Node is a YAML value without anchors, tags and comments, with its position.
type Node struct {
	Kind   yamldoc.Kind
	Text   string // of a scalar; numbers and booleans as JSON writes them
	Fields []Entry
	Items  []*Node
	At     Position

	Merged bool // from another document: the author of this one did not write it

	constant *sync.Map // of a default that all documents share, and nobody changes: the Go values made of it, by type
}

// Entry is a field of a mapping.
type Entry struct {
	Key   string
	At    Position // of the key
	Value *Node
}

// Add puts a field behind the others. Without a position it is a default, which nobody wrote.
func (n *Node) Add(key string, at Position, value *Node) {
	n.Fields = append(n.Fields, Entry{key, at, value})
}

// Field returns the value of a field, nil where there is none.
func (n *Node) Field(name string) *Node {
	if e := n.Entry(name); e != nil {
		return e.Value
	}
	return nil
}

func newNode(file string, y *yaml.Node) *Node {
	n := &Node{Kind: yamldoc.KindOf(y), Text: y.Value, At: Position{file, y.Line, y.Column}}
	switch n.Kind {
	case yamldoc.Map:
		n.Fields = make([]Entry, 0, len(y.Content)/2)
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := y.Content[i]
			n.Fields = append(n.Fields,
				Entry{key.Value, Position{file, key.Line, key.Column}, newNode(file, y.Content[i+1])})
		}
	case yamldoc.List:
		n.Items = make([]*Node, len(y.Content))
		for i, item := range y.Content {
			n.Items[i] = newNode(file, item)
		}
	case yamldoc.Bool:
		n.Text = strings.ToLower(n.Text)
	}
	return n
}

// AppendJSON writes the tree as JSON, the language that every typed field can decode itself from.
func (n *Node) AppendJSON(b []byte) []byte {
	switch n.Kind {
	case yamldoc.Null:
		return append(b, "null"...)
	case yamldoc.Bool, yamldoc.Int, yamldoc.Float:
		return append(b, n.Text...)
	case yamldoc.String:
		return appendString(b, n.Text)
	case yamldoc.List:
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.AppendJSON(b)
		}
		return append(b, ']')
	default:
		b = append(b, '{')
		for i, f := range n.Fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, f.Key), ':')
			b = f.Value.AppendJSON(b)
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

// Without drops what cannot be decoded from a tree.
func (n *Node) Without(bad map[*Node]bool) {
	n.Fields = slices.DeleteFunc(n.Fields, func(e Entry) bool { return bad[e.Value] })
	n.Items = slices.DeleteFunc(n.Items, func(item *Node) bool { return bad[item] })
	for _, e := range n.Fields {
		e.Value.Without(bad)
	}
	for _, item := range n.Items {
		item.Without(bad)
	}
}

// credentials are what a URL may carry before its host.
var credentials = lazy.Regexp(`://[^/@]*@`)

// Show prints a scalar for a message, cut where it is long, and without credentials: messages end in logs.
func (n *Node) Show() string {
	text := credentials().ReplaceAllString(n.Text, "://***@")
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:77], "") + "..."
	}
	if n.Kind == yamldoc.String {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// Errorf is a mistake at a path, or as near to it as the document goes.
func (n *Node) Errorf(path, rule, format string, args ...any) Error {
	return n.find(path).Errorf(path, rule, format, args...)
}

// IsSet says whether the value at a path was written, and is no default.
func (n *Node) IsSet(dotted string) bool {
	for more := true; more; {
		var name string
		name, dotted, more = strings.Cut(dotted, ".")
		name, index, item := strings.Cut(name, "[")
		e := n.Entry(name)
		if e == nil || e.At.Line == 0 {
			return false
		}
		n = e.Value
		if item {
			if i, err := strconv.Atoi(strings.TrimSuffix(index, "]")); err == nil && i < len(n.Items) {
				n = n.Items[i]
			}
		}
	}
	return true
}

// Below returns the value at a path, nil where there is none.
func (n *Node) Below(names ...string) *Node {
	for _, name := range names {
		if n == nil {
			return nil
		}
		n = n.Field(name)
	}
	return n
}

// KeyErrorf is a mistake in a key of the mapping at a path.
func (n *Node) KeyErrorf(mapping, key, rule, format string, args ...any) Error {
	var root *Place
	path := mapping + strings.TrimPrefix(root.Key("x").Key(key).String(), "x")
	return n.findKey(mapping, key).Errorf(path, rule, format, args...)
}

// find returns the position of the deepest part of a dotted path that the document has: of the value where the whole
// path is there, of the parent's key where a field is missing.
func (n *Node) find(dotted string) Position {
	at := n.At
	for dotted != "" {
		var name string
		if strings.HasPrefix(dotted, "[") {
			var text string
			text, dotted, _ = strings.Cut(dotted[1:], "]")
			dotted = strings.TrimPrefix(dotted, ".")
			if i, err := strconv.Atoi(text); err == nil {
				if i >= len(n.Items) {
					return at
				}
				n = n.Items[i]
				at = n.At
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
		child := n.Entry(name)
		if child == nil || child.At.Line == 0 { // a default was written by nobody
			return at
		}
		n, at = child.Value, child.At
		if dotted == "" {
			return n.At
		}
	}
	return at
}

// findKey is find, but returns the position of the last part's key.
func (n *Node) findKey(mapping, key string) Position {
	if n = n.Lookup(mapping); n == nil {
		return Position{}
	}
	if e := n.Entry(key); e != nil {
		return e.At
	}
	return n.At
}

// Lookup returns the value at a path such as spec.groups[0].env, nil where there is none.
func (n *Node) Lookup(path string) *Node {
	for step := range strings.SplitSeq(path, ".") {
		name, index, item := strings.Cut(step, "[")
		if n = n.Below(name); n == nil {
			return nil
		}
		if item {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || i >= len(n.Items) {
				return nil
			}
			n = n.Items[i]
		}
	}
	return n
}

// Entry returns a field with its position, nil where there is none.
func (n *Node) Entry(name string) *Entry {
	for i := range n.Fields {
		if n.Fields[i].Key == name {
			return &n.Fields[i]
		}
	}
	return nil
}
