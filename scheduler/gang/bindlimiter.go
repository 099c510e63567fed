package gang

import (
	"sync"
	"time"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

const (
	// maxInFlight is how many members of gangs bind at a time. A thousand bindings at once keep an API server busier
	// with each other than with bindings: measured with make bench-scheduler, they take twice as long as one after
	// another.
	maxInFlight = 32
	// bindTimeout is how long a binding counts as in flight before the next one starts without it.
	bindTimeout = 5 * time.Second
)

// bindLimiter starts bindings in the order in which they were queued, a limited number at a time.
type bindLimiter struct {
	bind func(gangcache.UID) // starts a binding; called without a lock held

	mu       sync.Mutex
	queue    []gangcache.UID
	inFlight map[gangcache.UID]*time.Timer
}

func newBindLimiter(bind func(gangcache.UID)) *bindLimiter {
	return &bindLimiter{bind: bind, inFlight: map[gangcache.UID]*time.Timer{}}
}

// add queues members that may bind.
func (l *bindLimiter) add(uids ...gangcache.UID) {
	l.mu.Lock()
	l.queue = append(l.queue, uids...)
	next := l.next()
	l.mu.Unlock()
	l.start(next)
}

// done makes room after a member that is bound, or will not be.
func (l *bindLimiter) done(uid gangcache.UID) {
	l.mu.Lock()
	timer, ok := l.inFlight[uid]
	if !ok {
		l.mu.Unlock()
		return
	}
	timer.Stop()
	delete(l.inFlight, uid)
	next := l.next()
	l.mu.Unlock()
	l.start(next)
}

// next takes as many members off the queue as the limit leaves room for. It is called with the lock held.
func (l *bindLimiter) next() []gangcache.UID {
	n := min(maxInFlight-len(l.inFlight), len(l.queue))
	if n <= 0 {
		return nil
	}
	next := l.queue[:n]
	l.queue = l.queue[n:]
	for _, uid := range next {
		l.inFlight[uid] = time.AfterFunc(bindTimeout, func() { l.done(uid) })
	}
	return next
}

func (l *bindLimiter) start(uids []gangcache.UID) {
	for _, uid := range uids {
		l.bind(uid)
	}
}
