package part

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
)

// Tree is what was written of a job, by its author and by an Environment, as one rule reads it.
type Tree struct {
	root   *structural.Node
	broken Set
	missed bool
}

// NewTree is the tree of a document in which some fields have mistakes.
func NewTree(root *structural.Node, broken Set) *Tree { return &Tree{root: root, broken: broken} }

// Missed says whether something was asked of a field with a mistake in it since it was last called, so that what
// follows from the answer is worth nothing.
func (t *Tree) Missed() bool {
	missed := t.missed
	t.missed = false
	return missed
}

// IsSet says whether somebody wrote a field, such as spec.gang.name.
func (t *Tree) IsSet(path string) bool { return t.known(path) && t.root.IsSet(path) }

// IsValid says whether somebody wrote a field and its value has no mistake. Loading removes values with mistakes. So the
// answer is no for such a field, and the result of the rule counts.
func (t *Tree) IsValid(path string) bool { return t.root.IsSet(path) }

// Merged says whether an Environment gave a field and not the author.
func (t *Tree) Merged(path string) bool {
	n := t.Node(path)
	return n != nil && n.Merged
}

// Node is what stands at a path, nil where nothing does.
func (t *Tree) Node(path string) *structural.Node {
	if !t.known(path) {
		return nil
	}
	return t.root.Lookup(path)
}

// Knows says whether no field that a value is made of has a mistake.
func (t *Tree) Knows(v Read) bool { return !slices.ContainsFunc(v.Fields(), t.broken.Touch) }

// Size is about how many bytes the whole document takes in an object.
func (t *Tree) Size() int { return sizeOf(t.root) }

func sizeOf(n *structural.Node) int {
	const each = 16 // beside its text
	size := each + len(n.Text)
	for _, e := range n.Fields {
		size += len(e.Key) + sizeOf(e.Value)
	}
	for _, item := range n.Items {
		size += sizeOf(item)
	}
	return size
}

// known says whether a path leads to no field with a mistake.
func (t *Tree) known(path string) bool {
	if len(t.broken) == 0 {
		return true
	}
	field, _, _ := strings.Cut(strings.TrimPrefix(path, "spec."), "[")
	if strings.HasPrefix(path, "metadata") {
		field = "metadata"
	}
	broken := t.broken.Touch(field)
	t.missed = t.missed || broken
	return !broken
}
