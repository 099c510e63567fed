package structural

import (
	"slices"
	"sync"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Completed is a tree with what an author left out. References are followed from the root; a reference that ends in
// nothing leaves its field out, for the rules to report. The tree itself stays as it was written. Tests hold it to what
// CUE completes, and DecodeCompleted to it.
func Completed(root *Node, s *Schema) *Node {
	whole := root.opened()
	CompleteIn(whole, s, whole)
	return whole
}

// opened copies what CompleteIn adds to. Scalars are shared.
func (n *Node) opened() *Node {
	if n.Kind != yamldoc.Map && n.Kind != yamldoc.List || n.constant != nil {
		return n
	}
	c := *n
	c.Fields, c.Items = slices.Clone(n.Fields), slices.Clone(n.Items)
	for i := range c.Fields {
		c.Fields[i].Value = c.Fields[i].Value.opened()
	}
	for i := range c.Items {
		c.Items[i] = c.Items[i].opened()
	}
	return &c
}

// whole is a mapping that an author leaves out, with its defaults; nil where one of them follows another field.
func (s *Schema) whole() *Node {
	n := &Node{Kind: yamldoc.Map, constant: &sync.Map{}}
	for _, f := range s.Fields {
		switch {
		case f.Value != nil:
			n.Add(f.Name, Position{}, f.Value)
		case f.Same != nil || f.create && f.whole == nil:
			return nil
		case f.create:
			n.Add(f.Name, Position{}, f.whole)
		}
	}
	return n
}

// CompleteIn completes a part of a tree, n, in its place. References are followed from root.
func CompleteIn(n *Node, s *Schema, root *Node) {
	if s.Kind == yamldoc.List {
		for _, item := range n.Items {
			CompleteIn(item, s.Elem, root)
		}
		return
	}
	n.Fields = slices.Grow(n.Fields, s.adds)
	for _, f := range s.Fields {
		child := n.Field(f.Name)
		if child == nil {
			switch {
			case f.Value != nil:
				child = f.Value
			case f.Same != nil:
				child = root.resolve(f.Same, s, 0)
			case f.create && f.whole != nil:
				child = f.whole
			case f.create:
				child = &Node{Kind: yamldoc.Map}
			}
			if child == nil {
				continue
			}
			n.Add(f.Name, Position{}, child)
		}
		if child.constant != nil {
			continue
		}
		if f.Schema.scalar == nil && !f.Schema.open && f.Schema.Elem == nil || f.Schema.Kind == yamldoc.List {
			CompleteIn(child, f.Schema, root)
		}
	}
}

// resolve returns the value of a referenced field: its own, or that of the sibling which it defaults to in turn. Two
// fields that refer to each other and are both left out have none.
func (n *Node) resolve(ref []string, siblings *Schema, hops int) *Node {
	at := n
	for _, name := range ref {
		if at == nil {
			return nil
		}
		at = at.Field(name)
	}
	if at != nil || hops > len(siblings.Fields) {
		return at
	}
	if f := siblings.Field(ref[len(ref)-1]); f != nil && f.Same != nil {
		return n.resolve(f.Same, siblings, hops+1)
	} else if f != nil {
		return f.Value
	}
	return nil
}
