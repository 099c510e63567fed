package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tegen-dev/tegen/internal/finding"
)

// syntaxError is a mistake in JSON, at a byte of the text at hand.
type syntaxError struct {
	offset int
	msg    string
	at     finding.List // once its line is known
}

func (e *syntaxError) Error() string {
	if e.at != nil {
		return e.at.Error()
	}
	return e.msg
}

// Unwrap gives the finding.
func (e *syntaxError) Unwrap() error { return e.at }

const endsEarly = "the text ends in the middle of an object"

// syntaxError gives a mistake in the document's JSON its line.
func (d document) syntaxError(err error) error {
	var e *syntaxError
	if !errors.As(err, &e) {
		return err
	}
	line := d.Line + bytes.Count(d.Text[:min(e.offset, len(d.Text))], []byte("\n"))
	e.at = finding.List{{
		Rule: "manifest/yaml", Level: finding.Error, File: d.Stream, Line: line, Message: "parsing JSON: " + e.msg,
	}}
	return e
}

// wrong is a mistake in the JSON that begins at pos; err is why it could not be read on.
func (s *stream) wrong(err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		var large errTooLarge
		if errors.As(err, &large) {
			return s.document(nil, s.line).syntaxError(&syntaxError{msg: err.Error()})
		}
		return s.readError(err)
	}
	rest := s.buf[s.pos:]
	scan := scanner{in: rest}
	scan.space()
	e := &syntaxError{offset: scan.pos, msg: endsEarly}
	if scan.pos < len(rest) {
		e.msg = fmt.Sprintf("%q is not expected here", rest[scan.pos])
		var inner *syntaxError
		if errors.Is(err, io.EOF) && errors.As(scan.skip(), &inner) {
			e = inner
		}
	}
	return s.document(rest, s.line).syntaxError(e)
}

type errTooLarge struct{}

func (errTooLarge) Error() string {
	return fmt.Sprintf("an object has more than %d MiB, which no server takes", maxObject>>20)
}

// json reads a document, which begins with a brace.
func (s *stream) json() error {
	l := &list{}
	d := s.document(nil, s.line)
	add := func(n int) []byte { // to the document without its items
		d.Text = append(d.Text, s.advance(n)...)
		return d.Text[len(d.Text)-n:]
	}
	add(1)
	for first := true; ; first = false {
		more, err := s.comma(first, '}', add)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		isItems, err := s.key(add)
		if err != nil {
			return err
		}
		if c, err := s.peek(0); err == nil && c == '[' && isItems {
			l.head, _ = headOf(d.Text) // as far as it is known
			d.Text = append(d.Text, "[]"...)
			if err := s.items(l); err != nil {
				return err
			}
			continue
		}
		n, err := s.extent()
		if err != nil || n == 0 {
			return s.wrong(err)
		}
		if add(n); len(d.Text) > maxObject {
			return s.wrong(errTooLarge{})
		}
	}
	if l.count > 0 {
		return s.end(l, d)
	}
	h, err := headOf(d.Text)
	if err != nil {
		return d.syntaxError(err)
	}
	return s.object(nil, d, h, d.Text)
}

// comma passes what stands before the next member or item, or passes the end.
func (s *stream) comma(first bool, end byte, pass func(int) []byte) (more bool, err error) {
	i, c, err := s.afterSpace(0)
	switch {
	case err != nil:
		return false, s.wrong(err)
	case c == end:
		pass(i + 1)
		return false, nil
	case c != ',' && !first || c == ',' && first:
		return false, s.wrong(nil)
	case first:
		pass(i)
		return true, nil
	}
	pass(i + 1)
	if i, _, err = s.afterSpace(0); err != nil {
		return false, s.wrong(err)
	}
	pass(i)
	return true, nil
}

// key passes a key and its colon, and says whether the value is the items of a list.
func (s *stream) key(pass func(int) []byte) (isItems bool, err error) {
	c, err := s.peek(0)
	if err != nil || c != '"' {
		return false, s.wrong(err)
	}
	n, err := s.extent()
	if err != nil {
		return false, s.wrong(err)
	}
	isItems = string(pass(n)) == `"items"`
	i, c, err := s.afterSpace(0)
	if err != nil || c != ':' {
		return false, s.wrong(err)
	}
	pass(i + 1)
	if i, _, err = s.afterSpace(0); err != nil {
		return false, s.wrong(err)
	}
	pass(i)
	return isItems, nil
}

// items reads those of a list, which begin with a bracket.
func (s *stream) items(l *list) error {
	s.advance(1)
	for first := true; ; first = false {
		more, err := s.comma(first, ']', s.advance)
		if err != nil || !more {
			return err
		}
		n, err := s.extent()
		if err != nil || n == 0 {
			return s.wrong(err)
		}
		line := s.line
		text := s.advance(n)
		d := s.document(text, line)
		if text[0] != '{' {
			if _, err := condense(nil, text, nil); err != nil {
				return d.syntaxError(err)
			}
			return d.errorAt(nil, fmt.Errorf("reading items[%d]: want an object", l.count))
		}
		if err := s.item(l, d, text); err != nil {
			return err
		}
	}
}

