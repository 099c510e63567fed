package yamldoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// The limits of strict reading keep hostile input within bounded time and memory.
const (
	maxDocument = 1 << 20
	maxDepth    = 32
	maxErrors   = 10 // of one document: a bomb is thousands of aliases
)

// CheckText refuses what no author means to write: each with the character's own position.
func CheckText(stream string, data []byte) *Error {
	fail := func(offset int, msg string) *Error {
		line, col := place(data, offset)
		return Document{Stream: stream}.fail(line, col, "encoding", msg)
	}
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return fail(0, "the file starts with a byte order mark: save it as UTF-8 without one")
		}
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return fail(i, "a NUL byte: save the file as plain UTF-8 text")
	}
	if i := bytes.IndexByte(data, '\r'); i >= 0 {
		return fail(i, "a carriage return: save the file with LF line ends")
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return fail(i, "a byte that is not UTF-8: save the file as UTF-8")
		}
		if isBidi(r) {
			return fail(i, bidiMessage(r))
		}
		if isInvisible(r) {
			return fail(i, fmt.Sprintf("the character U+%04X, which is invisible: remove it, "+
				"or write it as an escape in double quotes", r))
		}
		i += size
	}
	return nil
}

// isBidi reports whether a character changes the direction of the text around it, so that a reader sees another order
// than programs do.
func isBidi(r rune) bool {
	return 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}

func bidiMessage(r rune) string {
	return fmt.Sprintf("the character U+%04X changes the direction of text, which then reads as something else: "+
		"remove it", r)
}

// isInvisible: YAML counts some of these as line ends, editors do not.
func isInvisible(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029
}

var unknownAnchor = lazy.Regexp(`unknown anchor '(.*)' referenced`)

// ParseStrict is Parse that refuses what would make a document mean something else to another reader of it: anchors,
// tags, duplicate keys, numbers in other notations. Refused keys are left out of the tree and refused values are
// Invalid, so that the rest can be checked.
func (d Document) ParseStrict() (*yaml.Node, []*Error) {
	size := len(d.Text)
	root := d.Root
	if root != nil {
		var c copier
		root = c.node(root)
		size = c.size
	}
	if size > maxDocument {
		msg := fmt.Sprintf("the document has %d bytes, more than the limit of %d", size, maxDocument)
		return nil, []*Error{d.fail(d.Line, 1, "size", msg)}
	}
	if root == nil {
		if line := d.directive(); line > 0 {
			return nil, []*Error{d.fail(line, 1, "yaml", "directives are not supported: remove the line")}
		}
		var err *Error
		if root, err = d.parse(); err != nil {
			return nil, []*Error{d.strictError(err)}
		}
		if root == nil {
			return nil, nil
		}
	}
	s := strict{doc: d}
	s.value(root, 0)
	return root, s.errs
}

// copier copies a tree, which a reader may change. Lines are those of a document that holds nothing else, a line a
// value: nodes may come of several texts, or of none.
type copier struct{ line, size int }

func (c *copier) node(n *yaml.Node) *yaml.Node {
	out := *n
	out.Line, out.Column = max(c.line, 1), 1
	c.size += len(n.Value)
	if n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode {
		return &out
	}
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, below := range n.Content {
		if n.Kind == yaml.SequenceNode || i%2 == 0 {
			c.line++
		}
		out.Content[i] = c.node(below)
	}
	return &out
}

// directive is the line of the first %directive, 0 for none.
func (d Document) directive() int {
	line := d.Line
	for text := range bytes.Lines(d.Text) {
		if text[0] == '%' {
			return line
		}
		if StartsContent(text) {
			break
		}
		line++
	}
	return 0
}

