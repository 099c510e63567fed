package schema

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// merge adds src's fields to dst. Mappings merge field by field; lists, scalars and mappings of alternatives are one
// value, which override decides about.
func merge(dst, src *node, s *shape, override bool) {
	for _, e := range src.fields {
		here := dst.entry(e.key)
		if here == nil {
			dst.add(e.key, e.at, e.value.clone())
			continue
		}
		child := s.elem
		if f := s.field(e.key); f != nil {
			child = f.shape
		}
		switch {
		case child != nil && child.kind == yamldoc.Map && child.scalar == nil && !child.open && child.oneOf == nil:
			merge(here.value, e.value, child, override)
		case override:
			here.value, here.at = e.value.clone(), e.at
		}
	}
}

// clone copies a tree, since the fields of mappings are added to.
func (n *node) clone() *node {
	c := *n
	c.fields = slices.Clone(n.fields)
	for i := range c.fields {
		c.fields[i].value = c.fields[i].value.clone()
	}
	c.items = slices.Clone(n.items)
	for i := range c.items {
		c.items[i] = c.items[i].clone()
	}
	return &c
}

// markMerged marks a tree as another document's.
func (n *node) markMerged() *node {
	n.merged = true
	for _, e := range n.fields {
		e.value.markMerged()
	}
	for _, item := range n.items {
		item.markMerged()
	}
	return n
}

// clear is a copy without some fields.
func (n *node) clear(paths []string) *node {
	c := n.clone()
	for _, path := range paths {
		c.drop(strings.Split(path, "."))
	}
	return c
}

func (n *node) drop(path []string) {
	for i := range n.fields {
		switch {
		case n.fields[i].key != path[0]:
		case len(path) > 1:
			section := n.fields[i].value
			if section.drop(path[1:]); section.kind == yamldoc.Map && len(section.fields) == 0 { // or it would be there, though nobody wrote it
				n.fields = append(n.fields[:i], n.fields[i+1:]...)
			}
			return
		default:
			n.fields = append(n.fields[:i], n.fields[i+1:]...)
			return
		}
	}
}
