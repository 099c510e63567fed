package keys

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// follow keeps the tree up to date until Close. A process that is alone knows what it wrote from the answers, and hears
// it from the store only where it may lack one.
func (k *Keys) follow() {
	for k.ctx.Err() == nil {
		err := k.watch()
		if err == nil {
			select {
			case <-k.missed:
			case <-k.ctx.Done():
			}
			continue
		}
		if errors.Is(err, rpctypes.ErrCompacted) || errors.Is(err, errStale) { // events are lost
			err = k.load(k.ctx)
		}
		if k.ctx.Err() == nil {
			k.noteFailure()
			k.o.Log.Warn("store watch ended; resuming", "error", err)
			sleep(k.ctx, 100*time.Millisecond)
		}
	}
}

// watch takes in what the store tells, until an error, or without one until the tree lacks nothing.
func (k *Keys) watch() error {
	// A member without a leader ends the watch, and the client turns to another one.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(k.ctx))
	defer cancel()
	k.mu.Lock()
	k.rewatch = cancel
	stale, from := k.stale, k.next
	k.mu.Unlock()
	if stale {
		return errStale
	}
	look := time.NewTicker(tick)
	defer look.Stop()
	told := k.client.Watch(ctx, k.o.Prefix, clientv3.WithPrefix(), clientv3.WithRev(from))
	for {
		select {
		case <-look.C:
			if !k.o.Alone || !k.mayKnowAll() {
				continue
			}
			if index, err := k.askIndex(); err != nil {
				return err
			} else if index <= k.index() {
				return nil
			}
		case r, open := <-told:
			switch {
			case k.isStale():
				return errStale
			case !open:
				return errors.New("the watch has ended")
			case r.Err() != nil:
				return r.Err()
			}
			k.hear(&r)
		}
	}
}

// mayKnowAll says of a process that is alone whether to ask if its tree has all that was written. A write that was not
// answered may be done as long as the store tries, and is told of at any time; one that is done still later is noticed
// by the next write, which finds its index.
func (k *Keys) mayKnowAll() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.caughtUp.Load() && len(k.waiters) == 0 && time.Since(*k.lastFailure.Load()) > unanswered
}

// unanswered is how long a write may be under way: etcd gives up after 7 s.
const unanswered = 10 * time.Second

// listen has a process that is alone hear from the store what it may lack.
func (k *Keys) listen() {
	select {
	case k.missed <- struct{}{}:
	default: // it has been told
	}
}

// hear takes in what the watch has brought, revision by revision.
func (k *Keys) hear(r *clientv3.WatchResponse) {
	k.term.Store(r.Header.RaftTerm)
	for events := r.Events; len(events) > 0; {
		rev, n := events[0].Kv.ModRevision, 1
		for n < len(events) && events[n].Kv.ModRevision == rev {
			n++
		}
		k.apply(rev, events[:n])
		events = events[n:]
	}
}

// apply takes in the events of a revision that the watch has brought, unless this process did them itself and knows.
func (k *Keys) apply(rev int64, events []*clientv3.Event) {
	var h head
	var changes []change
	known := indexOf(rev, 0) <= k.index()
	for _, e := range events {
		deleted := e.Type == mvccpb.DELETE
		if string(e.Kv.Key) == k.head() {
			if known {
				k.mu.Lock()
				k.next = max(k.next, rev+1)
				k.mu.Unlock()
				return
			}
			if h = readHead(e.Kv.Value); h.Format > format {
				k.EndWaits() // requests wait for what this program cannot read, until it ends
				k.o.Failed(errNewer(h.Format))
				return
			}
		} else if c, ok := k.change(e.Kv, deleted); ok {
			changes = append(changes, c)
		}
	}
	k.advanced()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = max(k.next, rev+1)
	if h.Key == "" || indexOf(rev, 0) > k.tree.index {
		k.take(commit{rev, split(h, changes)})
	}
	k.wakeWaiters()
}

// applyOwn takes in what this process has just done, at once where it comes right after what the tree holds, else as
// soon as it does. So a write need not wait until the watch brings it.
func (k *Keys) applyOwn(before uint64, c commit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.stale || before < k.tree.index: // the watch was faster
	case before > k.tree.index:
		k.own[before] = c
	default:
		k.take(c)
		if k.o.Alone {
			k.next = max(k.next, c.rev+1)
		}
		k.wakeWaiters()
	}
}

// take feeds a revision to the tree, and after it those of our own that follow; the lock is held.
func (k *Keys) take(c commit) {
	for ok := true; ok; c, ok = k.own[k.tree.index] {
		before := k.tree.index
		for at, p := range c.parts {
			if ev, gone := k.tree.apply(indexOf(c.rev, at), p.head, p.changes, time.Now()); ev != nil {
				k.past.add(ev)
				k.hub.notify(ev, gone)
			}
		}
		delete(k.own, before)
	}
}
