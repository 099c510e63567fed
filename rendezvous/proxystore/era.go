package proxystore

import (
	"context"
	"errors"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// era is a time in which the etcd keeps what it was told. It ends with an etcd that comes back empty or older, and
// where the run's keys have expired.
type era struct {
	context.Context // ends with it
	end             context.CancelFunc
	cluster         atomic.Uint64
	rev             atomic.Int64 // the latest that the etcd has said
}

func (e *Engine) begin() *era {
	a := &era{}
	a.Context, a.end = context.WithCancel(e.ctx)
	return a
}

// lostText is for the log, beside what it was that has gone.
const lostText = "the run's keys are gone: processes train on, what waits is ended, and whoever meets meets anew"

// noLease is why an era has ended whose lease is not there.
const noLease = "they have expired, or the etcd is empty or older than before"

// lose ends an era, once. Nothing that was seen in it holds, and nothing that waits can count on what was written in
// it: that is refused, which ends torch's agent where it needs the answer.
func (e *Engine) lose(a *era, why string) {
	next := e.begin()
	if !e.lease.end(func() bool { return e.era.CompareAndSwap(a, next) }) {
		next.end()
		return
	}
	e.options.Log.Error(lostText, "run", e.options.Run, "reason", why)
	a.end()
}

// heard holds an answer of the etcd against what was known when it was asked for: answers come in any order, but each
// is of a revision that is not before it.
func (e *Engine) heard(a *era, floor int64, h *pb.ResponseHeader) {
	switch {
	case h == nil: // of what is no key
	case !a.cluster.CompareAndSwap(0, h.ClusterId) && a.cluster.Load() != h.ClusterId:
		e.lose(a, "it is another etcd")
	case h.Revision < floor:
		e.lose(a, "the etcd is empty or older than before: has it lost its disk?")
	default:
		for {
			rev := a.rev.Load()
			if rev >= h.Revision || a.rev.CompareAndSwap(rev, h.Revision) {
				return
			}
		}
	}
}

// renew is called by the goroutine that carries out requests, and returns the era. In a new one it forgets, and sees to
// it that nothing is left of the one before: an etcd of an older state may still have some of it.
func (e *Engine) renew() *era {
	for {
		now := e.era.Load()
		if e.known == now {
			return now
		}
		e.known = now
		e.seen.clear()
		e.session.rev = 0
		if id := e.lease.ended(); id != 0 {
			_ = e.revoke(id) // the error is that the engine ends
		}
	}
}

// revoke deletes a lease, with its keys.
func (e *Engine) revoke(id clientv3.LeaseID) error {
	return e.try(e.ctx, func(ctx context.Context) (*pb.ResponseHeader, error) {
		_, err := e.client.Revoke(ctx, id)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			err = nil
		}
		return nil, err
	})
}

// end forgets the lease where its era ends, and keeps its number for ended. Whoever sees the next era does not get it.
func (l *lease) end(era func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !era() {
		return false
	}
	if l.id != 0 {
		l.dead, l.id = l.id, 0
	}
	return true
}

// ended is the lease of an era that has ended, once.
func (l *lease) ended() (id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, l.dead = l.dead, 0
	return id
}
