package structural

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Checker walks a document along its schema and collects every mistake. Each place yields at most one message, and no
// mistake hides another.
type Checker struct {
	Unknown func(path, name string, known []string) string // what may be meant by a field; nil for the nearest name
	Word    func(path, word string, known []string) string // what may be meant by a value; nil for the nearest
	Errs    Errors
	Bad     map[*Node]bool // values that cannot be decoded
}

// hint ends the message about an unknown field.
func (c *Checker) hint(path, name string, known []string) string {
	if c.Unknown == nil {
		return spelling.Suggest(name, known)
	}
	return c.Unknown(path, name, known)
}

// hintWord ends the message about a value that is none of those there are.
func (c *Checker) hintWord(path, word string, known []string) string {
	if c.Word == nil {
		return spelling.Suggest(word, known)
	}
	return c.Word(path, word, known)
}

func (c *Checker) fail(at Position, p *Place, rule, format string, args ...any) {
	c.Errs = append(c.Errs, at.Errorf(p.String(), rule, format, args...))
}

// refuse reports a value that can be read all the same, so that it hides no other mistake.
func (c *Checker) refuse(at Position, p *Place, m message) {
	c.fail(at, p, m.Rule, "%s", m.Text)
	c.Errs[len(c.Errs)-1].Readable = true
}

// MaxItems bounds lists of mappings: rules compare each item with each other.
const MaxItems = 2000

// Check reports what s does not allow in n. parent is where a missing field is reported.
func (c *Checker) Check(n *Node, s *Schema, p *Place, parent Position) {
	before := len(c.Errs)
	switch {
	case n.Kind == yamldoc.Invalid:
		c.markInvalid(n)
		return
	case n.Kind == yamldoc.Null:
		c.fail(n.At, p, "no-value", "has no value: write one")
	case s.scalar != nil:
		c.scalar(n, s.scalar, p)
	case n.Kind != s.Kind:
		c.fail(n.At, p, "type", "must be %s, not %s%s", KindWord(s.Kind), KindWord(n.Kind), s.example(n))
	case s.Kind == yamldoc.List && s.Elem.scalar == nil && len(n.Items) > MaxItems:
		c.fail(n.At, p, "length", "has %d items, more than the limit of %d: shorten the list", len(n.Items), MaxItems)
		c.markInvalid(n)
		return
	case s.Kind == yamldoc.List:
		c.limits(n, s.limits, p)
		for i, item := range n.Items {
			c.Check(item, s.Elem, p.At(i), item.At)
		}
	case s.open:
		c.values(n, p)
	default:
		c.mapping(n, s, p, parent)
		return // its fields speak for themselves
	}
	failed := len(c.Errs) > before && !c.Errs[len(c.Errs)-1].Readable
	if failed && s.Kind != yamldoc.List || n.Kind != s.Kind && s.scalar == nil {
		c.markInvalid(n)
	}
}

func (c *Checker) markInvalid(n *Node) {
	if c.Bad == nil {
		c.Bad = map[*Node]bool{}
	}
	c.Bad[n] = true
}

// values requires a value of every field of a mapping that has no schema.
func (c *Checker) values(n *Node, p *Place) {
	if n.Kind == yamldoc.Null {
		c.fail(n.At, p, "no-value", "has no value: write one")
	}
	for _, e := range n.Fields {
		c.values(e.Value, p.Key(e.Key))
	}
	for i, item := range n.Items {
		c.values(item, p.At(i))
	}
}

func (c *Checker) mapping(n *Node, s *Schema, p *Place, parent Position) {
	for _, e := range n.Fields {
		at := p.Key(e.Key)
		if s.Elem != nil {
			if key := (&Node{Kind: yamldoc.String, Text: e.Key}); !s.keys.allows(key) {
				c.markInvalid(e.Value)
				if m, found := s.keys.refusal(key); found {
					c.refuse(e.At, at, m)
					continue
				}
				c.fail(e.At, at, "format", "is not a key: %s", s.keys.words())
			}
			c.Check(e.Value, s.Elem, at, e.At)
			continue
		}
		f := s.Field(e.Key)
		if f == nil {
			c.fail(e.At, at, "unknown-field", "unknown field%s", c.hint(at.String(), e.Key, s.Names()))
			continue
		}
		c.Check(e.Value, f.Schema, at, e.At)
	}
	for _, f := range s.Fields {
		if f.required && n.Entry(f.Name) == nil {
			c.fail(parent, p.Key(f.Name), "required", "required field is missing%s%s", sentence(f.doc), f.choices())
		}
	}
	c.oneOf(n, s, p, parent)
}

func (c *Checker) oneOf(n *Node, s *Schema, p *Place, parent Position) {
	var set []Entry
	for _, e := range n.Fields {
		if slices.Contains(s.OneOf, e.Key) {
			set = append(set, e)
		}
	}
	switch {
	case len(set) > 1:
		c.fail(set[1].At, p.Key(set[1].Key), "one-of", "only one of %s may be given; %s stands on line %d",
			strings.Join(s.OneOf, ", "), set[0].Key, set[0].At.Line)
	case len(set) == 0 && s.exact:
		c.fail(parent, p, "one-of", "one of %s is needed", strings.Join(s.OneOf, ", "))
	}
}

func (c *Checker) scalar(n *Node, s *scalar, p *Place) {
	if s.kindFits(n.Kind) && s.allows(n) {
		return
	}
	enum := s.enum()
	onlyText := enum == nil && slices.Equal(s.known().Kinds, kinds{yamldoc.String})
	switch {
	case (n.Kind == yamldoc.List || n.Kind == yamldoc.Map) && onlyText:
		c.fail(n.At, p, "type", "must be a string, not %s", KindWord(n.Kind))
	case n.Kind == yamldoc.List || n.Kind == yamldoc.Map:
		c.fail(n.At, p, "type", "must be %s, not %s", s.words(), KindWord(n.Kind))
	case !s.kindFits(n.Kind) && enum == nil && s.kindFits(yamldoc.String) &&
		s.allows(&Node{Kind: yamldoc.String, Text: n.Text}):
		c.fail(n.At, p, "type", "must be a string, not %s: write %q with quotes", KindWord(n.Kind), n.Text)
	default:
		if m, found := s.refusal(n); found {
			c.refuse(n.At, p, m)
			return
		}
		rule, hint := "format", ""
		if enum != nil {
			rule = "enum"
			if n.Kind == yamldoc.String {
				hint = c.hintWord(p.String(), n.Text, enum)
			}
		} else if s.known().Format != "" {
			rule = s.known().Format
		} else if n.Kind == yamldoc.Int {
			rule = "range"
		}
		c.fail(n.At, p, rule, "must be %s, not %s%s", s.words(), n.Show(), hint)
	}
}

func sentence(doc string) string {
	if doc == "" {
		return ""
	}
	first, _, _ := strings.Cut(doc, ". ")
	return ": " + strings.TrimSuffix(first, ".")
}

// choices end the message about a missing field that takes some words alone.
func (f *Field) choices() string {
	if s := f.Schema.scalar; s != nil && len(s.enum()) > 1 {
		return "; " + s.words()
	}
	return ""
}
