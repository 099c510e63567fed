package keys

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// runPrefix is what torch's etcd rendezvous calls a run's directory, before its id.
const runPrefix = "run_"

// Run is a run of torch's etcd rendezvous, as its state in the store tells it.
type Run struct {
	ID           string    `json:"id"`
	Path         string    `json:"path"`
	Version      string    `json:"version,omitempty"`
	Status       string    `json:"status,omitempty"` // setup, joinable, frozen, final, closed; none before the first
	Participants int       `json:"participants"`
	Waiting      int       `json:"waiting"`
	Changed      time.Time `json:"changed"` // of the status, by the clock of the process that wrote it
}

// Runs are the directories run_<id> at any depth, by their paths.
func (k *Keys) Runs(ctx context.Context) ([]Run, error) {
	if err := k.prepareRead(ctx); err != nil {
		return nil, err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	runs := k.tree.root.runs(nil)
	slices.SortFunc(runs, func(a, b Run) int { return strings.Compare(a.Path, b.Path) })
	return runs, nil
}

func (n *node) runs(found []Run) []Run {
	for name, c := range n.children {
		if id, ok := strings.CutPrefix(name, runPrefix); ok && c.record.Dir {
			found = append(found, c.run(id))
		} else {
			found = c.runs(found)
		}
	}
	return found
}

func (n *node) run(id string) Run {
	r := Run{ID: id, Path: n.path, Changed: time.Unix(0, n.record.Time).UTC()}
	active := n.active()
	if active == nil {
		return r
	}
	r.Changed = time.Unix(0, active.record.Time).UTC()
	var state struct {
		Status       string `json:"status"`
		Version      string `json:"version"`
		Participants []int  `json:"participants"`
		Waiting      int    `json:"num_workers_waiting"`
	}
	if err := json.Unmarshal([]byte(active.record.value), &state); err != nil {
		r.Status = "unreadable"
		return r
	}
	r.Status, r.Version, r.Participants, r.Waiting = state.Status, state.Version, len(state.Participants), state.Waiting
	return r
}

// Ended is a run that is closed: nobody can join it any more.
type Ended struct {
	Path    string // of the run's directory, or of its state
	Written uint64 // index at which anything in it was written last
	id      string // of backend etcd-v2, whose run has keys elsewhere, too
}

// Ended are the closed runs of both backends.
func (k *Keys) Ended() []Ended {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.tree.root.ended(nil)
}

// torchStates is the directory in which torch's backend etcd-v2 keeps the states of its runs, and torchKeys that of
// what their agents tell each other (torch/distributed/elastic/rendezvous/etcd_rendezvous_backend.py).
const (
	torchStates = "/torch/elastic/rendezvous/"
	torchKeys   = "/torch/elastic/store/"
)

// StateOf is the id of the run of backend etcd-v2 whose state has this path, if it is one. An id may have slashes.
func StateOf(p string) (id string, ok bool) {
	id, ok = strings.CutPrefix(p, torchStates)
	return id, ok && id != ""
}

func (n *node) ended(found []Ended) []Ended {
	for name, c := range n.children {
		isRun := strings.HasPrefix(name, runPrefix)
		switch {
		case isRun && c.record.Dir:
			if c.closed() {
				found = append(found, Ended{Path: c.path, Written: c.written()})
			}
		case c.record.Dir:
			found = c.ended(found)
		case c.closed():
			id, ok := StateOf(c.path)
			if !ok { // of somebody else's making
				id = name
			}
			found = append(found, Ended{Path: c.path, Written: c.modifiedIndex, id: id})
		}
	}
	return found
}

// written is the index at which anything in a node was written last.
func (n *node) written() (index uint64) {
	n.each(func(n *node) { index = max(index, indexOf(n.rev, n.record.At)) })
	return index
}

// closed says whether a run's directory, or its state, is that of a closed run. It is asked each second, so what was
// found is kept for as long as nobody writes what it was found in.
func (n *node) closed() bool {
	in := n
	if n.record.Dir {
		if in = n.active(); in == nil {
			return false
		}
	}
	if verdict := in.verdict.Load(); verdict>>1 == in.rev {
		return verdict&1 == 1
	}
	closed := false
	if n.record.Dir {
		closed = n.run("").Status == "closed"
	} else {
		closed = closedPickle(n.record.value)
	}
	verdict := in.rev << 1
	if closed {
		verdict |= 1
	}
	in.verdict.Store(verdict)
	return closed
}

// active is the state of the run of a directory, nil where there is none.
func (n *node) active() *node {
	if rdzv := n.children["rdzv"]; rdzv != nil {
		return rdzv.children["active_version"]
	}
	return nil
}

// closedMark is how a pickle of protocol 4 or 5 says that a state's field closed is true: the name, its place in the
// memory of the reader, true (Python's pickletools). Nothing else of such a state is read.
var closedMark = []byte("\x8c\x06closed\x94\x88")

// closedPickle says whether a value is the state of a closed run of backend etcd-v2.
func closedPickle(value string) bool {
	if !strings.HasPrefix(value, "gASV") && !strings.HasPrefix(value, "gAWV") { // protocol 4 or 5, framed
		return false
	}
	b, err := base64.StdEncoding.DecodeString(value)
	return err == nil && bytes.Contains(b, []byte("_RendezvousState")) && bytes.Contains(b, closedMark)
}

// Forget deletes a run that has ended, with the keys that its agents have published: a run of the same id would read
// that. Another process may have done so already, and a run of that id may have begun again: nothing that was written
// since e was found goes. The state goes last, so that what an error leaves is found again.
func (k *Keys) Forget(ctx context.Context, e Ended) error {
	if e.id == "" {
		_, err := k.write(ctx, e.Path, e.plan)
		return err
	}
	for p, rev := range k.toldIn(e.id) {
		_, err := k.Delete(ctx, p, Delete{PrevIndex: rev})
		if refused := new(Error); errors.As(err, &refused) &&
			(refused.Code == CodeNotFound || refused.Code == CodeCompare) {
			continue
		}
		if err != nil {
			return err
		}
	}
	_, err := k.Delete(ctx, e.Path, Delete{PrevIndex: e.Written})
	return err
}

// plan deletes the run's directory, provided that it is still the one that has ended.
func (e Ended) plan(t *tree, now time.Time) (*plan, *Error) {
	n, err := t.find(e.Path)
	if err != nil {
		return nil, err
	}
	if !n.closed() || n.written() != e.Written {
		return nil, fail(CodeCompare, fmt.Sprintf("[%d != %d]", e.Written, n.written()), t.index)
	}
	w := n.delete(now, actionDelete)
	w.guards = append(w.guards, guard{n.active().path, written, n.active().rev})
	return w, nil
}

// toldIn are the keys of a run of backend etcd-v2 by which its agents tell each other things, and when each was
// written: their names are those of torch's PrefixStore in base64 (torch/distributed/elastic/rendezvous/etcd_store.py).
// An id may be the beginning of another, and what follows it says which it is, but for an id with a slash: what may be
// of a run that is there, and whose id is longer, is left to that.
func (k *Keys) toldIn(id string) map[string]uint64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var longer []string
	found := map[string]uint64{}
	names := map[string]string{} // by path
	k.tree.root.each(func(n *node) {
		if n.record.Dir {
			return
		}
		if other, ok := StateOf(n.path); ok && strings.HasPrefix(other, id+".") {
			longer = append(longer, other)
		}
		base, ok := strings.CutPrefix(n.path, torchKeys) // base64 has a slash among its digits
		if !ok {
			base = path.Base(n.path)
		}
		if name, err := base64.StdEncoding.DecodeString(base); err == nil && isPublished(string(name), id) {
			found[n.path], names[n.path] = n.modifiedIndex, string(name)
		}
	})
	maps.DeleteFunc(found, func(p string, _ uint64) bool {
		return slices.ContainsFunc(longer, func(other string) bool { return isPublished(names[p], other) })
	})
	return found
}

// isPublished reports whether a key of torch's PrefixStore is one of a run: after the run's id there is a dot, and the
// round, and a slash.
func isPublished(name, id string) bool {
	rest, ok := strings.CutPrefix(name, "torch.rendezvous."+id+".")
	round, _, more := strings.Cut(rest, "/")
	return ok && more && round != "" && strings.Trim(round, "0123456789") == ""
}
