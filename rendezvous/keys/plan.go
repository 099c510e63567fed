package keys

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// Put is what a write asks for. Its zero value sets an empty file.
type Put struct {
	Value     string
	Dir       bool
	TTL       *uint64 // seconds; nil: none, and a node that had one becomes permanent
	PrevExist *bool   // true: only what is there; false: only what is not
	PrevValue string  // only a file of this value; "" for any
	PrevIndex uint64  // only a file last modified at this index; 0 for any
	Refresh   bool    // keep the value, renew the TTL, wake nobody
}

// Delete is what a deletion asks for. Its zero value deletes a file.
type Delete struct {
	Dir       bool // an empty directory as well
	Recursive bool // a directory and all below it
	PrevValue string
	PrevIndex uint64
}

// plan is a transaction that does what was asked for, provided that what was decided upon is still so.
type plan struct {
	head           head
	guards         []guard
	dirs           []string // directories that are created on the way
	put            *record  // written at head.Key; nil: that key is deleted with all below it
	prev           *Node
	createRevision int64 // of a key that is written again; 0 for a new one
	at             int   // its place among the events of its revision
	of             owner // of what it writes; with more, where room has looked at it
	more           usage // that it adds
}

// place gives it a place among the events of a revision.
func (w *plan) place(at int) {
	if w.at = at; w.put != nil {
		w.put.At = at
	}
}

// changes is what the plan does, done at a revision.
func (w *plan) changes(rev int64) []change {
	var all []change
	for _, dir := range w.dirs {
		all = append(all, change{dir, &record{Dir: true, Time: w.put.Time, At: w.at}, rev, rev})
	}
	createRevision := w.createRevision
	if createRevision == 0 {
		createRevision = rev
	}
	return append(all, change{w.head.Key, w.put, rev, createRevision})
}

// guard is something about a key of the store that must not have changed.
type guard struct {
	path string
	what int
	want int64
}

const (
	written = iota // the revision it was last written at
	created        // the revision it was created at
	empty          // there is nothing below it
)

// plan decides upon a write as etcd does.
func (p Put) plan(t *tree, key string, now time.Time) (*plan, *Error) {
	swap := p.PrevValue != "" || p.PrevIndex != 0
	switch {
	case key == "/":
		return nil, fail(CodeRoot, "/", t.index)
	case p.PrevExist != nil && !*p.PrevExist:
		return p.create(t, key, now, actionCreate)
	case swap:
		return p.swap(t, key, now)
	case p.PrevExist != nil:
		return p.update(t, key, now)
	}
	return p.create(t, key, now, actionSet)
}

// create writes a node as if it were new, with the directories above it.
func (p Put) create(t *tree, key string, now time.Time, action string) (*plan, *Error) {
	n, missing := t.walk(key)
	if missing != "" && !n.record.Dir {
		return nil, fail(CodeNotDir, n.path, t.index)
	}
	r := &record{Dir: p.Dir, Time: now.UnixNano()}
	if !p.Dir {
		r.value = p.Value
	}
	r.expiring(p.TTL, now)
	w := &plan{head: head{Action: action, Key: key, Refresh: p.Refresh}, put: r}
	if missing == "" {
		switch {
		case action == actionCreate:
			return nil, fail(CodeExists, key, t.index)
		case n.record.Dir:
			return nil, fail(CodeNotFile, key, t.index)
		case p.Refresh && !p.Dir:
			r.value = n.record.value
		}
		w.prev, w.createRevision = n.show(now), n.createRevision
		w.guards = []guard{{key, written, n.rev}}
		return w, nil
	}
	if p.Refresh && action == actionSet {
		return nil, fail(CodeNotFound, missing, t.index)
	}
	// A directory that is there has all above it, one that is not has nothing below it.
	w.guards = []guard{{missing, written, 0}}
	if n != t.root {
		w.guards = append(w.guards, guard{n.path, created, n.createRevision})
	}
	for dir := path.Dir(key); dir != n.path; dir = path.Dir(dir) {
		w.dirs = append([]string{dir}, w.dirs...)
	}
	return w, nil
}

// update writes what is there.
func (p Put) update(t *tree, key string, now time.Time) (*plan, *Error) {
	n, err := t.find(key)
	if err != nil {
		return nil, err
	}
	if n.record.Dir && p.Value != "" {
		return nil, fail(CodeNotFile, key, t.index)
	}
	return p.rewrite(n, now, actionUpdate), nil
}

// swap writes a file that is as expected.
func (p Put) swap(t *tree, key string, now time.Time) (*plan, *Error) {
	n, err := t.same(key, p.PrevValue, p.PrevIndex)
	if err != nil {
		return nil, err
	}
	return p.rewrite(n, now, actionSwap), nil
}

func (p Put) rewrite(n *node, now time.Time, action string) *plan {
	r := &record{Dir: n.record.Dir, Created: n.createdIndex, Time: now.UnixNano(), value: p.Value}
	switch {
	case n.record.Dir:
		r.Modified = n.modifiedIndex
	case p.Refresh:
		r.value = n.record.value
	}
	r.expiring(p.TTL, now)
	return &plan{
		head: head{Action: action, Key: n.path, Refresh: p.Refresh}, put: r, prev: n.show(now),
		createRevision: n.createRevision,
		guards:         []guard{{n.path, written, n.rev}},
	}
}

// same is a file that is as expected.
func (t *tree) same(key, value string, index uint64) (*node, *Error) {
	n, err := t.find(key)
	if err != nil {
		return nil, err
	}
	if n.record.Dir {
		return nil, fail(CodeNotFile, strings.TrimSuffix(key, "/"), t.index)
	}
	var causes []string
	if value != "" && value != n.record.value {
		causes = append(causes, fmt.Sprintf("[%s != %s]", value, n.record.value))
	}
	if index != 0 && index != n.modifiedIndex {
		causes = append(causes, fmt.Sprintf("[%d != %d]", index, n.modifiedIndex))
	}
	if causes != nil {
		return nil, fail(CodeCompare, strings.Join(causes, " "), t.index)
	}
	return n, nil
}

// plan decides upon a deletion as etcd does.
func (d Delete) plan(t *tree, key string, now time.Time) (*plan, *Error) {
	if d.PrevValue != "" || d.PrevIndex != 0 {
		n, err := t.same(key, d.PrevValue, d.PrevIndex)
		if err != nil {
			return nil, err
		}
		return n.delete(now, actionCAD), nil
	}
	if key == "/" {
		return nil, fail(CodeRoot, "/", t.index)
	}
	n, err := t.find(key)
	if err != nil {
		return nil, err
	}
	w := n.delete(now, actionDelete)
	switch {
	case !n.record.Dir || d.Recursive:
	case !d.Dir:
		return nil, fail(CodeNotFile, key, t.index)
	case len(n.children) > 0:
		return nil, fail(CodeNotEmpty, key, t.index)
	default:
		w.guards = append(w.guards, guard{key, empty, 0})
	}
	return w, nil
}

func (n *node) delete(now time.Time, action string) *plan {
	return &plan{head: head{Action: action, Key: n.path}, prev: n.show(now), guards: []guard{{n.path, written, n.rev}}}
}
