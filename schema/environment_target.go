package schema

import "strings"

// foreign are the fields that belong to other frameworks than the job's. An environment speaks to jobs of all of them,
// so what it says there is passed over; what an author says there is refused.
func foreign(trees ...*node) (paths []string) {
	t := TargetOf(firstText("framework", FrameworkTorchelastic, trees), firstText("target", TargetJob, trees))
	if t == nil {
		return nil
	}
	for field, reason := range t.Lacks {
		if strings.HasPrefix(reason, ownedBy) {
			paths = append(paths, field)
		}
	}
	return paths
}

// firstText is a field of the first tree that has it.
func firstText(field, otherwise string, trees []*node) string {
	for _, n := range trees {
		if n != nil && n.field(field) != nil {
			return n.field(field).text
		}
	}
	return otherwise
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
			n.fields[i].value.drop(path[1:])
			return
		default:
			n.fields = append(n.fields[:i], n.fields[i+1:]...)
			return
		}
	}
}
