package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxFile is the most bytes that Load reads of a source; it and the limits beside it keep hostile input within bounded
// time and memory. A job is some kilobytes, a file of 4,000 jobs some megabytes.
const (
	MaxFile     = 8 << 20
	maxDocument = 1 << 20
	maxDepth    = 32
	maxCount    = 20000 // documents of a file
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

type kind uint8

const (
	unknownKind kind = iota // was refused by the reader: says nothing more about itself
	nullKind
	boolKind
	intKind
	floatKind
	stringKind
	listKind
	mapKind
)

var kindWords = [...]string{"something", "nothing", "a boolean", "an integer", "a number", "a string", "a list", "a mapping"}

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

// split cuts a file into the texts of its documents, each with the line that it starts at. In YAML a line that starts
// with --- or ... ends a document wherever it stands, so no parser is needed, and one bad document hides no other.
func split(src Source) ([]Source, []int, Errors) {
	if e := unreadable(src); e != nil {
		return nil, nil, Errors{*e}
	}
	var docs []Source
	var lines []int
	start, startLine, line := 0, 1, 1
	cut := func(end int) {
		if text := src.Data[start:end]; len(bytes.TrimSpace(text)) > 0 {
			docs, lines = append(docs, Source{src.Name, text}), append(lines, startLine)
		}
	}
	for at := 0; at < len(src.Data); line++ {
		end := len(src.Data)
		if i := bytes.IndexByte(src.Data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if marker := src.Data[at:end]; bytes.HasPrefix(marker, []byte("---")) || bytes.HasPrefix(marker, []byte("...")) {
			if rest := marker[3:]; len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' {
				cut(at)
				start, startLine = at, line // the marker stays: what follows it on its line is content
				if marker[0] == '.' {
					start, startLine = end, line+1
				}
			}
		}
		at = end
	}
	cut(len(src.Data))
	if len(docs) > maxCount {
		at := position{src.Name, lines[maxCount], 1}
		return nil, nil, Errors{{File: at.file, Line: at.line, Col: at.col, Rule: "size", Msg: fmt.Sprintf("the file has %d documents, more than the limit of %d: split it", len(docs), maxCount)}}
	}
	return docs, lines, nil
}

// unreadable refuses what no author means to write: each with the character's own position.
func unreadable(src Source) *Error {
	at := func(offset int, rule, msg string) *Error {
		before := src.Data[:offset]
		line := bytes.Count(before, []byte("\n"))
		col := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
		return &Error{File: src.Name, Line: line + 1, Col: col + 1, Rule: rule, Msg: msg}
	}
	data := src.Data
	if len(data) > MaxFile {
		return at(0, "size", fmt.Sprintf("the file has %d bytes, more than the limit of %d: split it", len(data), MaxFile))
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) || bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return at(0, "encoding", "the file starts with a byte order mark: save it as UTF-8 without one")
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return at(i, "encoding", "a NUL byte: save the file as plain UTF-8 text")
	}
	if i := bytes.IndexByte(data, '\r'); i >= 0 {
		return at(i, "encoding", "a carriage return: save the file with LF line ends")
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return at(i, "encoding", "a byte that is not UTF-8: save the file as UTF-8")
		}
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 { // YAML counts some of them as line ends, editors do not
			return at(i, "encoding", fmt.Sprintf("the character U+%04X, which is invisible: remove it, or write it as an escape in double quotes", r))
		}
		i += size
	}
	return nil
}

// parse reads one document. A document of comments only has neither root nor errors.
func parse(src Source, firstLine int) (doc document) {
	fail := func(line, col int, rule, msg string) document {
		return document{errs: Errors{{File: src.Name, Line: line, Col: col, Rule: rule, Msg: msg}}}
	}
	if len(src.Data) > maxDocument {
		return fail(firstLine, 1, "size", fmt.Sprintf("the document has %d bytes, more than the limit of %d", len(src.Data), maxDocument))
	}
	defer func() { // the parser is fed by strangers; its panic is their mistake, not a crash of ours
		if r := recover(); r != nil {
			doc = fail(firstLine, 1, "yaml", fmt.Sprintf("not YAML: %v", r))
		}
	}()
	var y yaml.Node
	if err := yaml.Unmarshal(src.Data, &y); err != nil {
		line, msg := yamlError(err)
		col := 1
		if alias := unknownAlias.FindStringSubmatch(msg); alias != nil { // the parser says which, but not where
			before, _, _ := bytes.Cut(src.Data, []byte("*"+alias[1]))
			line, col = bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])+1
			return fail(line+firstLine-1, col, "alias", "*"+alias[1]+": aliases are not supported; write the value out")
		}
		lines := bytes.Split(src.Data, []byte("\n"))
		for i, text := range lines {
			indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
			if tab := bytes.IndexByte(indent, '\t'); tab >= 0 {
				return fail(firstLine+i, tab+1, "yaml", "a tab in the indentation: YAML indents with spaces")
			}
		}
		line = min(line, len(lines))
		if line >= 1 {
			col = len(lines[line-1]) - len(bytes.TrimLeft(lines[line-1], " ")) + 1
		}
		return fail(max(line, 1)+firstLine-1, col, "yaml", msg)
	}
	if y.Kind == 0 || len(y.Content) == 0 {
		return document{}
	}
	r := reader{file: src.Name, offset: firstLine - 1}
	root := r.node(y.Content[0], nil, 0)
	if root.kind == nullKind || root.kind == unknownKind {
		return document{errs: r.errs}
	}
	return document{root: root, errs: r.errs} // what is left may hold further mistakes
}

