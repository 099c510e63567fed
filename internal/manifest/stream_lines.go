package manifest

import (
	"bytes"
)

// kindLine is the kind of an item whose keys are two columns right of its dash, "" where it is not plain to see.
func kindLine(text []byte, dash int) string {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line[min(indentOf(line), dash+2):], []byte("kind: ")); ok {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// condenseYAML leaves out of an object in block style the lines of fields that are not needed. It looks at indentation
// alone, so ok is false for all that is not as kubectl prints it.
func condenseYAML(text []byte, fields Fields) (short []byte, ok bool) {
	c := lineCutter{levels: []level{{col: unknown, parent: -1, fields: fields}}}
	for line := range bytes.Lines(text) {
		if !c.line(line) {
			return nil, false
		}
	}
	return c.out, c.quote == 0
}

// lineCutter walks the lines of one object.
type lineCutter struct {
	out    []byte
	levels []level
	region region // whose lines all stay, or all go
	quote  byte   // that is open at the end of the last line
}

// level is the keys of a mapping, or of all mappings in a sequence.
type level struct {
	col    int // of the keys, unknown before the first
	parent int // column of the key whose value it is
	fields Fields
}

const unknown = -1

// region is the lines below a key of a column.
type region struct {
	active, stay bool
	col          int
}

func (c *lineCutter) line(text []byte) bool {
	rest := bytes.TrimRight(text, " \r\n")
	indent := indentOf(rest)
	if c.quote != 0 { // the text goes on, deeper than its key: or else it is of nobody's making
		if len(rest) > 0 && indent <= c.region.col {
			return false
		}
		if closes(rest, c.quote) {
			c.quote = 0
		}
		c.keep(text, c.region.stay)
		return true
	}
	if len(rest) == 0 || rest[indent] == '#' {
		c.keep(text, !c.region.active || c.region.stay)
		return true
	}
	if rest[indent] == '\t' {
		return false
	}
	if c.region.active && (indent > c.region.col || indent == c.region.col && isDash(text[indent:])) {
		c.keep(text, c.region.stay)
		return c.opened(valueOf(rest[indent:]))
	}
	c.region.active = false
	return c.key(text, rest, indent)
}

func (c *lineCutter) keep(text []byte, stay bool) {
	if stay {
		c.out = append(c.out, text...)
	}
}

// key takes a line with a key of a mapping whose fields are chosen from.
func (c *lineCutter) key(text, rest []byte, indent int) bool {
	col := indent
	for col < len(rest) && isDash(text[col:]) {
		col++
		col += indentOf(rest[col:])
	}
	end := keyEnd(rest[min(col, len(rest)):])
	if end <= 0 {
		return false
	}
	l := c.level(col, indent)
	if l == nil {
		return false
	}
	name, value := rest[col:col+end], bytes.TrimLeft(rest[col+end+1:], " ")
	below, chosen := l.fields[string(name)]
	switch {
	case !chosen && col > indent: // the dash is the item's
		c.out = append(append(append(c.out, text[:col]...), name...), ": null\n"...)
	case chosen:
		c.out = append(c.out, text...)
	}
	if chosen && below != nil && len(value) == 0 {
		c.levels = append(c.levels, level{unknown, col, below})
		return true
	}
	c.region = region{true, chosen, col}
	return c.opened(value)
}

// level is that of a key at a column, on a line of some indentation; nil where it is none's.
func (c *lineCutter) level(col, indent int) *level {
	for len(c.levels) > 0 {
		l := &c.levels[len(c.levels)-1]
		if l.col == unknown && (indent > l.parent || indent == l.parent && col > indent) {
			l.col = col
		}
		if l.col == col {
			return l
		}
		if l.col != unknown && col > l.col {
			return nil
		}
		c.levels = c.levels[:len(c.levels)-1]
	}
	return nil
}

// opened notes a quote that the line does not close, and refuses what may end at any column.
func (c *lineCutter) opened(value []byte) bool {
	if len(value) == 0 {
		return true
	}
	switch first := value[0]; first {
	case '"', '\'':
		if len(value) == 1 || !closes(value[1:], first) {
			c.quote = first
		}
	case '{', '[':
		return value[len(value)-1] == first+2 // both brackets have their match two further
	case '&', '*', '!', '?':
		return false
	}
	return true
}

// closes says whether a quote ends at the end of a text.
func closes(text []byte, quote byte) bool {
	if len(text) == 0 || text[len(text)-1] != quote {
		return false
	}
	before := text[:len(text)-1]
	same := byte('\\')
	if quote == '\'' {
		same = quote
	}
	return (len(before)-len(bytes.TrimRight(before, string(same))))%2 == 0
}

// keyEnd is where the colon of a plain key is, -1 where there is none.
func keyEnd(text []byte) int {
	for i, c := range text {
		switch {
		case c == ':' && (i+1 == len(text) || text[i+1] == ' '):
			return i
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '-' || c == '/' || c == '_'):
		default:
			return -1
		}
	}
	return -1
}

// valueOf is what stands behind the dashes and the key of a line.
func valueOf(text []byte) []byte {
	for isDash(text) {
		text = bytes.TrimLeft(text[1:], " ")
	}
	if end := keyEnd(text); end > 0 {
		text = bytes.TrimLeft(text[end+1:], " ")
	}
	return text
}
