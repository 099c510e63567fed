package keys

import (
	"context"
	"sync"
	"time"
)

// barrier lets requests share a linearizable read: one that begins after they came.
type barrier struct {
	mu      sync.Mutex
	next    *read // for those that come while a read is under way
	running bool
}

type read struct {
	done  chan struct{}
	index uint64
	err   error
}

// wait returns what a read that began after the call has read.
func (b *barrier) wait(ctx context.Context, do func() (uint64, error)) (uint64, error) {
	b.mu.Lock()
	if b.next == nil {
		b.next = &read{done: make(chan struct{})}
	}
	r := b.next
	if !b.running {
		b.running = true
		go b.run(do)
	}
	b.mu.Unlock()
	select {
	case <-r.done:
		return r.index, r.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (b *barrier) run(do func() (uint64, error)) {
	for {
		b.mu.Lock()
		r := b.next
		b.next = nil
		b.running = r != nil
		b.mu.Unlock()
		if r == nil {
			return
		}
		r.index, r.err = do()
		close(r.done)
	}
}

// catchUp waits until the tree holds all that was written before the call, by whichever process. What this one has
// answered it holds anyway.
func (k *Keys) catchUp(ctx context.Context) error {
	if k.isCurrent() {
		return context.Cause(k.ctx)
	}
	index, err := k.sync.wait(ctx, k.askIndex)
	if err != nil {
		return err
	}
	if err := k.reach(ctx, index); err != nil {
		return err
	}
	k.caughtUp.Store(true)
	return nil
}

// prepareRead catches up within the time that a request has. Its error is an answer.
func (k *Keys) prepareRead(ctx context.Context) error {
	if err := k.catchUpUntil(ctx, time.Now().Add(k.o.Timeout)); err != nil {
		return k.broken(err)
	}
	return nil
}

func (k *Keys) catchUpUntil(ctx context.Context, until time.Time) error {
	if k.isCurrent() {
		return context.Cause(k.ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return k.catchUp(ctx)
}

// isCurrent says that the tree holds whatever was answered.
func (k *Keys) isCurrent() bool { return k.o.Alone && k.caughtUp.Load() }

func (k *Keys) askIndex() (uint64, error) {
	ctx, cancel := context.WithTimeout(k.ctx, k.o.Timeout)
	defer cancel()
	before := k.index()
	r, err := k.client.Get(ctx, k.head())
	if err != nil {
		k.noteFailure()
		return 0, err
	}
	index := uint64(0)
	if len(r.Kvs) > 0 {
		index = indexAt(r.Kvs[0])
	}
	return index, k.seen(r.Header, index, before)
}

// noteFailure records that the store did not answer. What it was asked for may be done all the same.
func (k *Keys) noteFailure() {
	now := time.Now()
	k.lastFailure.Store(&now)
	k.listen()
}
