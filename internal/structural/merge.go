package structural

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Merge adds src's fields to dst. Mappings merge field by field; lists, scalars and mappings of alternatives are one
// value, which override decides about.
func Merge(dst, src *Node, s *Schema, override bool) {
	for _, e := range src.Fields {
		here := dst.Entry(e.Key)
		if here == nil {
			dst.Add(e.Key, e.At, e.Value.Clone())
			continue
		}
		child := s.Elem
		if f := s.Field(e.Key); f != nil {
			child = f.Schema
		}
		switch {
		case child != nil && child.Kind == yamldoc.Map && child.scalar == nil && !child.open && child.OneOf == nil:
			Merge(here.Value, e.Value, child, override)
		case override:
			here.Value, here.At = e.Value.Clone(), e.At
		}
	}
}

// Clone copies a tree, since the fields of mappings are added to.
func (n *Node) Clone() *Node {
	c := *n
	c.constant = nil
	c.Fields = slices.Clone(n.Fields)
	for i := range c.Fields {
		c.Fields[i].Value = c.Fields[i].Value.Clone()
	}
	c.Items = slices.Clone(n.Items)
	for i := range c.Items {
		c.Items[i] = c.Items[i].Clone()
	}
	return &c
}

// MarkMerged marks a tree as another document's.
func (n *Node) MarkMerged() *Node {
	n.Merged = true
	for _, e := range n.Fields {
		e.Value.MarkMerged()
	}
	for _, item := range n.Items {
		item.MarkMerged()
	}
	return n
}

// Clear is a copy without some fields.
func (n *Node) Clear(paths []string) *Node {
	c := n.Clone()
	for _, path := range paths {
		c.drop(strings.Split(path, "."))
	}
	return c
}

func (n *Node) drop(path []string) {
	for i := range n.Fields {
		switch {
		case n.Fields[i].Key != path[0]:
		case len(path) > 1:
			section := n.Fields[i].Value
			// or it would be there, though nobody wrote it
			if section.drop(path[1:]); section.Kind == yamldoc.Map && len(section.Fields) == 0 {
				n.Fields = append(n.Fields[:i], n.Fields[i+1:]...)
			}
			return
		default:
			n.Fields = append(n.Fields[:i], n.Fields[i+1:]...)
			return
		}
	}
}
