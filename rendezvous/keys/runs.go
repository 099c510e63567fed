package keys

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
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
	Status       string    `json:"status,omitempty"` // torch's: setup, joinable, frozen, final, closed; none before the first
	Participants int       `json:"participants"`
	Waiting      int       `json:"waiting"`
	Changed      time.Time `json:"changed"` // of the status, by the clock of the process that wrote it
}

// Runs are the directories run_<id> at any depth, by their paths.
func (k *Keys) Runs(ctx context.Context) ([]Run, error) {
	ctx, cancel := context.WithTimeout(ctx, k.o.Timeout)
	defer cancel()
	if err := k.catchUp(ctx); err != nil {
		return nil, k.broken(err)
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
	rdzv := n.children["rdzv"]
	if rdzv == nil || rdzv.children["active_version"] == nil {
		return r
	}
	active := rdzv.children["active_version"]
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

// Match says whether a path of this API is about a run, and which: for logs.
func Match(p string) (id string, ok bool) {
	for p != "/" && p != "." && p != "" {
		if id, ok = strings.CutPrefix(path.Base(p), runPrefix); ok {
			return id, true
		}
		p = path.Dir(p)
	}
	return "", false
}

// Ended is a run that is closed: nobody can join it any more.
type Ended struct {
	Path    string // of the run's directory, or of its state
	Written int64  // revision of the store at which anything in it was written last
	id      string // of backend etcd-v2, whose run has keys elsewhere, too
}

// Ended are the closed runs of both backends.
func (k *Keys) Ended() []Ended {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.tree.root.ended(nil)
}

func (n *node) ended(found []Ended) []Ended {
	for name, c := range n.children {
		id, isRun := strings.CutPrefix(name, runPrefix)
		switch {
		case isRun && c.record.Dir:
			if c.run(id).Status == "closed" {
				e := Ended{Path: c.path}
				c.each(func(n *node) { e.Written = max(e.Written, n.rev) })
				found = append(found, e)
			}
		case c.record.Dir:
			found = c.ended(found)
		case closedPickle(c.record.value):
			found = append(found, Ended{Path: c.path, Written: c.rev, id: name})
		}
	}
	return found
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

// Forget deletes a run that has ended, with what its agents have told each other: a run of the same id would read that.
func (k *Keys) Forget(ctx context.Context, e Ended) error {
	if e.id == "" {
		_, err := k.Delete(ctx, e.Path, Delete{Recursive: true, Dir: true})
		return err
	}
	for _, p := range k.toldIn(e.id) {
		if _, err := k.Delete(ctx, p, Delete{}); err != nil {
			return err
		}
	}
	_, err := k.Delete(ctx, e.Path, Delete{})
	return err
}

// toldIn are the keys of a run of backend etcd-v2 by which its agents tell each other things: their names are those of
// torch's PrefixStore in base64 (torch/distributed/elastic/rendezvous/etcd_store.py).
func (k *Keys) toldIn(id string) (paths []string) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	prefix := []byte("torch.rendezvous." + id + ".")
	k.tree.root.each(func(n *node) {
		if n.record.Dir {
			return
		}
		if name, err := base64.StdEncoding.DecodeString(path.Base(n.path)); err == nil && bytes.HasPrefix(name, prefix) {
			paths = append(paths, n.path)
		}
	})
	return paths
}
