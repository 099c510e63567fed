package schema

import "github.com/tegen-dev/tegen/internal/structural"

// Written is a job with the tree that it was read from, which tells what somebody wrote from what is a default.
type Written struct {
	*Job
	Root *structural.Node
	Row  *Target // of the table of targets; nil where the framework has no such target
}

// IsSet reports whether somebody wrote a field, the author or an Environment.
func (w *Written) IsSet(dotted string) bool { return w.Root.IsSet(dotted) }
