package keys

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"
)

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
		if id, ok := strings.CutPrefix(name, "run_"); ok && c.record.Dir {
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
		if id, ok = strings.CutPrefix(path.Base(p), "run_"); ok {
			return id, true
		}
		p = path.Dir(p)
	}
	return "", false
}
