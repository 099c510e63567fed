package gang

import (
	"sync"
	"time"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

const (
	// abreast is how many members of gangs bind at a time. A thousand bindings at once keep an API server busier with
	// each other than with bindings: measured with make bench-scheduler, they take twice as long as one after another.
	abreast = 32
	// dwell is how long one may take before the next goes on without it.
	dwell = 5 * time.Second
)

// turnstile lets those through who may bind, a limited number at a time and in the order in which they came.
type turnstile struct {
	pass func(gangcache.UID) // lets one bind; called without a lock held

	mu    sync.Mutex
	queue []gangcache.UID
	in    map[gangcache.UID]*time.Timer
}

func newTurnstile(pass func(gangcache.UID)) *turnstile {
	return &turnstile{pass: pass, in: map[gangcache.UID]*time.Timer{}}
}

// enter queues members that may bind.
func (t *turnstile) enter(uids ...gangcache.UID) {
	t.mu.Lock()
	t.queue = append(t.queue, uids...)
	next := t.turn()
	t.mu.Unlock()
	t.let(next)
}

// leave makes room after one that is bound, or will not be.
func (t *turnstile) leave(uid gangcache.UID) {
	t.mu.Lock()
	timer, ok := t.in[uid]
	if !ok {
		t.mu.Unlock()
		return
	}
	timer.Stop()
	delete(t.in, uid)
	next := t.turn()
	t.mu.Unlock()
	t.let(next)
}

// turn takes those off the queue whose turn it is. It is called with the lock held.
func (t *turnstile) turn() []gangcache.UID {
	n := min(abreast-len(t.in), len(t.queue))
	if n <= 0 {
		return nil
	}
	next := t.queue[:n]
	t.queue = t.queue[n:]
	for _, uid := range next {
		t.in[uid] = time.AfterFunc(dwell, func() { t.leave(uid) })
	}
	return next
}

func (t *turnstile) let(uids []gangcache.UID) {
	for _, uid := range uids {
		t.pass(uid)
	}
}
