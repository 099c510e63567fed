package keys

import (
	"fmt"
	"sort"
	"strings"
)

// history is the last events, for waits that begin in the past. Renewed TTLs wake nobody, and so are none of it.
type history struct {
	events []*Event
	bytes  int
	first  uint64 // nothing is missing from this index on
	limit  int    // events
}

// historyBytes bounds what events hold of values that have been overwritten.
const historyBytes = 32 << 20

func (h *history) add(e *Event) {
	if e.refresh {
		return
	}
	h.events = append(h.events, e)
	h.bytes += e.size()
	drop := 0
	for len(h.events)-drop > h.limit || h.bytes > historyBytes {
		h.bytes -= h.events[drop].size()
		h.first = h.events[drop].Index + 1
		h.events[drop] = nil
		drop++
	}
	h.events = h.events[drop:] // append moves the rest, once the array is used up
}

func (e *Event) size() int {
	size := 512 // of the structs, about
	for _, n := range []*Node{e.Node, e.Prev} {
		if n != nil && n.Value != nil {
			size += len(*n.Value)
		}
	}
	return size
}

// since is the first event of a key at or after an index, or nil.
func (h *history) since(w watched, index, now uint64) (*Event, *Error) {
	if index < h.first {
		return nil, fail(CodeCleared, fmt.Sprintf("the requested history has been cleared [%d/%d]", h.first, index),
			now)
	}
	from := sort.Search(len(h.events), func(i int) bool { return h.events[i].Index >= index })
	for _, e := range h.events[from:] {
		if w.by(e) {
			return e, nil
		}
	}
	return nil, nil
}

// watched is what a wait is for.
type watched struct {
	path string
	deep bool
}

// by says whether an event concerns it: its key, with deep any below it that is not hidden from there, or a directory
// above it that has gone.
func (w watched) by(e *Event) bool {
	switch key := e.Node.Key; {
	case key == w.path:
		return true
	case under(key, w.path):
		rest := strings.TrimPrefix(key, w.path)
		return w.deep && !strings.Contains("/"+rest, "/_")
	default:
		return e.gone() && under(w.path, key)
	}
}

// gone says whether a directory has been deleted.
func (e *Event) gone() bool {
	return e.Node.Dir && (e.Action == actionDelete || e.Action == actionExpire)
}

func under(key, dir string) bool {
	return dir == "/" || len(key) > len(dir) && key[len(dir)] == '/' && strings.HasPrefix(key, dir)
}

// hub is the waits that wait.
type hub struct {
	at     map[string]map[*Watch]struct{}
	number int
}

func (h *hub) add(w *Watch) {
	if h.at == nil {
		h.at = map[string]map[*Watch]struct{}{}
	}
	set := h.at[w.what.path]
	if set == nil {
		set = map[*Watch]struct{}{}
		h.at[w.what.path] = set
	}
	set[w] = struct{}{}
	h.number++
}

func (h *hub) remove(w *Watch) {
	set := h.at[w.what.path]
	if _, ok := set[w]; !ok {
		return
	}
	delete(set, w)
	if len(set) == 0 {
		delete(h.at, w.what.path)
	}
	h.number--
}

// notify hands an event to those it concerns, and ends their wait. It looks at the event's key and above. With a
// directory go the nodes below it, and whoever waits for one of those is told; whoever waits there for one that has yet
// to come waits on, as with etcd.
func (h *hub) notify(e *Event, gone *node) {
	if e.refresh {
		return
	}
	for p := e.Node.Key; ; p = parent(p) {
		h.wake(p, e)
		if p == "/" {
			break
		}
	}
	if e.gone() && gone != nil {
		gone.each(func(n *node) { h.wake(n.path, e) })
	}
}

func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		return p[:i]
	}
	return "/"
}

func (h *hub) wake(p string, e *Event) {
	for w := range h.at[p] {
		if e.Index >= w.since && w.what.by(e) {
			h.remove(w)
			w.event <- e
		}
	}
}

// reset ends all waits.
func (h *hub) reset() {
	for _, set := range h.at {
		for w := range set {
			h.remove(w)
			close(w.event)
		}
	}
}
