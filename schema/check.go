package schema

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// checker walks a document along its shape and collects every mistake. Each place yields at most one message, and no
// mistake hides another.
type checker struct {
	unknown func(path, name string, known []string) string // what may be meant by a field; nil for the nearest name
	errs    Errors
	bad     map[*node]bool // values that cannot be decoded
}

// hint ends the message about an unknown field.
func (c *checker) hint(path, name string, known []string) string {
	if c.unknown == nil {
		return suggest(name, known)
	}
	return c.unknown(path, name, known)
}

func (c *checker) fail(at position, p *place, rule, format string, args ...any) {
	c.errs = append(c.errs, at.fail(p.String(), rule, format, args...))
}

// check reports what s does not allow in n. parent is where a missing field is reported.
func (c *checker) check(n *node, s *shape, p *place, parent position) {
	before := len(c.errs)
	switch {
	case n.kind == yamldoc.Invalid:
		c.markInvalid(n)
		return
	case n.kind == yamldoc.Null:
		c.fail(n.at, p, "no-value", "has no value: write one")
	case s.scalar != nil:
		c.scalar(n, s.scalar, p)
	case n.kind != s.kind:
		c.fail(n.at, p, "type", "must be %s, not %s", kindWord(s.kind), kindWord(n.kind))
	case s.kind == yamldoc.List:
		for i, item := range n.items {
			c.check(item, s.elem, p.at(i), item.at)
		}
	case s.open:
		c.values(n, p)
	default:
		c.mapping(n, s, p, parent)
		return // its fields speak for themselves
	}
	if len(c.errs) > before && s.kind != yamldoc.List || n.kind != s.kind && s.scalar == nil {
		c.markInvalid(n)
	}
}

func (c *checker) markInvalid(n *node) {
	if c.bad == nil {
		c.bad = map[*node]bool{}
	}
	c.bad[n] = true
}

// values requires a value of every field of a mapping that has no schema.
func (c *checker) values(n *node, p *place) {
	if n.kind == yamldoc.Null {
		c.fail(n.at, p, "no-value", "has no value: write one")
	}
	for _, e := range n.fields {
		c.values(e.value, p.key(e.key))
	}
	for i, item := range n.items {
		c.values(item, p.at(i))
	}
}

func (c *checker) mapping(n *node, s *shape, p *place, parent position) {
	for _, e := range n.fields {
		at := p.key(e.key)
		if s.elem != nil {
			c.check(e.value, s.elem, at, e.at)
			continue
		}
		f := s.field(e.key)
		if f == nil {
			c.fail(e.at, at, "unknown-field", "unknown field%s", c.hint(at.String(), e.key, s.names()))
			continue
		}
		c.check(e.value, f.shape, at, e.at)
	}
	for _, f := range s.fields {
		if f.required && n.entry(f.name) == nil {
			c.fail(parent, p.key(f.name), "required", "required field is missing%s", sentence(f.doc))
		}
	}
	c.oneOf(n, s, p, parent)
}

func (c *checker) oneOf(n *node, s *shape, p *place, parent position) {
	var set []entry
	for _, e := range n.fields {
		if slices.Contains(s.oneOf, e.key) {
			set = append(set, e)
		}
	}
	switch {
	case len(set) > 1:
		c.fail(set[1].at, p.key(set[1].key), "one-of", "only one of %s may be given; %s stands on line %d",
			strings.Join(s.oneOf, ", "), set[0].key, set[0].at.line)
	case len(set) == 0 && s.exact:
		c.fail(parent, p, "one-of", "one of %s is needed", strings.Join(s.oneOf, ", "))
	}
}

func (c *checker) scalar(n *node, s *scalar, p *place) {
	if s.kindFits(n.kind) && s.allows(n) {
		return
	}
	enum := s.enum()
	switch {
	case (n.kind == yamldoc.List || n.kind == yamldoc.Map) && s.kinds == cue.StringKind && enum == nil:
		c.fail(n.at, p, "type", "must be a string, not %s", kindWord(n.kind))
	case n.kind == yamldoc.List || n.kind == yamldoc.Map:
		c.fail(n.at, p, "type", "must be %s, not %s", s.words(), kindWord(n.kind))
	case !s.kindFits(n.kind) && enum == nil && s.kindFits(yamldoc.String) && s.allows(&node{kind: yamldoc.String, text: n.text}):
		c.fail(n.at, p, "type", "must be a string, not %s: write %q with quotes", kindWord(n.kind), n.text)
	default:
		rule, hint := "format", ""
		if enum != nil {
			rule = "enum"
			if n.kind == yamldoc.String {
				hint = suggest(n.text, enum)
			}
		} else if s.format != "" {
			rule = s.format
		} else if n.kind == yamldoc.Int {
			rule = "range"
		}
		c.fail(n.at, p, rule, "must be %s, not %s%s", s.words(), n.show(), hint)
	}
}

func sentence(doc string) string {
	if doc == "" {
		return ""
	}
	first, _, _ := strings.Cut(doc, ". ")
	return ": " + strings.TrimSuffix(first, ".")
}
