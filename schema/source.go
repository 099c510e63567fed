package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// MaxFile is the most bytes that Load reads of a source; it and the limits of yamldoc keep hostile input within bounded
// time and memory. A job is some kilobytes, a file of 4,000 jobs some megabytes.
const (
	MaxFile  = 8 << 20
	maxCount = 20000 // documents of a file
)

// Source is one input: its name for messages, and its bytes.
type Source struct {
	Name string
	Data []byte
}

type position struct {
	file      string
	line, col int
}

type kind = yamldoc.Kind

const (
	unknownKind = yamldoc.Invalid // was refused by the reader: says nothing more about itself
	nullKind    = yamldoc.Null
	boolKind    = yamldoc.Bool
	intKind     = yamldoc.Int
	floatKind   = yamldoc.Float
	stringKind  = yamldoc.String
	listKind    = yamldoc.List
	mapKind     = yamldoc.Map
)

var kindWords = [...]string{
	"something", "nothing", "a boolean", "an integer", "a number", "a string", "a list", "a mapping",
}

// node is a YAML value without anchors, tags and comments, which knows where it was written.
type node struct {
	kind   kind
	text   string // of a scalar; numbers and booleans as JSON writes them
	fields []entry
	items  []*node
	at     position

	environment bool // merged into a job: its author did not write it
}

type entry struct {
	key   string
	at    position // of the key
	value *node
}

func (n *node) field(name string) *node {
	if e := n.entry(name); e != nil {
		return e.value
	}
	return nil
}

// document is one YAML document: its tree, as far as it could be read, and what could not.
type document struct {
	root *node
	errs Errors
}

// split cuts a file into its documents.
func split(src Source) ([]yamldoc.Document, Errors) {
	fail := func(line int, format string, args ...any) Errors {
		return Errors{{File: src.Name, Line: line, Col: 1, Rule: "size", Msg: fmt.Sprintf(format, args...)}}
	}
	if len(src.Data) > MaxFile {
		return nil, fail(1, "the file has %d bytes, more than the limit of %d: split it", len(src.Data), MaxFile)
	}
	if err := yamldoc.CheckText(src.Name, src.Data); err != nil {
		return nil, Errors{read(err)}
	}
	docs := yamldoc.Split(src.Name, src.Data)
	if len(docs) > maxCount {
		return nil, fail(docs[maxCount].Line, "the file has %d documents, more than the limit of %d: split it", len(docs), maxCount)
	}
	return docs, nil
}

func read(e *yamldoc.Error) Error {
	return Error{File: e.Stream, Line: e.Line, Col: e.Col, Path: e.Path.String(), Rule: e.Rule, Msg: e.Msg}
}

// parse reads one document. A document of comments only has neither root nor errors.
func parse(text yamldoc.Document) (doc document) {
	y, errs := text.ParseStrict()
	for _, e := range errs {
		doc.errs = append(doc.errs, read(e))
	}
	if y != nil {
		if root := newNode(text.Stream, y); root.kind != nullKind && root.kind != unknownKind {
			doc.root = root // what is left may hold further mistakes
		}
	}
	return doc
}

func newNode(file string, y *yaml.Node) *node {
	n := &node{kind: yamldoc.KindOf(y), text: y.Value, at: position{file, y.Line, y.Column}}
	switch n.kind {
	case mapKind:
		n.fields = make([]entry, 0, len(y.Content)/2)
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := y.Content[i]
			n.fields = append(n.fields, entry{key.Value, position{file, key.Line, key.Column}, newNode(file, y.Content[i+1])})
		}
	case listKind:
		n.items = make([]*node, len(y.Content))
		for i, item := range y.Content {
			n.items[i] = newNode(file, item)
		}
	case boolKind:
		n.text = strings.ToLower(n.text)
	}
	return n
}

// appendJSON writes the tree as JSON, the language that every typed field can decode itself from.
func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case nullKind:
		return append(b, "null"...)
	case boolKind, intKind, floatKind:
		return append(b, n.text...)
	case stringKind:
		return appendString(b, n.text)
	case listKind:
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