// strictError says what the parser's message leaves out: where an unknown alias stands, and that a tab is the reason.
func (d Document) strictError(err *Error) *Error {
	if alias := unknownAnchor().FindStringSubmatch(err.Msg); alias != nil {
		before, _, _ := bytes.Cut(d.Text, []byte("*"+alias[1]))
		line, col := place(d.Text, len(before))
		return d.fail(line+d.Line-1, col, "alias", noAlias(alias[1]))
	}
	for i, text := range bytes.Split(d.Text, []byte("\n")) {
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if tab := bytes.IndexByte(indent, '\t'); tab >= 0 {
			return d.fail(d.Line+i, tab+1, "yaml", "a tab in the indentation: YAML indents with spaces")
		}
	}
	err.Msg = "not YAML: " + err.Msg
	return err
}

func noAlias(name string) string {
	return fmt.Sprintf("*%s: aliases are not supported; write the value out", name)
}

// strict walks a tree and takes out what it refuses.
type strict struct {
	doc  Document
	path Path // of the value at hand
	errs []*Error
}

func (s *strict) fail(n *yaml.Node, rule, format string, args ...any) {
	if len(s.errs) == maxErrors {
		return
	}
	e := s.doc.fail(n.Line, n.Column, rule, fmt.Sprintf(format, args...))
	e.Path = slices.Clone(s.path)
	s.errs = append(s.errs, e)
}

// refuse makes a value Invalid; its text stays.
func (s *strict) refuse(n *yaml.Node, rule, format string, args ...any) {
	s.fail(n, rule, format, args...)
	n.Kind, n.Content, n.Alias = 0, nil, nil
}

func (s *strict) below(step string, n *yaml.Node, depth int) {
	s.path = append(s.path, step)
	s.value(n, depth)
	s.path = s.path[:len(s.path)-1]
}

func (s *strict) value(n *yaml.Node, depth int) {
	switch {
	case depth > maxDepth:
		s.refuse(n, "depth", "nested deeper than %d levels", maxDepth)
		return
	case n.Kind == yaml.AliasNode:
		s.refuse(n, "alias", "%s", noAlias(n.Value))
		return
	case n.Anchor != "":
		s.fail(n, "alias", "&%s: anchors are not supported; write the value out where it is needed", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		s.refuse(n, "tag", "%s: tags are not supported; quote the value if it is a string", n.Tag)
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		s.mapping(n, depth)
	case yaml.SequenceNode:
		for i, item := range n.Content {
			s.below(step(i), item, depth+1)
		}
	case yaml.ScalarNode:
		s.scalar(n)
	}
}

func (s *strict) mapping(n *yaml.Node, depth int) {
	kept := n.Content[:0]
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if at := strings.IndexFunc(key.Value, isBidi); at >= 0 { // written as an escape
			r, _ := utf8.DecodeRuneInString(key.Value[at:])
			s.fail(key, "encoding", "%s", bidiMessage(r))
			continue
		}
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!null":
			s.fail(key, "key", "a key that is not a string")
			continue
		case key.Tag == MergeTag:
			s.fail(key, "alias", "<<: merge keys are not supported; write the fields out")
			continue
		}
		if line, ok := lines[key.Value]; ok {
			s.path = append(s.path, key.Value)
			s.fail(key, "duplicate-key", "the key stands on line %d already", line)
			s.path = s.path[:len(s.path)-1]
			continue
		}
		lines[key.Value] = key.Line
		kept = append(kept, key, value)
		s.below(key.Value, value, depth+1)
	}
	n.Content = kept
}

var plainInt = lazy.Regexp(`^-?(0|[1-9][0-9]{0,17})$`)

func (s *strict) scalar(n *yaml.Node) {
	if at := strings.IndexFunc(n.Value, isBidi); at >= 0 { // written as an escape
		r, _ := utf8.DecodeRuneInString(n.Value[at:])
		s.refuse(n, "encoding", "%s", bidiMessage(r))
		return
	}
	var plain bool
	switch KindOf(n) {
	case Int:
		plain = plainInt().MatchString(n.Value)
	case Float:
		plain = json.Valid([]byte(n.Value)) && !strings.ContainsAny(n.Value, "eE")
	default:
		return
	}
	if !plain {
		s.refuse(n, "number", "%s: write numbers in plain decimal, or quote the value if it is a string", n.Value)
	}
}
