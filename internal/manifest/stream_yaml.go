package manifest

import (
	"bytes"
	"fmt"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// yaml reads a document: as a whole if it is small, and else item by item.
func (s *stream) yaml() error {
	d := s.document(nil, s.line)
	var c *cutter
	begun := false
	for {
		line, err := s.wholeLine(0)
		if err != nil {
			return s.readError(err)
		}
		starts, ends := yamldoc.Marker(line)
		if len(line) == 0 || starts && begun {
			break
		}
		begun = begun || starts || ends || yamldoc.StartsContent(line)
		number := s.line
		s.advance(len(line))
		if c == nil {
			d.Text = append(d.Text, line...)
			if len(d.Text) > s.most {
				c = &cutter{s: s, head: s.document(nil, d.Line)}
				err = c.lines(d.Text, d.Line)
			}
		} else {
			err = c.line(line, number)
		}
		if err != nil {
			return err
		}
		if ends {
			break
		}
	}
	if c == nil {
		d.Text = yamldoc.JoinSurrogates(d.Text)
		return s.whole(d)
	}
	return c.end()
}

// cutter cuts a list at its items, which are of block style.
type cutter struct {
	s     *stream
	list  list
	head  document // the list without its items
	state state
	col   int // of the items' dashes
	item  document
}

type state int

const (
	beforeItems state = iota
	atItems           // the next line with content is the first item's
	inItems
	afterItems
)

func (c *cutter) lines(text []byte, number int) error {
	for line := range bytes.Lines(text) {
		if err := c.line(line, number); err != nil {
			return err
		}
		number++
	}
	return nil
}

func (c *cutter) line(text []byte, number int) error {
	indent := indentOf(text)
	hasDash := isDash(text[indent:])
	content := yamldoc.StartsContent(text)
	switch {
	case c.state == atItems && hasDash:
		if head, err := c.head.json(c.head.StrictJSON); err == nil {
			c.list.head = headOf(head) // as far as it is known
		}
		c.state, c.col = inItems, indent
		c.start(text, number)
		return nil
	case c.state == inItems && hasDash && indent == c.col:
		if err := c.flush(); err != nil {
			return err
		}
		c.start(text, number)
		return nil
	case c.state == inItems && (!content || indent > c.col):
		return c.add(&c.item, text)
	case c.state == inItems:
		c.state = afterItems
		if err := c.flush(); err != nil {
			return err
		}
	case c.state == beforeItems && string(bytes.TrimRight(text, " \r\n")) == "items:":
		c.state = atItems
	case c.state == atItems && content:
		c.state = afterItems
	}
	return c.add(&c.head, text)
}

// start begins an item without its dash, so that it is a document of its own.
func (c *cutter) start(text []byte, number int) {
	c.item.Document = yamldoc.Document{Stream: c.s.name, Line: number, Text: append(c.item.Text[:0], text...)}
	c.item.Text[c.col] = ' '
	c.item.lenient, c.item.named = true, true
}

func (c *cutter) add(to *document, text []byte) error {
	if len(to.Text)+len(text) > maxObject {
		return c.s.tooLong(to.Line)
	}
	to.Text = append(to.Text, text...)
	return nil
}

// tooLong refuses what would have to be held whole.
func (s *stream) tooLong(line int) error {
	return finding.List{{
		Rule: "manifest/yaml", Level: finding.Error, File: s.name, Line: line,
		Message: fmt.Sprintf("it has more than %d MiB of YAML that is no list of kubectl's form: take JSON, "+
			"'kubectl get … -o json'", maxObject>>20),
	}}
}

func (c *cutter) flush() error {
	d := c.item
	d.Text = yamldoc.JoinSurrogates(d.Text)
	text, err := c.json(d)
	if err != nil {
		return err
	}
	if text[0] != '{' {
		return d.errorAt(nil, fmt.Errorf("reading items[%d]: want a mapping", c.list.count))
	}
	return c.s.item(&c.list, d, text)
}

// json is an item as JSON. Lines of fields that are not needed are left out before they are parsed, which takes the
// most time; where the rest is no YAML then, all of them are.
func (c *cutter) json(d document) ([]byte, error) {
	if fields := c.s.fields[kindLine(d.Text, c.col)]; fields != nil {
		short, ok := d, false
		if short.Text, ok = condenseYAML(d.Text, fields); ok {
			if text, err := short.json(short.StrictJSON); err == nil && text[0] == '{' {
				return text, nil
			}
		}
	}
	return d.json(d.StrictJSON)
}

func (c *cutter) end() error {
	if c.state == inItems {
		if err := c.flush(); err != nil {
			return err
		}
	}
	if c.list.count == 0 {
		c.head.Text = yamldoc.JoinSurrogates(c.head.Text)
		return c.s.whole(c.head)
	}
	return c.s.end(&c.list, c.head)
}

func indentOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// isDash says whether an item of a block sequence begins.
func isDash(text []byte) bool {
	return len(text) > 1 && text[0] == '-' && (text[1] == ' ' || text[1] == '\n' || text[1] == '\r')
}
