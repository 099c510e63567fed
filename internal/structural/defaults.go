package structural

import "github.com/tegen-dev/tegen/internal/yamldoc"

// Complete adds what an author left out. References are followed from the root; a reference that ends in nothing
// leaves its field out, for the rules to report.
func Complete(root *Node, s *Schema) {
	CompleteIn(root, s, root)
}

// CompleteIn is Complete for a part of a tree, n. References are followed from root.
func CompleteIn(n *Node, s *Schema, root *Node) {
	if s.Kind == yamldoc.List {
		for _, item := range n.Items {
			CompleteIn(item, s.Elem, root)
		}
		return
	}
	for _, f := range s.Fields {
		child := n.Field(f.Name)
		if child == nil {
			switch {
			case f.Value != nil:
				child = f.Value
			case f.Same != nil:
				child = root.resolve(f.Same, s, 0)
			case f.create:
				child = &Node{Kind: yamldoc.Map}
			}
			if child == nil {
				continue
			}
			n.Add(f.Name, Position{}, child)
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
