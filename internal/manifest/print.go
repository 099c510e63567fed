package manifest

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// A YAML parser gives up on an implicit key longer than 1024 characters.
const maxImplicitKey = 1000

// appendYAML prints compact JSON, as encoding/json gives it, as block YAML in
// the order of its keys. typed says that the JSON comes from a Go struct,
// whose zero fields are noise, and that its apiVersion and kind are printed
// already.
func appendYAML(dst, json []byte, typed bool) []byte {
	p := printer{out: dst, in: json, typed: typed}
	switch p.in[0] {
	case '{':
		mark := len(p.out)
		if p.object(0, false) && !typed {
			p.out = append(p.out[:mark], "{}\n"...)
		}
	case '[':
		mark := len(p.out)
		if p.array(0, false) {
			p.out = append(p.out[:mark], "[]\n"...)
		}
	default:
		p.scalar(2)
	}
	return p.out
}

// printer trusts its input: it is only ever given what encoding/json made.
// Each method consumes one JSON value and leaves the output at a line start.
type printer struct {
	out     []byte
	in      []byte
	pos     int
	typed   bool
	scratch []byte // the latest string that had escapes in it
}

// value prints what follows a ":" or a "-" on its line, and says whether it
// was an empty object. indent is that of the line.
func (p *printer) value(indent int, inSeq bool) bool {
	mark := len(p.out)
	switch p.in[p.pos] {
	case '{':
		p.startBlock(inSeq)
		empty := p.object(indent+2, inSeq)
		if empty {
			p.out = append(p.out[:mark], " {}\n"...)
		}
		return empty
	case '[':
		p.startBlock(inSeq)
		// A list sits at the indentation of its key, but one inside a list has
		// to sit deeper than its dash.
		if inSeq {
			indent += 2
		}
		if p.array(indent, inSeq) {
			p.out = append(p.out[:mark], " []\n"...)
		}
	default:
		p.out = append(p.out, ' ')
		p.scalar(indent + 2)
	}
	return false
}

// startBlock: the first entry of a list item shares the line of its dash.
func (p *printer) startBlock(inSeq bool) {
	if inSeq {
		p.out = append(p.out, ' ')
		return
	}
	p.out = append(p.out, '\n')
}

// object says whether it printed nothing, either because the object is empty
// or because all of it was pruned.
func (p *printer) object(indent int, inline bool) (empty bool) {
	empty = true
	p.pos++
	for p.in[p.pos] != '}' {
		if p.in[p.pos] == ',' {
			p.pos++
		}
		mark := len(p.out)
		if !inline || !empty {
			p.indent(indent)
		}
		key := p.str()
		head := indent == 0 && p.droppedAtTop(key)
		droppable := p.noise(key)
		explicit := p.key(key)
		p.pos++
		if explicit {
			p.out = append(p.out, '\n')
			p.indent(indent)
		}
		p.out = append(p.out, ':')

		start := p.pos
		emptied := p.value(indent, false)
		if head || droppable.matches(p.in[start:p.pos], emptied) {
			p.out = p.out[:mark]
			continue
		}
		empty = false
	}
	p.pos++
	return empty
}

func (p *printer) array(indent int, inline bool) (empty bool) {
	empty = true
	p.pos++
	for p.in[p.pos] != ']' {
		if p.in[p.pos] == ',' {
			p.pos++
		}
		if !inline || !empty {
			p.indent(indent)
		}
		p.out = append(p.out, '-')
		p.value(indent, true)
		empty = false
	}
	p.pos++
	return empty
}

// key prints a mapping key and says whether it took the explicit "? " form.
func (p *printer) key(key []byte) (explicit bool) {
	start := len(p.out)
	p.out = appendKey(p.out, key)
	if len(p.out)-start <= maxImplicitKey {
		return false
	}
	p.out = append(p.out[:start], "? "...)
	p.out = appendKey(p.out, key)
	return true
}

func (p *printer) scalar(indent int) {
	if p.in[p.pos] == '"' {
		p.out = appendString(p.out, p.str(), indent)
	} else {
		start := p.pos
		for p.pos < len(p.in) && !isDelim(p.in[p.pos]) {
			p.pos++
		}
		p.out = appendLiteral(p.out, p.in[start:p.pos])
	}
	p.out = append(p.out, '\n')
}

func isDelim(c byte) bool { return c == ',' || c == '}' || c == ']' || c == '\n' }

// appendLiteral prints a number, true, false or null. YAML 1.1 knows a float
// only by its dot and signed exponent, which JSON lets go: 1e9 is a string.
func appendLiteral(dst, lit []byte) []byte {
	e := bytes.IndexAny(lit, "eE")
	if e < 0 || lit[0] == 't' || lit[0] == 'f' {
		return append(dst, lit...)
	}
	dst = append(dst, lit[:e]...)
	if bytes.IndexByte(lit[:e], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	dst = append(dst, 'e')
	if c := lit[e+1]; c != '-' && c != '+' {
		dst = append(dst, '+')
	}
	return append(dst, lit[e+1:]...)
}

func (p *printer) indent(n int) {
	const spaces = "                                "
	for ; n > len(spaces); n -= len(spaces) {
		p.out = append(p.out, spaces...)
	}
	p.out = append(p.out, spaces[:n]...)
}

// str decodes the JSON string at pos. The bytes hold until the next call.
func (p *printer) str() []byte {
	p.pos++
	rest := p.in[p.pos:]
	end := bytes.IndexByte(rest, '"')
	if bytes.IndexByte(rest[:end], '\\') < 0 {
		p.pos += end + 1
		return rest[:end]
	}
	out := p.scratch[:0]
	for {
		n := bytes.IndexAny(p.in[p.pos:], `"\`)
		out = append(out, p.in[p.pos:p.pos+n]...)
		p.pos += n + 1
		if p.in[p.pos-1] == '"' {
			p.scratch = out
			return out
		}
		out = p.unescape(out)
	}
}

// unescape decodes what follows a backslash in a JSON string.
func (p *printer) unescape(out []byte) []byte {
	c := p.in[p.pos]
	p.pos++
	switch c {
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'u':
		r := p.hex4()
		if utf16.IsSurrogate(r) {
			r = p.lowSurrogate(r)
		}
		return utf8.AppendRune(out, r)
	default:
		return append(out, c)
	}
}

// lowSurrogate joins a high surrogate with the escape after it. Like
// encoding/json it reads a lone one as U+FFFD.
func (p *printer) lowSurrogate(high rune) rune {
	if p.in[p.pos] != '\\' || p.in[p.pos+1] != 'u' {
		return utf8.RuneError
	}
	back := p.pos
	p.pos += 2
	r := utf16.DecodeRune(high, p.hex4())
	if r == utf8.RuneError {
		p.pos = back
	}
	return r
}

func (p *printer) hex4() rune {
	var r rune
	for _, c := range p.in[p.pos : p.pos+4] {
		r <<= 4
		switch {
		case c <= '9':
			r |= rune(c - '0')
		default:
			r |= rune(c|0x20-'a') + 10
		}
	}
	p.pos += 4
	return r
}
