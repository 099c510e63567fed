package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// Parse returns the document's content with lines of the stream; nil for a document of comments. Its error is an
// *Error.
func (d Document) Parse() (*yaml.Node, error) {
	root, failed := d.parse()
	if failed != nil {
		return nil, failed
	}
	return root, nil
}

func (d Document) parse() (root *yaml.Node, failed *Error) {
	defer func() { // the parser is fed by strangers; its panic is their mistake, not a crash of ours
		if r := recover(); r != nil {
			root, failed = nil, d.fail(d.Line, 1, "yaml", fmt.Sprint(r))
		}
	}()
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(d.Text))
	if err := decoder.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, d.parserError(err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	// The parser stops behind a root in brackets, whatever follows it.
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, d.trailing(err, &more)
	}
	shift(doc.Content[0], d.Line-1)
	return doc.Content[0], nil
}

// trailing is the error of content behind the end of the document, which the parser could read or not.
func (d Document) trailing(err error, more *yaml.Node) *Error {
	line := 0
	if err != nil {
		line, _ = d.position(err)
	} else if len(more.Content) > 0 {
		line = more.Content[0].Line + d.Line - 1
	}
	if line == 0 {
		line = d.FirstLine()
	}
	return d.fail(line, 1, "yaml", "there is more text after the end of the document: separate documents by a line of "+
		"---, or remove it")
}

func shift(n *yaml.Node, lines int) {
	n.Line += lines
	n.Column = max(n.Column, 1)
	for _, below := range n.Content {
		shift(below, lines)
	}
}

// JSON is the document as an API server reads it, by YAML 1.1; "null" for a document of comments. Of a key that stands
// twice the last value counts. Its error is an *Error.
func (d Document) JSON() ([]byte, error) { return d.json(sigsyaml.YAMLToJSON) }

// StrictJSON is JSON that refuses a key that stands twice.
func (d Document) StrictJSON() ([]byte, error) { return d.json(sigsyaml.YAMLToJSONStrict) }

func (d Document) json(convert func([]byte) ([]byte, error)) ([]byte, error) {
	if d.mayEnd() {
		if _, failed := d.parse(); failed != nil {
			return nil, failed
		}
	}
	text, err := convert(d.Text)
	if err != nil {
		line, msg := d.position(err)
		if line == 0 {
			line = d.FirstLine()
		}
		return nil, d.fail(line, 1, "yaml", msg)
	}
	return text, nil
}

// mayEnd reports whether the document can end before its text does: behind a root in brackets, or a line of dots.
func (d Document) mayEnd() bool {
	for line := range bytes.Lines(d.Text) {
		if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("---"))); len(line) > 0 && line[0] != '#' {
			return line[0] == '{' || line[0] == '[' || bytes.Contains(d.Text, []byte("\n..."))
		}
	}
	return false
}

func (d Document) fail(line, col int, rule, msg string) *Error {
	return &Error{Stream: d.Stream, Line: line, Col: col, Rule: rule, Msg: msg}
}

var (
	firstLine  = lazy.Regexp(`^line (\d+): `)
	otherLines = lazy.Regexp(`\n\s*line (\d+): `)
)

// position takes the line out of a parser's message, which names it in text only and counts from the document's start.
// It is 0 where the message has none.
func (d Document) position(err error) (line int, msg string) {
	msg = strings.TrimPrefix(err.Error(), "yaml: ")
	msg = strings.TrimPrefix(msg, "unmarshal errors:\n  ")
	if m := firstLine().FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		line, msg = line+d.Line-1, msg[len(m[0]):]
	}
	msg = otherLines().ReplaceAllStringFunc(msg, func(s string) string {
		n, _ := strconv.Atoi(otherLines().FindStringSubmatch(s)[1])
		return fmt.Sprintf("; line %d: ", n+d.Line-1)
	})
	return line, msg
}

// countedFromZero are the messages whose line the parser counts from 0, unlike its scanner.
var countedFromZero = lazy.Regexp(`^did not find expected (node content|key|'-' indicator|',' or|<)`)

// parserError finds the column too: that of the line's first character.
func (d Document) parserError(err error) *Error {
	line, msg := d.position(err)
	if line == 0 {
		return d.fail(d.Line, 1, "yaml", msg)
	}
	if countedFromZero().MatchString(msg) {
		line++
	}
	lines := bytes.Split(d.Text, []byte("\n"))
	i := max(0, min(line-d.Line, len(lines)-1))
	col := len(lines[i]) - len(bytes.TrimLeft(lines[i], " ")) + 1
	return d.fail(i+d.Line, col, "yaml", msg)
}

// place is the line and the column of a byte of the text.
func place(text []byte, offset int) (line, col int) {
	before := text[:offset]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}
