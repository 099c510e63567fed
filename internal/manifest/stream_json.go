package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tegen-dev/tegen/internal/finding"
)

// syntaxError is a syntax error in JSON.
type syntaxError struct{ finding.List }

// Unwrap returns the finding.
func (e syntaxError) Unwrap() error { return e.List }

func (s *stream) syntaxError(line int, msg string) error {
	return syntaxError{finding.List{{
		Rule: "manifest/yaml", Level: finding.Error, File: s.name, Line: line, Message: "parsing JSON: " + msg,
	}}}
}

var errTooLarge = fmt.Errorf("an object has more than %d MiB, which no server takes", maxObject>>20)

// jsonReader decodes one JSON document of a stream. The stream keeps the text until it is passed, so that nothing is
// copied and errors have their lines.
type jsonReader struct {
	*json.Decoder
	s      *stream
	given  int   // bytes after the position of the stream that the decoder has read
	passed int64 // offset of the position of the stream in the document
}

// Read gives the decoder the text. It refuses a value that is too large, since the stream would have to hold it.
func (d *jsonReader) Read(p []byte) (int, error) {
	if d.given > maxObject {
		return 0, errTooLarge
	}
	if _, err := d.s.peek(d.given); err != nil {
		return 0, err
	}
	n := copy(p, d.s.buf[d.s.pos+d.given:])
	d.given += n
	return n, nil
}

// pass advances the stream to the end of the last token or value, and returns the text up to there.
func (d *jsonReader) pass() []byte {
	n := int(d.InputOffset() - d.passed)
	d.passed += int64(n)
	d.given -= n
	return d.s.advance(n)
}

// skipped is a value of JSON whose syntax is checked and whose content is not decoded.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// failed returns the error of the decoder with its line. The offset in an error of json.Decoder does not count the
// tokens before it, so a second decoder looks for the error from the last token on.
func (d *jsonReader) failed(err error) error {
	rest := d.s.buf[d.s.pos+int(d.InputOffset()-d.passed) : d.s.pos+d.given]
	line := d.s.line + bytes.Count(d.s.buf[d.s.pos:d.s.pos+d.given-len(rest)], []byte("\n"))
	var syntax, second *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return d.s.syntaxError(line+bytes.Count(rest, []byte("\n")), "the text ends in the middle of an object")
	case errors.As(err, &syntax):
		if errors.As(json.NewDecoder(bytes.NewReader(rest)).Decode(&skipped{}), &second) {
			line += bytes.Count(rest[:second.Offset-1], []byte("\n"))
		}
		return d.s.syntaxError(line, syntax.Error())
	case errors.Is(err, errTooLarge):
		return d.s.syntaxError(line, err.Error())
	}
	return d.s.readError(err)
}

// json reads a document, which begins with a brace.
func (s *stream) json() error {
	d := &jsonReader{s: s}
	d.Decoder = json.NewDecoder(d)
	l := &list{}
	doc := s.document(nil, s.line) // without its items
	if _, err := d.Token(); err != nil {
		return d.failed(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return d.failed(err)
		}
		doc.Text = append(doc.Text, d.pass()...)
		if key == "items" && d.atArray() {
			l.head = headOf(doc.Text) // as far as it is known
			if err := d.items(l); err != nil {
				return err
			}
			doc.Text = append(doc.Text, ":[]"...)
			continue
		}
		if err := d.Decode(&skipped{}); err != nil {
			return d.failed(err)
		}
		if doc.Text = append(doc.Text, d.pass()...); len(doc.Text) > maxObject {
			return d.failed(errTooLarge)
		}
	}
	if _, err := d.Token(); err != nil {
		return d.failed(err)
	}
	doc.Text = append(doc.Text, d.pass()...)
	if l.count > 0 {
		return s.end(l, doc)
	}
	return s.object(nil, doc, headOf(doc.Text), doc.Text)
}

// atArray reports whether the value after a key is an array.
func (d *jsonReader) atArray() bool {
	i, c, err := d.s.afterSpace(0)
	if err == nil && c == ':' {
		_, c, err = d.s.afterSpace(i + 1)
	}
	return err == nil && c == '['
}

// items reads the items of a list.
func (d *jsonReader) items(l *list) error {
	if _, err := d.Token(); err != nil {
		return d.failed(err)
	}
	for d.More() {
		if err := d.Decode(&skipped{}); err != nil {
			return d.failed(err)
		}
		line := d.s.line
		text := d.pass()
		item := bytes.TrimLeft(text, ":[, \t\r\n")
		line += bytes.Count(text[:len(text)-len(item)], []byte("\n"))
		doc := d.s.document(item, line)
		if item[0] != '{' {
			return doc.errorAt(nil, fmt.Errorf("reading items[%d]: want an object", l.count))
		}
		if err := d.s.item(l, doc, item); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return d.failed(err)
	}
	d.pass()
	return nil
}

// headOf reads as much of an object as it has to, which may be cut off.
func headOf(text []byte) (h head) {
	d := json.NewDecoder(bytes.NewReader(text))
	_, err := d.Token()
	for err == nil && d.More() && (h.apiVersion == "" || h.kind == "") {
		var key json.Token
		if key, err = d.Token(); err != nil {
			break
		}
		switch key {
		case "apiVersion":
			err = d.Decode(&h.apiVersion)
		case "kind":
			err = d.Decode(&h.kind)
		default:
			err = d.Decode(&skipped{})
		}
	}
	return h
}

// condense appends the chosen fields of a value to out. The text is valid JSON.
func condense(out, text []byte, fields Fields) []byte {
	c := condenser{in: text, out: out}
	c.value(fields)
	return c.out
}

// condenser copies chosen fields. Decoding all of an object takes several times as long.
type condenser struct {
	in, out []byte
	pos     int
}

func (c *condenser) value(fields Fields) {
	start := c.next()
	if fields == nil || start != '{' && start != '[' {
		c.out = append(c.out, c.skip()...)
		return
	}
	c.pos++
	c.out = append(c.out, start)
	end := start + 2 // '}' and ']'
	for c.next() != end {
		below := fields
		if start == '{' {
			name := c.name()
			var chosen bool
			if below, chosen = fields[string(name[1:len(name)-1])]; bytes.IndexByte(name, '\\') >= 0 {
				below = nil // the decoder reads names with escapes
			} else if !chosen {
				c.next()
				c.skip()
				continue
			}
			c.out = append(append(c.out, name...), ':')
		}
		c.value(below)
		c.out = append(c.out, ',')
	}
	c.pos++
	c.out = append(bytes.TrimSuffix(c.out, []byte(",")), end)
}

// next passes what stands between names and values, and returns the byte after it.
func (c *condenser) next() byte {
	for strings.IndexByte(" \t\r\n,:", c.in[c.pos]) >= 0 {
		c.pos++
	}
	return c.in[c.pos]
}

// name passes a string.
func (c *condenser) name() []byte {
	start := c.pos
	for c.pos++; c.in[c.pos] != '"'; c.pos++ {
		if c.in[c.pos] == '\\' {
			c.pos++
		}
	}
	c.pos++
	return c.in[start:c.pos]
}

// skip passes a value.
func (c *condenser) skip() []byte {
	start := c.pos
	for depth := 0; c.pos < len(c.in); c.pos++ {
		switch c.in[c.pos] {
		case '"':
			c.name()
			c.pos--
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return c.in[start:c.pos]
			}
		case ',':
			if depth == 0 {
				return c.in[start:c.pos]
			}
		}
	}
	return c.in[start:]
}
