package keys

import (
	"container/heap"
	"time"
)

// deadline is when a node expires, unless it has been written since.
type deadline struct {
	at   time.Time
	path string
	rev  int64
}

// deadlines is a heap, the soonest first. A node that is written again leaves its earlier one in it: compact drops
// those once they are most of it.
type deadlines []deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(deadline)) }

// Pop is for package heap.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = deadline{}
	*d = (*d)[:last]
	return x
}

func (d *deadlines) add(x deadline) { heap.Push(d, x) }

// expired takes up to n nodes out whose time is over.
func (t *tree) expired(now time.Time, n int) []deadline {
	t.compact()
	var over []deadline
	for len(t.due) > 0 && len(over) < n && !t.due[0].at.After(now) {
		d := heap.Pop(&t.due).(deadline)
		if t.current(d) {
			over = append(over, d)
		}
	}
	return over
}

func (t *tree) current(d deadline) bool {
	n := t.at(d.path)
	return n != nil && n.rev == d.rev
}

func (t *tree) compact() {
	if len(t.due) <= 2*t.keys+64 {
		return
	}
	kept := t.due[:0]
	for _, d := range t.due {
		if t.current(d) {
			kept = append(kept, d)
		}
	}
	clear(t.due[len(kept):])
	t.due = kept
	heap.Init(&t.due)
}
