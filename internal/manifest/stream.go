package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Fields are the fields of an object that its reader needs, each with those of its value; nil are all of a value. Those
// of a list are those of its items.
type Fields map[string]Fields

const (
	window     = 256 << 10 // that is read at once
	maxObject  = 64 << 20  // of an object, or of YAML that cannot be read item by item
	maxWhole   = 1 << 20   // of a YAML document that is read as a whole, where anything goes that YAML has
	listSuffix = "List"
)

// Stream is ReadPrinted for what is too large to be held: the items of a list, in JSON or in YAML of kubectl's form,
// are read and handed on one by one. fields are, for kinds of v1, the fields to decode, with apiVersion and kind. The
// syntax of other fields is checked in JSON only.
func Stream(name string, in io.Reader, fields map[string]Fields, each func(runtime.Object) error) error {
	return newStream(name, in, fields, each).run()
}

// stream is a text that is being read. line is that of the byte at pos.
type stream struct {
	name   string
	in     io.Reader
	buf    []byte
	pos    int
	line   int
	ended  bool
	most   int // bytes of a YAML document that is read as a whole
	handed int // objects
	fields map[string]Fields
	each   func(runtime.Object) error
	short  []byte // of an object, used again
}

func newStream(name string, in io.Reader, fields map[string]Fields, each func(runtime.Object) error) *stream {
	return &stream{name: name, in: in, line: 1, most: maxWhole, fields: fields, each: each}
}

// more reads on, and drops what lies before pos.
func (s *stream) more() error {
	if s.ended {
		return io.EOF
	}
	s.buf = s.buf[:copy(s.buf, s.buf[s.pos:])]
	s.pos = 0
	if cap(s.buf)-len(s.buf) < window/2 {
		larger := make([]byte, len(s.buf), max(2*cap(s.buf), window))
		copy(larger, s.buf)
		s.buf = larger
	}
	n, err := s.in.Read(s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	if errors.Is(err, io.EOF) {
		s.ended = true
		if n > 0 {
			err = nil
		}
	}
	return err
}

// advance passes n bytes and returns them. They stay as they are until more is read.
func (s *stream) advance(n int) []byte {
	text := s.buf[s.pos : s.pos+n]
	s.line += bytes.Count(text, []byte("\n"))
	s.pos += n
	return text
}

func (s *stream) run() error {
	for !s.ended && len(s.buf) <= s.most {
		if err := s.more(); err != nil && !errors.Is(err, io.EOF) {
			return s.readError(err)
		}
	}
	var all []byte
	if s.ended { // a person may have written it, in YAML that looks like JSON up to some place
		all = bytes.Clone(s.buf)
	}
	s.pos += len(s.buf) - len(bytes.TrimPrefix(s.buf, []byte("\ufeff")))
	for {
		isJSON, err := s.atJSON()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return s.readError(err)
		case isJSON:
			err = s.json()
		default:
			err = s.yaml()
		}
		var syntax syntaxError
		if errors.As(err, &syntax) && all != nil && s.handed == 0 {
			if s.documents(all) == nil {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// documents reads what is here as a whole.
func (s *stream) documents(text []byte) error {
	for _, d := range documents(s.name, yamldoc.JoinSurrogates(text), true) {
		d.named = true
		if err := s.whole(d); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) readError(err error) error { return fmt.Errorf("reading %s: %w", s.name, err) }

// peek has i+1 bytes in the buffer, if there are so many, and returns the last of them.
func (s *stream) peek(i int) (byte, error) {
	for s.pos+i >= len(s.buf) {
		if err := s.more(); err != nil {
			return 0, err
		}
	}
	return s.buf[s.pos+i], nil
}

// atJSON passes blank lines and those of "---" alone, and says whether JSON follows: a mapping of YAML, whose keys need
// no quotes, begins with a brace too.
func (s *stream) atJSON() (bool, error) {
	for {
		i, c, err := s.afterSpace(0)
		if err != nil {
			return false, err
		}
		if c != '{' { // the indentation of YAML belongs to it
			i = bytes.LastIndexByte(s.buf[s.pos:s.pos+i], '\n') + 1
		}
		s.advance(i)
		switch c {
		case '{':
			_, next, err := s.afterSpace(1)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return next == '"' || next == '}', err
		case '-':
			line, err := s.wholeLine(0)
			if err != nil || string(bytes.TrimRight(line, " \t\r\n")) != "---" {
				return false, err
			}
			s.advance(len(line))
		default:
			return false, nil
		}
	}
}

// afterSpace finds the first byte from i on that is no white space.
func (s *stream) afterSpace(i int) (int, byte, error) {
	for ; ; i++ {
		c, err := s.peek(i)
		if err != nil || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return i, c, err
		}
	}
}

// wholeLine is the line that begins at i, with its end, without passing it; nothing at the end of the text.
func (s *stream) wholeLine(i int) ([]byte, error) {
	for from := i; ; {
		if from < len(s.buf)-s.pos {
			if end := bytes.IndexByte(s.buf[s.pos+from:], '\n'); end >= 0 {
				return s.buf[s.pos+i : s.pos+from+end+1], nil
			}
			from = len(s.buf) - s.pos
		}
		if from-i > maxObject {
			return nil, s.tooLong(s.line)
		}
		if err := s.more(); errors.Is(err, io.EOF) {
			return s.buf[min(s.pos+i, len(s.buf)):], nil
		} else if err != nil {
			return nil, err
		}
	}
}