// extent is how many bytes the value at pos has; all of them are in the buffer then. Only its end is looked for.
func (s *stream) extent() (int, error) {
	depth, quoted := 0, false
	for i := 0; ; {
		text := s.buf[s.pos:]
		for ; i < len(text); i++ {
			c := text[i]
			switch {
			case quoted:
				switch c {
				case '\\':
					i++
				case '"':
					if quoted = false; depth == 0 {
						return i + 1, nil
					}
				}
			case c == '"':
				quoted = true
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				if depth == 0 {
					return i, nil
				}
				if depth--; depth == 0 {
					return i + 1, nil
				}
			case depth == 0 && (c == ',' || c == ':' || c <= ' '):
				return i, nil
			}
		}
		if len(text) > maxObject {
			return 0, errTooLarge{}
		}
		if err := s.more(); err != nil {
			return 0, err
		}
	}
}

// scanner reads JSON that is here.
type scanner struct {
	in    []byte
	pos   int
	depth int
}

const maxNesting = 1000

func (s *scanner) fail() error {
	if s.pos >= len(s.in) {
		return &syntaxError{offset: len(s.in), msg: endsEarly}
	}
	return &syntaxError{offset: s.pos, msg: fmt.Sprintf("%q is not expected here", s.in[s.pos])}
}

func (s *scanner) space() {
	for s.pos < len(s.in) && s.in[s.pos] <= ' ' &&
		(s.in[s.pos] == ' ' || s.in[s.pos] == '\n' || s.in[s.pos] == '\t' || s.in[s.pos] == '\r') {
		s.pos++
	}
}

// at passes white space, and then a byte if it is this one.
func (s *scanner) at(c byte) bool {
	s.space()
	if s.pos < len(s.in) && s.in[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// members passes an object. value is called with each key, and passes the value.
func (s *scanner) members(value func(key []byte) error) error {
	if !s.at('{') {
		return s.fail()
	}
	if s.at('}') {
		return nil
	}
	for {
		s.space()
		start := s.pos
		if err := s.text(); err != nil {
			return err
		}
		key := s.in[start+1 : s.pos-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			var plain string
			if err := json.Unmarshal(s.in[start:s.pos], &plain); err != nil {
				return &syntaxError{offset: start, msg: "a key that is no text"}
			}
			key = []byte(plain)
		}
		if !s.at(':') {
			return s.fail()
		}
		s.space()
		if err := value(key); err != nil {
			return err
		}
		if s.at('}') {
			return nil
		}
		if !s.at(',') {
			return s.fail()
		}
	}
}

// elements passes an array. value passes each.
func (s *scanner) elements(value func() error) error {
	if !s.at('[') {
		return s.fail()
	}
	if s.at(']') {
		return nil
	}
	for {
		s.space()
		if err := value(); err != nil {
			return err
		}
		if s.at(']') {
			return nil
		}
		if !s.at(',') {
			return s.fail()
		}
	}
}

// text passes a string.
func (s *scanner) text() error {
	if s.pos >= len(s.in) || s.in[s.pos] != '"' {
		return s.fail()
	}
	for i := s.pos + 1; i < len(s.in); i++ {
		switch c := s.in[i]; {
		case c == '"':
			s.pos = i + 1
			return nil
		case c == '\\':
			i++
		case c < ' ':
			s.pos = i
			return s.fail()
		}
	}
	s.pos = len(s.in)
	return s.fail()
}

// skip passes a value.
func (s *scanner) skip() (err error) {
	s.space()
	if s.pos >= len(s.in) {
		return s.fail()
	}
	if s.depth++; s.depth > maxNesting {
		return &syntaxError{offset: s.pos, msg: fmt.Sprintf("nested deeper than %d levels", maxNesting)}
	}
	defer func() { s.depth-- }()
	switch s.in[s.pos] {
	case '{':
		return s.members(func([]byte) error { return s.skip() })
	case '[':
		return s.elements(s.skip)
	case '"':
		return s.text()
	}
	return s.scalar()
}

// scalar passes a number, true, false or null.
func (s *scanner) scalar() error {
	start := s.pos
	for s.pos < len(s.in) && (s.in[s.pos] >= 'a' && s.in[s.pos] <= 'z' || s.in[s.pos] >= '0' && s.in[s.pos] <= '9' ||
		s.in[s.pos] == '-' || s.in[s.pos] == '+' || s.in[s.pos] == '.' || s.in[s.pos] == 'E') {
		s.pos++
	}
	if !json.Valid(s.in[start:s.pos]) {
		s.pos = start
		return s.fail()
	}
	return nil
}

// condense appends the fields of a value to out.
func condense(out, text []byte, fields Fields) ([]byte, error) {
	s := scanner{in: text}
	out, err := s.condense(out, fields)
	if s.space(); err == nil && s.pos < len(text) {
		err = s.fail()
	}
	return out, err
}

func (s *scanner) condense(out []byte, fields Fields) ([]byte, error) {
	s.space()
	start := s.pos
	var first byte
	if s.pos < len(s.in) {
		first = s.in[s.pos]
	}
	switch {
	case fields != nil && first == '{':
		out = append(out, '{')
		err := s.members(func(key []byte) (err error) {
			below, ok := fields[string(key)]
			if !ok {
				return s.skip()
			}
			if out[len(out)-1] != '{' {
				out = append(out, ',')
			}
			out = append(append(append(out, '"'), key...), '"', ':')
			out, err = s.condense(out, below)
			return err
		})
		return append(out, '}'), err
	case fields != nil && first == '[':
		out = append(out, '[')
		err := s.elements(func() (err error) {
			if out[len(out)-1] != '[' {
				out = append(out, ',')
			}
			out, err = s.condense(out, fields)
			return err
		})
		return append(out, ']'), err
	}
	err := s.skip()
	return append(out, s.in[start:s.pos]...), err
}
