package manifest

import (
	"slices"
	"strconv"
	"strings"
)

// A YAML parser gives up on an implicit key longer than 1024 characters.
const maxImplicitKey = 1000

// printer lays YAML out in blocks. Each method that prints a value leaves the output at the start of a line.
type printer struct{ out []byte }

// object is a mapping that is being printed.
type object struct {
	indent int  // of its entries
	inSeq  bool // it is an item of a list, so that its first entry shares the line of the dash
	mark   int  // where its line goes on
	body   int  // where its first entry starts
}

func (p *printer) begin(indent int, inSeq bool) object {
	mark := len(p.out)
	p.out = append(p.out, lineOrSpace(inSeq))
	return object{indent + 2, inSeq, mark, len(p.out)}
}

func lineOrSpace(inSeq bool) byte {
	if inSeq {
		return ' '
	}
	return '\n'
}

// end prints an object without entries, or of which all were dropped.
func (p *printer) end(o object) {
	if len(p.out) == o.body {
		p.out = append(p.out[:o.mark], " {}\n"...)
	}
}

// entry begins a line for a key, and says where it begins.
func (p *printer) entry(o object) int {
	start := len(p.out)
	if !o.inSeq || start > o.body {
		p.indent(o.indent)
	}
	return start
}

// key prints an entry's key and the colon, and says where the entry begins.
func (p *printer) key(o object, key string) int {
	entry := p.entry(o)
	start := len(p.out)
	p.out = appendKey(p.out, key)
	if len(p.out)-start > maxImplicitKey {
		p.out = append(slices.Insert(p.out, start, '?', ' '), '\n')
		p.indent(o.indent)
	}
	p.out = append(p.out, ':')
	return entry
}

// drop takes an entry back whose value is printed as one of texts.
func (p *printer) drop(entry, value int, texts []string) {
	for _, text := range texts {
		if string(p.out[value:]) == text {
			p.out = p.out[:entry]
			return
		}
	}
}

// beginList says at which indentation the items go. A list sits at that of its key, but one inside a list has to sit
// deeper than its dash.
func (p *printer) beginList(indent int, inSeq bool) int {
	p.out = append(p.out, lineOrSpace(inSeq))
	if inSeq {
		return indent + 2
	}
	return max(indent, 0)
}

// item begins a line for an item, or goes on behind the dash of the list around it.
func (p *printer) item(indent int, inline bool) {
	if !inline {
		p.indent(indent)
	}
	p.out = append(p.out, '-')
}

func (p *printer) indent(n int) {
	const spaces = "                                "
	for ; n > len(spaces); n -= len(spaces) {
		p.out = append(p.out, spaces...)
	}
	p.out = append(p.out, spaces[:n]...)
}

// text prints a string; indent is that of its line.
func (p *printer) text(s string, indent int) {
	p.out = append(p.out, ' ')
	p.out = append(appendString(p.out, s, max(indent, 0)+2), '\n')
}

func (p *printer) integer(n int64) {
	p.out = append(p.out, ' ')
	p.out = append(strconv.AppendInt(p.out, n, 10), '\n')
}

// literal prints a number, true, false or null, as JSON writes them, and []. YAML 1.1 knows a float only by its dot and
// signed exponent, which JSON lets go: 1e9 is a string.
func (p *printer) literal(lit string) {
	p.out = append(p.out, ' ')
	if e := strings.IndexAny(lit, "eE"); e > 0 && lit[e-1] <= '9' {
		p.out = append(p.out, lit[:e]...)
		if !strings.Contains(lit[:e], ".") {
			p.out = append(p.out, ".0"...)
		}
		p.out = append(p.out, 'e')
		if lit = lit[e+1:]; lit[0] != '-' && lit[0] != '+' {
			p.out = append(p.out, '+')
		}
	}
	p.out = append(append(p.out, lit...), '\n')
}
