package keys

import (
	"sync"
	"time"
)

const (
	// tick is how often nodes are looked for whose time is over; etcd does so each 500 ms.
	tick = 200 * time.Millisecond
	// asleep is a time between ticks in which this process, or its machine, must have stood still.
	asleep = 2 * time.Second
	// grace is what owners have to renew their nodes, once they can again. torch renews each 5 s.
	grace = 10 * time.Second
	// expiries that are under way at a time: the store writes those that come together at one go.
	expiries = 32
)

// expire deletes nodes whose time is over, until Close.
func (k *Keys) expire() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		if now.Sub(last) > asleep {
			k.noteFailure()
		}
		last = now
		if now.Sub(*k.lastFailure.Load()) < grace {
			continue
		}
		k.expireAt(now)
		last = time.Now() // a slow store is not a sleep
	}
}

func (k *Keys) expireAt(now time.Time) {
	k.mu.Lock()
	over := k.tree.expired(now, expiries)
	k.mu.Unlock()
	var all sync.WaitGroup
	for _, d := range over {
		all.Go(func() {
			if err := k.end(d); err != nil && k.ctx.Err() == nil {
				k.o.Log.Warn("expiring a node failed; retrying", "key", d.path, "error", err)
				k.again(d, now)
			}
		})
	}
	all.Wait()
}

// end deletes a node unless it has been written since. Of several processes that try, one does.
func (k *Keys) end(d deadline) error {
	return k.propose(k.ctx, &proposal{key: d.path, until: time.Now().Add(k.o.Timeout), decide: func(
		t *tree, now time.Time,
	) (*plan, *Error) {
		if !t.current(d) {
			return nil, fail(CodeNotFound, d.path, t.index)
		}
		return t.at(d.path).delete(now, actionExpire), nil
	}}).err
}

// again puts a deadline back.
func (k *Keys) again(d deadline, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d.at = now.Add(time.Second)
	k.tree.due.add(d)
}
