package keys

import (
	"context"
	"sync"
	"time"
)

// decision makes a plan of what is there, or refuses.
type decision func(*tree, time.Time) (*plan, *Error)

// proposal is a write that waits for its transaction.
type proposal struct {
	ctx       context.Context
	key       string
	of        string // the path of the key's owner, which names its lane
	decide    decision
	until     time.Time // deadline of the caller, who is gone after it
	done      chan verdict
	plan      *plan
	decidedBy basis
	failed    bool // the transaction that it was last in
	alone     bool // it has lost to another process, and is not to take others with it again
	yields    bool // alone it has lost once more, and lets others go first
}

// basis is what a plan was made by; its zero value is nothing.
type basis struct {
	tree  *tree // one that was loaded again may have the same index, and be of another store
	index uint64
	time  time.Time
}

// longestKept is how old a plan may become before it is made again: it has times in it.
const longestKept = 100 * time.Millisecond

// holds says whether a plan would be the same now, but for its times.
func (b basis) holds(t *tree, now time.Time) bool {
	return b.tree == t && b.index == t.index && now.Sub(b.time) < longestKept
}

// verdict is what became of a proposal: it happened, it was decided against, or nobody knows.
type verdict struct {
	event   *Event
	refused *Error
	err     error
}

// proposals are the writes that wait while a transaction is under way: one sync of the disk then does for all of them.
// Each run has a lane, and all runs take turns, so that one with a thousand writes waiting keeps nobody else waiting.
type proposals struct {
	mu     sync.Mutex
	lanes  map[string]*lane // by the paths of their owners; what is of no run shares one
	turns  []*lane          // those in which somebody waits, and whose turn is next first
	number int
	want   int // so many are to wake who commits them
	wake   chan struct{}
}

// lane is what waits of one run, in its order.
type lane struct {
	of      string
	waiting []*proposal
}

func (q *proposals) add(p *proposal) {
	p.of = ownerOf(p.key).at
	q.mu.Lock()
	l := q.lane(p.of)
	l.waiting = append(l.waiting, p)
	q.number++
	enough := q.number >= q.want
	q.mu.Unlock()
	if enough {
		select {
		case q.wake <- struct{}{}:
		default: // it has been told
		}
	}
}

// lane is that of an owner, new at the end of the turns where there is none; the lock is held.
func (q *proposals) lane(of string) *lane {
	l := q.lanes[of]
	if l == nil {
		l = &lane{of: of}
		if q.lanes == nil {
			q.lanes = map[string]*lane{}
		}
		q.lanes[of] = l
		q.turns = append(q.turns, l)
	}
	return l
}

// await waits until so many wait, with patience; then until one does. It ends without when the context does.
func (q *proposals) await(ctx context.Context, want int, patience time.Duration) bool {
	var over <-chan time.Time
	if want > 1 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		over = timer.C
	}
	for !q.has(want) {
		select {
		case <-q.wake:
		case <-over:
			want = 1
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (q *proposals) has(want int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.want = want
	return q.number >= want
}

func (q *proposals) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.number
}

// take hands out up to so many of those that wait: the first of each lane, then the second, and so on.
func (q *proposals) take(most int) []*proposal {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]*proposal, 0, min(most, q.number))
	for len(q.turns) > 0 && len(all) < most {
		l := q.turns[0]
		q.turns = q.turns[1:]
		all = append(all, l.waiting[0])
		l.waiting[0] = nil
		if l.waiting = l.waiting[1:]; len(l.waiting) > 0 {
			q.turns = append(q.turns, l)
		} else {
			delete(q.lanes, l.of)
		}
	}
	q.number -= len(all)
	return all
}

// putBack has these wait before those of their lanes that came since, and gives their lanes the next turns.
func (q *proposals) putBack(first []*proposal) {
	if len(first) == 0 {
		return
	}
	back := map[string][]*proposal{}
	var order []string
	for _, p := range first {
		if back[p.of] == nil {
			order = append(order, p.of)
		}
		back[p.of] = append(back[p.of], p)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var turns []*lane
	for _, of := range order {
		l := q.lane(of)
		l.waiting = append(back[of], l.waiting...)
		turns = append(turns, l)
	}
	for _, l := range q.turns {
		if back[l.of] == nil {
			turns = append(turns, l)
		}
	}
	q.turns = turns
	q.number += len(first)
}

// timers are those of propose, stopped, for reuse: a context with a deadline costs several times as much.
var timers = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}}

// propose has a write of a key decided upon and done with others, and waits until the tree shows it.
func (k *Keys) propose(ctx context.Context, p *proposal) verdict {
	p.ctx, p.done = ctx, make(chan verdict, 1)
	over := timers.Get().(*time.Timer) //nolint:forcetypeassert // nothing else is in it
	over.Reset(time.Until(p.until))
	defer func() {
		over.Stop()
		timers.Put(over)
	}()
	k.queue.add(p)
	select {
	case v := <-p.done:
		return v
	case <-over.C:
		return verdict{err: context.DeadlineExceeded}
	case <-ctx.Done():
		return verdict{err: context.Cause(ctx)}
	case <-k.ctx.Done():
		return verdict{err: ErrClosed}
	}
}
