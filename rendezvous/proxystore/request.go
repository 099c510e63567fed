package proxystore

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

type responseOp = *pb.ResponseOp

// The shortest and the longest pause before a request is repeated.
const (
	leastPause = 20 * time.Millisecond
	mostPause  = 500 * time.Millisecond
	// mostAttempts is how many times longer a repeated request may take than the first.
	mostAttempts = 8
	// mostUnwatched is the longest pause between two looks of who waits and is refused a watch.
	mostUnwatched = 5 * time.Second
)

// try repeats a request until the etcd has answered, or the context ends. The error is the context's, or one that the
// request would meet again.
//
// What answers for keys returns the answer's header.
func (e *Engine) try(ctx context.Context, f func(context.Context) (*pb.ResponseHeader, error)) error {
	longest := e.options.Attempt
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		now := e.era.Load()
		floor := now.rev.Load()
		attempt, cancel := context.WithTimeout(ctx, longest)
		header, err := f(attempt)
		if attempt.Err() != nil { // a slow disk may take longer each time
			longest = min(2*longest, mostAttempts*e.options.Attempt)
		}
		cancel()
		switch {
		case err == nil:
			e.trouble.over(e.options)
			e.heard(now, floor, header)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, rpctypes.ErrFutureRev):
			e.lose(now, "the etcd is empty or older than before: has it lost its disk?")
			return err
		case errors.Is(err, rpctypes.ErrLeaseNotFound), errors.Is(err, rpctypes.ErrCompacted):
			return err
		case errors.Is(err, rpctypes.ErrRequestTooLarge):
			return refuse("length", "the etcd takes no request of this size: %v", err)
		case status.Code(err) == codes.ResourceExhausted: // of a gate's limits
			return refuse(limit, "%s", status.Convert(err).Message())
		}
		e.trouble.begin(e.options, err)
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// sleep pauses, and reports false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// limit is why what a gate's limits do not let pass is refused.
const limit = "limit"

func limited(err error) bool {
	var r *tcpstore.Refusal
	return errors.As(err, &r) && r.Reason == limit
}

// trouble says once that the etcd is away, and once that it is back.
type trouble struct {
	mu      sync.Mutex
	since   time.Time
	without bool // agents were answered without it
}

func (t *trouble) begin(o Options, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		t.since = time.Now()
		o.Log.Warn("the etcd does not answer: requests wait", "run", o.Run, "error", err)
	}
}

// answered logs once an absence that an agent was answered.
func (t *trouble) answered(o Options) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.without {
		t.without = true
		o.Log.Warn("the etcd does not answer: agents that train are answered from the latest state", "run", o.Run)
	}
}

func (t *trouble) over(o Options) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.since.IsZero() {
		after := time.Since(t.since).Round(time.Millisecond)
		o.Log.Info("the etcd answers again", "run", o.Run, "after", after.String())
		t.since, t.without = time.Time{}, false
	}
}

// transact commits a transaction with keys on the run's lease. Where its condition does not hold it reads the keys of
// torch that are named, and then the session. That it is unsure says that an earlier try of this call has had no
// answer.
func (e *Engine) transact(
	condition []clientv3.Cmp, then func(clientv3.LeaseID) []clientv3.Op, read ...string,
) (r *clientv3.TxnResponse, unsure bool, err error) {
	var otherwise []clientv3.Op
	for _, key := range read {
		otherwise = append(otherwise, clientv3.OpGet(e.keys.values+key))
	}
	otherwise = append(otherwise, clientv3.OpGet(e.keys.session))
	for {
		now := e.era.Load() // before the lease: that of an era which has ended meanwhile says nothing of the next one
		lease, err := e.holdLease()
		if err != nil {
			return nil, unsure, err
		}
		err = e.try(e.ctx, func(ctx context.Context) (*pb.ResponseHeader, error) {
			var err error
			r, err = e.client.Txn(ctx).If(condition...).Then(then(lease)...).Else(otherwise...).Commit()
			unsure = unsure || err != nil
			return (*pb.TxnResponse)(r).GetHeader(), err
		})
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			e.lose(now, noLease)
			continue
		}
		return r, unsure, err
	}
}

// lease is the run's.
type lease struct {
	mu   sync.Mutex
	id   clientv3.LeaseID // 0 where it is not known
	dead clientv3.LeaseID // that of an era that has ended
}

func (l *lease) get() clientv3.LeaseID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

func (l *lease) set(id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id = id
}

// holdLease returns the run's lease, which this engine grants if nobody has. It is itself the value of a key on it, so
// that a run has one at a time.
func (e *Engine) holdLease() (clientv3.LeaseID, error) {
	if id := e.lease.get(); id != 0 {
		return id, nil
	}
	var id clientv3.LeaseID
	err := e.try(e.ctx, func(ctx context.Context) (*pb.ResponseHeader, error) {
		r, err := e.client.Get(ctx, e.keys.lease)
		if err != nil {
			return nil, err
		}
		if len(r.Kvs) > 0 {
			id = clientv3.LeaseID(r.Kvs[0].Lease)
			return r.Header, nil
		}
		own, err := e.client.Grant(ctx, int64((e.options.TTL+time.Second-1)/time.Second))
		if err != nil {
			return nil, err
		}
		txn, err := e.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(e.keys.lease), "=", 0)).
			Then(clientv3.OpPut(e.keys.lease, "", clientv3.WithLease(own.ID))).
			Else(clientv3.OpGet(e.keys.lease)).Commit()
		if err != nil {
			return nil, err // whichever of them has it, the next try reads
		}
		if id = own.ID; !txn.Succeeded {
			id = clientv3.LeaseID(txn.Responses[0].GetResponseRange().Kvs[0].Lease)
			_, _ = e.client.Revoke(ctx, own.ID) // or it ends by itself
		}
		return txn.Header, nil
	})
	e.lease.set(id)
	return id, err
}

// mostUnasked is after how long an engine whose clients ask for nothing hears of a run that is lost.
const mostUnasked = 30 * time.Second

// renewal is how often an engine renews a lease.
func renewal(ttl time.Duration) time.Duration { return min(ttl/3, mostUnasked) }

// keepAlive keeps the run for as long as this engine lives, from its first write on. Until then it asks the etcd, while
// anybody waits, whether it is as before: a watch that goes on at an empty etcd is from a revision that is yet to come.
func (e *Engine) keepAlive() {
	var known clientv3.LeaseID
	var next time.Time
	for sleep(e.ctx, mostPause) {
		now, id := e.era.Load(), e.lease.get()
		if id == known && time.Now().Before(next) || id == 0 && !e.waited() {
			continue
		}
		ttl := e.options.TTL
		err := e.try(e.ctx, func(ctx context.Context) (*pb.ResponseHeader, error) {
			if id == 0 {
				r, err := e.client.Get(ctx, e.keys.lease)
				return (*pb.RangeResponse)(r).GetHeader(), err
			}
			r, err := e.client.KeepAliveOnce(ctx, id)
			if err == nil { // whoever granted it may have been told another time to live
				ttl = time.Duration(r.TTL) * time.Second
			}
			return nil, err
		})
		switch {
		case err == nil:
			known, next = id, time.Now().Add(renewal(ttl))
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			e.lose(now, noLease)
		}
	}
}

// waited says whether a client waits.
func (e *Engine) waited() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.clients) > 0
}
