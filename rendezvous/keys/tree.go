package keys

import (
	"iter"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// tree is all nodes, in memory. It is fed the store's changes in their order, and knows neither the store nor a clock.
type tree struct {
	root  *node
	index uint64 // of the last change
	usage
	shares map[string]*share // by their owners' paths, those with nodes
	due    deadlines
}

// usage is what nodes take.
type usage struct {
	keys  int
	bytes int // of keys and values
}

type node struct {
	path                        string
	record                      record
	deadline                    time.Time // by this process's clock; zero for a node without a TTL
	rev                         int64     // revision of the store at which its key was last written; 0: not there
	createRevision              int64     // revision of the store at which its key was created
	createdIndex, modifiedIndex uint64
	parent                      *node
	children                    map[string]*node
	// whether a closed run was found in it: twice the revision that it was looked at, and one if so
	verdict atomic.Int64
	// that it counts for, as a run's directory does for the run; nil outside of runs
	held *share
}

// change is a key of the store that was written, or with no record deleted.
type change struct {
	path                string
	record              *record
	rev, createRevision int64
}

func newTree() *tree {
	return &tree{
		root:   &node{path: "/", record: record{Dir: true}, children: map[string]*node{}},
		shares: map[string]*share{},
	}
}

// at is a node, or nil.
func (t *tree) at(p string) *node {
	n, missing := t.walk(p)
	if missing != "" {
		return nil
	}
	return n
}

// walk goes down to p as far as there are nodes, and returns the last one and the first path that is not there.
func (t *tree) walk(p string) (*node, string) {
	n := t.root
	for name := range names(p) {
		child := n.children[name]
		if child == nil {
			return n, path.Join(n.path, name)
		}
		n = child
	}
	return n, ""
}

// find is a node, or etcd's error for a path that leads to none.
func (t *tree) find(p string) (*node, *Error) {
	n, missing := t.walk(p)
	if missing == "" {
		return n, nil
	}
	if !n.record.Dir {
		return nil, fail(CodeNotDir, n.path, t.index)
	}
	return nil, fail(CodeNotFound, missing, t.index)
}

// names are the parts of a path, none of the root's.
func names(p string) iter.Seq[string] {
	if p == "/" {
		return func(func(string) bool) {}
	}
	return strings.SplitSeq(p[1:], "/")
}

// apply takes in what one event changed, and returns it, none where somebody else wrote the store, and the node that
// went with all below it.
func (t *tree) apply(index uint64, h *head, changes []change, now time.Time) (*Event, *node) {
	var prev *Node
	if h != nil {
		if n := t.at(h.Key); n != nil {
			prev = n.show(now)
		}
		t.index = index
	}
	var wrote *record
	var gone *node
	for _, c := range changes {
		if c.record == nil {
			if n := t.remove(c.path); n != nil && h != nil && c.path == h.Key {
				gone = n
			}
			continue
		}
		t.put(c, now, nil)
		if h != nil && c.path == h.Key {
			wrote = c.record
		}
	}
	if h == nil {
		return nil, nil
	}
	return event(*h, prev, wrote, index), gone
}

// event is a change as clients see it. It is the same for the process that wrote it and for those that only see it.
func event(h head, prev *Node, wrote *record, index uint64) *Event {
	e := &Event{
		Action: h.Action, Prev: prev, Index: index, refresh: h.Refresh,
		Node: &Node{Key: h.Key, ModifiedIndex: index, CreatedIndex: index},
	}
	switch {
	case wrote == nil && prev != nil: // deleted
		e.Node.Dir, e.Node.CreatedIndex = prev.Dir, prev.CreatedIndex
	case wrote != nil:
		if e.Node.Dir = wrote.Dir; !wrote.Dir {
			e.Node.Value = &wrote.value
		}
		if wrote.Created != 0 {
			e.Node.CreatedIndex = wrote.Created
		}
		if wrote.Expiration != 0 {
			at := time.Unix(0, wrote.Expiration).UTC()
			e.Node.Expiration, e.Node.TTL = &at, int64(wrote.TTL)
		}
	}
	return e
}

// put takes in what was written. grace is nil for news; while a state is loaded, it is the least time that a node still
// lives: its owner could not reach anybody to renew it.
func (t *tree) put(c change, now time.Time, grace *time.Duration) {
	n := t.root
	for name := range names(c.path) {
		child := n.children[name]
		if child == nil { // its parents are written before it, unless somebody else wrote the store
			child = &node{path: path.Join(n.path, name), parent: n, record: record{Dir: true}}
			t.hold(child)
			if n.children == nil {
				n.children = map[string]*node{}
			}
			n.children[name] = child
			t.count(child, 1, len(child.path))
		}
		n = child
	}
	t.count(n, 0, len(c.record.value)-len(n.record.value))
	n.record, n.rev, n.createRevision = *c.record, c.rev, c.createRevision
	n.modifiedIndex = indexOf(c.rev, c.record.At)
	n.createdIndex = n.modifiedIndex
	if n.record.Created != 0 {
		n.createdIndex = n.record.Created
	}
	if n.record.Modified != 0 {
		n.modifiedIndex = n.record.Modified
	}
	n.deadline = time.Time{}
	if n.record.Expiration != 0 {
		left := time.Duration(n.record.TTL) * time.Second
		if grace != nil {
			// Owners renew at half the time, and the clock that Expiration is of may be another one.
			left = min(left, max(*grace, left/2, time.Unix(0, n.record.Expiration).Sub(now)))
		}
		n.deadline = now.Add(left)
		t.due.add(deadline{n.deadline, n.path, n.rev})
	}
}

func (t *tree) remove(p string) *node {
	n := t.at(p)
	if n == nil || n == t.root {
		return nil
	}
	delete(n.parent.children, path.Base(p))
	n.each(func(n *node) {
		t.count(n, -1, -len(n.path)-len(n.record.value))
	})
	return n
}

// count adds to what all nodes take, and to what those of the node's run do.
func (t *tree) count(n *node, keys, bytes int) {
	t.add(keys, bytes)
	if n.held != nil {
		if n.held.add(keys, bytes); n.held.keys == 0 {
			delete(t.shares, n.held.of.at)
		}
	}
}

func (u *usage) add(keys, bytes int) {
	u.keys += keys
	u.bytes += bytes
}

// each calls f with a node and all below it.
func (n *node) each(f func(*node)) {
	f(n)
	for _, c := range n.children {
		c.each(f)
	}
}

// show is the node without what is below it.
func (n *node) show(now time.Time) *Node {
	s := &Node{Key: n.path, Dir: n.record.Dir, ModifiedIndex: n.modifiedIndex, CreatedIndex: n.createdIndex}
	if n.path == "/" {
		s.Key = ""
	}
	if !n.record.Dir {
		value := n.record.value // the node's changes, what was shown does not
		s.Value = &value
	}
	if !n.deadline.IsZero() {
		at := time.Unix(0, n.record.Expiration).UTC()
		s.Expiration = &at
		if left := n.deadline.Sub(now); left > 0 {
			s.TTL = int64((left + time.Second - 1) / time.Second)
		}
	}
	return s
}

// get is a node with what is in it, and with deep all below it. Names that begin with _ are hidden, and what etcd lists
// in no order is sorted.
func (t *tree) get(p string, deep bool, now time.Time) (*Event, error) {
	n, err := t.find(p)
	if err != nil {
		return nil, err
	}
	s := n.show(now)
	n.list(s, deep, now)
	return &Event{Action: actionGet, Node: s, Index: t.index}, nil
}

func (n *node) list(s *Node, deep bool, now time.Time) {
	for name, c := range n.children {
		if strings.HasPrefix(name, "_") {
			continue
		}
		child := c.show(now)
		if deep {
			c.list(child, deep, now)
		}
		s.Nodes = append(s.Nodes, child)
	}
	slices.SortFunc(s.Nodes, func(a, b *Node) int { return strings.Compare(a.Key, b.Key) })
}
