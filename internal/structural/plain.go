package structural

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// What is larger or deeper is left to the parser of all of YAML, and to its limits.
const (
	maxPlainText   = 1 << 16
	maxPlainDepth  = 16
	maxPlainFields = 100 // of one mapping: each key is compared with those before it
)

// parsePlain reads the subset of YAML that most jobs are written in: block mappings and lists, and those that are in
// brackets in one line, of words, whole numbers and quoted texts without escapes, all in ASCII. It takes a tenth of the
// time of the YAML parser, and leaves to that, by returning nil, whatever else stands in a document or could be a
// mistake. FuzzPlain and TestPlainFiles hold the two together.
func parsePlain(doc yamldoc.Document) *Node {
	if doc.Root != nil || len(doc.Text) > maxPlainText {
		return nil
	}
	p := plainParser{file: doc.Stream, line: doc.Line, text: string(doc.Text)}
	p.content()
	if strings.HasPrefix(p.text[p.pos:], "---\n") && p.indent == 0 {
		p.pos += len("---")
		p.next()
	}
	if p.indent > 0 || !p.more() {
		return nil
	}
	root := p.block(0)
	if p.more() || p.failed {
		return nil
	}
	return root
}

// plainParser goes through a text once. What reads a value begins at it, and ends at the next line that has one.
type plainParser struct {
	file string
	text string

	pos, line, start int // start is that of the line
	indent           int // of the line
	depth            int
	failed           bool // the text is not plain

	fields []Entry // of the mappings, and items of the lists, that are being read
	items  []*Node
}

func (p *plainParser) more() bool { return p.pos < len(p.text) && !p.failed }

func (p *plainParser) fail() *Node {
	p.failed = true
	return nil
}

func (p *plainParser) at() Position { return Position{p.file, p.line, p.pos - p.start + 1} }

// next goes from the end of a line to the next one that has more than a comment.
func (p *plainParser) next() {
	switch {
	case !p.more():
	case p.text[p.pos] != '\n':
		p.fail()
	default:
		p.pos++
		p.line++
		p.content()
	}
}

// content goes from the start of a line to the first one that has more than a comment.
func (p *plainParser) content() {
	for {
		p.start = p.pos
		for p.more() && p.text[p.pos] == ' ' {
			p.pos++
		}
		p.indent = p.pos - p.start
		if p.more() && p.text[p.pos] == '#' {
			for p.more() && p.text[p.pos] != '\n' {
				p.failed = p.failed || !isPrintable(p.text[p.pos])
				p.pos++
			}
		}
		if !p.more() || p.text[p.pos] != '\n' {
			return
		}
		p.pos++
		p.line++
	}
}

// block reads a mapping or a list whose lines are indented so far.
func (p *plainParser) block(indent int) *Node {
	if p.depth++; p.depth > maxPlainDepth {
		return p.fail()
	}
	defer func() { p.depth-- }()
	if p.atItem() {
		return p.list(indent)
	}
	return p.mapping(indent)
}

func (p *plainParser) atItem() bool { return strings.HasPrefix(p.text[p.pos:], "- ") }

func (p *plainParser) mapping(indent int) *Node {
	n := &Node{Kind: yamldoc.Map, At: p.at()}
	first := len(p.fields)
	for p.more() {
		here := p.entry(first)
		if p.failed {
			return nil
		}
		value := p.below(indent)
		p.fields[here].Value = value
		if p.failed || p.indent < indent || !p.more() {
			break
		}
		if p.indent > indent {
			return p.fail()
		}
	}
	n.Fields = slices.Clone(p.fields[first:])
	p.fields = p.fields[:first]
	return n
}

// entry begins the next entry of the mapping whose first one is at an index, and returns its own.
func (p *plainParser) entry(first int) int {
	at, key := p.at(), p.key()
	if len(p.fields)-first == maxPlainFields {
		p.fail()
	}
	for i := range p.fields[first:] {
		p.failed = p.failed || p.fields[first+i].Key == key
	}
	p.fields = append(p.fields, Entry{key, at, nil})
	return len(p.fields) - 1
}

// key reads a key and its colon.
func (p *plainParser) key() string {
	from := p.pos
	end := keyEnd(p.text[from:])
	if end == 0 || isReservedWord(p.text[from:from+end]) {
		p.fail()
		return ""
	}
	p.pos += end + 1
	return p.text[from : from+end]
}

// keyEnd is the length of a key at the head of a text, 0 where there is none.
func keyEnd(text string) int {
	const longest = 128
	i := 0
	for i < len(text) && i < longest && (isWordChar(text[i]) || i > 0 && (isDigit(text[i]) || isIn("_-./", text[i]))) {
		i++
	}
	if i+1 < len(text) && text[i] == ':' && (text[i+1] == ' ' || text[i+1] == '\n') {
		return i
	}
	return 0
}

// below reads the value of a key of a mapping: in its line, or in those below it.
func (p *plainParser) below(indent int) *Node {
	if p.text[p.pos] == ' ' {
		p.blanks()
		n := p.inline()
		p.next()
		return n
	}
	p.next()
	switch {
	case p.more() && p.indent > indent:
		return p.block(p.indent)
	case p.more() && p.indent == indent && p.atItem():
		return p.block(indent)
	}
	return p.fail() // there is no value
}

// blanks goes to the end of a row of blanks.
func (p *plainParser) blanks() {
	for p.more() && p.text[p.pos] == ' ' {
		p.pos++
	}
}