var unknownAlias = regexp.MustCompile(`unknown anchor '(.*)' referenced`)

var yamlLine = regexp.MustCompile(`line (\d+): `)

// parserErrors are those whose line the parser counts from 0, unlike the scanner's.
var parserErrors = regexp.MustCompile(`^did not find expected (node content|key|'-' indicator|',' or|<)`)

// yamlError takes the line out of the parser's message, which names it in text only.
func yamlError(err error) (line int, msg string) {
	msg = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = strings.Replace(msg, m[0], "", 1)
		if parserErrors.MatchString(msg) {
			line++
		}
	}
	return line, "not YAML: " + msg
}

// reader turns the parser's tree into ours and refuses what would make a document mean something else to another
// reader of it: anchors, tags, duplicate keys, numbers in other notations.
type reader struct {
	file   string
	offset int
	errs   Errors
}

// maxReaderErrors bounds what one document says of itself: a bomb is thousands of aliases.
const maxReaderErrors = 10

func (r *reader) fail(y *yaml.Node, p *place, rule, msg string) {
	if len(r.errs) == maxReaderErrors {
		return
	}
	r.errs = append(r.errs, Error{File: r.file, Line: y.Line + r.offset, Col: max(y.Column, 1), Path: p.String(), Rule: rule, Msg: msg})
}

func (r *reader) node(y *yaml.Node, p *place, depth int) *node {
	n := &node{text: y.Value, at: position{r.file, y.Line + r.offset, max(y.Column, 1)}}
	switch {
	case depth > maxDepth:
		r.fail(y, p, "depth", fmt.Sprintf("nested deeper than %d levels", maxDepth))
		return n
	case y.Kind == yaml.AliasNode:
		r.fail(y, p, "alias", fmt.Sprintf("*%s: aliases are not supported; write the value out", y.Value))
		return n
	case y.Anchor != "":
		r.fail(y, p, "alias", fmt.Sprintf("&%s: anchors are not supported; write the value out where it is needed", y.Anchor))
	case y.Style&yaml.TaggedStyle != 0:
		r.fail(y, p, "tag", fmt.Sprintf("%s: tags are not supported; quote the value if it is a string", y.Tag))
		return n
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = mapKind
		r.mapping(n, y, p, depth)
	case yaml.SequenceNode:
		n.kind = listKind
		n.items = make([]*node, len(y.Content))
		for i, item := range y.Content {
			n.items[i] = r.node(item, &place{parent: p, item: true, index: i}, depth+1)
		}
	case yaml.ScalarNode:
		r.scalar(n, y, p)
	}
	return n
}

func (r *reader) mapping(n *node, y *yaml.Node, p *place, depth int) {
	n.fields = make([]entry, 0, len(y.Content)/2)
	seen := make(map[string]int, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		at := &place{parent: p, name: key.Value}
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!null":
			r.fail(key, p, "key", "a key that is not a string")
			continue
		case key.Tag == "!!merge":
			r.fail(key, p, "alias", "<<: merge keys are not supported; write the fields out")
			continue
		}
		if line, ok := seen[key.Value]; ok {
			r.fail(key, at, "duplicate-key", fmt.Sprintf("the key stands on line %d already", line))
			continue
		}
		seen[key.Value] = key.Line + r.offset
		n.fields = append(n.fields, entry{key.Value, position{r.file, key.Line + r.offset, key.Column}, r.node(y.Content[i+1], at, depth+1)})
	}
}

var plainInt = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})$`)

func (r *reader) scalar(n *node, y *yaml.Node, p *place) {
	switch y.ShortTag() {
	case "!!null":
		n.kind = nullKind
	case "!!bool":
		n.kind, n.text = boolKind, strings.ToLower(y.Value)
	case "!!int":
		n.kind = intKind
		if !plainInt.MatchString(y.Value) {
			n.kind = unknownKind
			r.fail(y, p, "number", fmt.Sprintf("%s: write numbers in plain decimal, or quote the value if it is a string", y.Value))
		}
	case "!!float":
		n.kind = floatKind
		if !json.Valid([]byte(y.Value)) || strings.ContainsAny(y.Value, "eE") {
			n.kind = unknownKind
			r.fail(y, p, "number", fmt.Sprintf("%s: write numbers in plain decimal, or quote the value if it is a string", y.Value))
		}
	default: // strings, and what only YAML 1.1 would read as a date
		n.kind = stringKind
	}
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