func (p *plainParser) list(indent int) *Node {
	n := &Node{Kind: yamldoc.List, At: p.at()}
	first := len(p.items)
	for p.more() && p.indent == indent && p.atItem() {
		p.pos += len("- ")
		var item *Node
		if p.more() && keyEnd(p.text[p.pos:]) > 0 {
			p.indent = indent + len("- ")
			item = p.block(p.indent)
		} else {
			item = p.inline()
			p.next()
		}
		p.items = append(p.items, item)
	}
	if p.more() && p.indent > indent {
		return p.fail()
	}
	n.Items = append(make([]*Node, 0, len(p.items)-first), p.items[first:]...)
	p.items = p.items[:first]
	return n
}

// inline reads a value that ends in its line.
func (p *plainParser) inline() *Node {
	if p.more() && (p.text[p.pos] == '[' || p.text[p.pos] == '{') {
		return p.flow()
	}
	return p.scalar(false)
}

// flow reads a part of a list or mapping in brackets, or the whole of one.
func (p *plainParser) flow() *Node {
	if p.depth++; p.depth > maxPlainDepth || !p.more() {
		return p.fail()
	}
	defer func() { p.depth-- }()
	switch p.text[p.pos] {
	case '[':
		return p.flowList()
	case '{':
		return p.flowMapping()
	}
	return p.scalar(true)
}

func (p *plainParser) flowList() *Node {
	n := &Node{Kind: yamldoc.List, At: p.at()}
	start := len(p.items)
	p.pos++
	for first := true; p.another(']', first); first = false {
		item := p.flow()
		p.items = append(p.items, item)
	}
	if p.failed {
		return nil
	}
	n.Items = append(make([]*Node, 0, len(p.items)-start), p.items[start:]...)
	p.items = p.items[:start]
	return n
}

func (p *plainParser) flowMapping() *Node {
	n := &Node{Kind: yamldoc.Map, At: p.at()}
	start := len(p.fields)
	p.pos++
	for first := true; p.another('}', first); first = false {
		here := p.entry(start)
		if p.failed {
			return nil
		}
		p.blanks()
		value := p.flow()
		p.fields[here].Value = value
	}
	if p.failed {
		return nil
	}
	n.Fields = append(make([]Entry, 0, len(p.fields)-start), p.fields[start:]...)
	p.fields = p.fields[:start]
	return n
}

// another goes to the next part of what is in brackets, or behind the one that closes it, and says whether there is a
// part.
func (p *plainParser) another(end byte, first bool) bool {
	switch {
	case !p.more():
		p.fail()
		return false
	case p.text[p.pos] == end:
		p.pos++
		return false
	case first:
		return true
	case strings.HasPrefix(p.text[p.pos:], ", "):
		p.pos += len(", ")
		return true
	}
	p.fail()
	return false
}

// scalar reads a text up to the end of its line, or of an item.
func (p *plainParser) scalar(isItem bool) *Node {
	if !p.more() {
		return p.fail()
	}
	n := &Node{Kind: yamldoc.String, At: p.at()}
	from := p.pos
	if quote := p.text[from]; quote == '"' || quote == '\'' {
		for p.pos++; p.more() && p.text[p.pos] != quote; p.pos++ {
			p.failed = p.failed || !isPrintable(p.text[p.pos]) || p.text[p.pos] == '\\'
		}
		if !p.more() {
			return p.fail()
		}
		n.Text = p.text[from+1 : p.pos]
		p.pos++
		return n
	}
	for p.more() && p.text[p.pos] != '\n' && (!isItem || !isIn(",]}", p.text[p.pos])) {
		if !p.isPlainChar(p.text[p.pos]) {
			return p.fail()
		}
		p.pos++
	}
	n.Text = p.text[from:p.pos]
	if n.Kind = plainKind(n.Text); n.Kind == yamldoc.Invalid {
		return p.fail()
	}
	return n
}

// isPlainChar says whether the character at hand is a part of a plain text and nothing else.
func (p *plainParser) isPlainChar(c byte) bool {
	switch {
	case isWordChar(c), isDigit(c), isIn("-./=@+,$()", c):
		return true
	case c != ':' && c != ' ' || p.pos+1 == len(p.text):
		return false
	}
	after := p.text[p.pos+1] // a colon ahead of a blank ends a key, and blanks end no text
	return isWordChar(after) || isDigit(after) || isIn("-./", after)
}

// plainKind is what a text without quotes is, Invalid where that takes a closer look.
func plainKind(text string) yamldoc.Kind {
	switch {
	case text == "true" || text == "false":
		return yamldoc.Bool
	case text == "" || isReservedWord(text):
		return yamldoc.Invalid
	case isWordChar(text[0]) || text[0] == '/' && len(text) > 1:
		return yamldoc.String
	case text[0] == '-':
		flag := strings.TrimLeft(text[:min(len(text), 3)], "-")
		if flag != "" && flag[0] != '_' && isWordChar(flag[0]) { // -_1 is a number
			return yamldoc.String
		}
		return yamldoc.Invalid
	}
	const longest = 18 // digits that fit into 64 bits
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	switch unit := text[digits:]; {
	case digits == 0 || digits > longest || text[0] == '0' && text != "0":
		return yamldoc.Invalid
	case unit == "":
		return yamldoc.Int
	case strings.Trim(unit, "KMGTimsh") == "":
		return yamldoc.String
	}
	return yamldoc.Invalid
}

// isReservedWord knows the words that some version of YAML reads as something else than a text, and some more.
func isReservedWord(text string) bool {
	if len(text) > len("false") {
		return false
	}
	switch strings.ToLower(text) {
	case "null", "true", "false", "yes", "no", "y", "n", "on", "off":
		return true
	}
	return false
}

func isWordChar(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isIn(set string, c byte) bool { return strings.IndexByte(set, c) >= 0 }

func isPrintable(c byte) bool { return ' ' <= c && c <= '~' }
