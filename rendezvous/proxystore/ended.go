package proxystore

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The keys of a run are deleted when it ends, since its lease is much longer than a run is of use: an engine cannot
// know whether another one was killed or is cut off from the etcd, and must not delete the keys of the latter.

// leave deletes the engine's session, and with the last session all that the run has written. Torch's own store also
// ends with its process. Torch's agents close a run at its end, and those of the next attempt could not join a closed
// run. The lease expires: an engine that is about to write for the first time may have just read its number.
//
// An engine that was killed leaves its session behind. Once the run is closed only the keys of nodes count: those of
// lost nodes were deleted with their eviction.
func (e *Engine) leave(ctx context.Context) error {
	e.watcher.depart(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // however long the rest took
	defer cancel()
	if _, err := e.client.Delete(ctx, e.keys.session); err != nil {
		return err
	}
	all := []clientv3.Op{
		clientv3.OpDelete(e.keys.values, clientv3.WithPrefix()), clientv3.OpDelete(e.keys.lease),
		clientv3.OpDelete(e.watcher.prefix, clientv3.WithPrefix()),
	}
	last, err := e.client.Txn(ctx).If(none(e.keys.sessions)).Then(all...).Commit()
	if err != nil || last.Succeeded || e.watcher.off {
		return err
	}
	state := e.keys.values + e.watcher.state
	r, err := e.client.Get(ctx, state)
	if err != nil || len(r.Kvs) == 0 {
		return err
	}
	if m, err := parseMembership(fromKVs(r.Kvs).data); err != nil || !m.closed() {
		return nil //nolint:nilerr // whether it is closed is not known
	}
	last, err = e.client.Txn(ctx).If(none(e.watcher.prefix),
		clientv3.Compare(clientv3.ModRevision(state), "=", r.Kvs[0].ModRevision)).Then(all...).Commit()
	if err == nil && last.Succeeded { // the sessions that are left go with the lease, as their engines notice
		_, err = e.client.Revoke(ctx, e.lease.get())
	}
	return err
}

// depart evicts the nodes of this engine before it ends, so that no other node waits for them. It takes a second at
// most.
func (w *watcher) depart(ctx context.Context) {
	if w.off {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	w.mu.Lock()
	for _, o := range w.own {
		w.ended[o.name] = true
	}
	clear(w.own)
	w.mu.Unlock()
	for range 5 { // agents write the state meanwhile
		_, ended := w.nodes()
		if len(ended) == 0 || ctx.Err() != nil {
			return
		}
		if err := w.tick(ctx); err != nil {
			w.log.Debug("leaving the run", "error", err)
		}
	}
}

// none is the condition that no key has a prefix.
func none(prefix string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(prefix).WithPrefix(), "=", 0)
}

// deleteAbandoned deletes the keys of a closed run that no engine renews: the last of them was killed. Torch's agents
// could not join it. It returns once it is known whether another engine renews a closed run. Any other run is left as
// it is: its nodes may be cut off from the etcd, and agents can join it.
func (w *watcher) deleteAbandoned() error {
	for idle := time.Duration(-1); ; {
		var id clientv3.LeaseID // 0 unless the run may have ended
		var left *clientv3.LeaseTimeToLiveResponse
		err := w.e.try(w.e.ctx, func(ctx context.Context) (*pb.ResponseHeader, error) {
			r, err := w.e.client.Get(ctx, w.e.keys.values+w.state)
			if err != nil || len(r.Kvs) == 0 || !mayBeClosed(fromKVs(r.Kvs).data) {
				id = 0
				return (*pb.RangeResponse)(r).GetHeader(), err
			}
			id = clientv3.LeaseID(r.Kvs[0].Lease)
			if left, err = w.e.client.TimeToLive(ctx, id); status.Code(err) == codes.Unimplemented {
				id, err = 0, nil // of a gate of an earlier version
			}
			return r.Header, err
		})
		if err != nil || id == 0 {
			return err
		}
		granted := time.Duration(left.GrantedTTL) * time.Second
		now := granted - time.Duration(left.TTL)*time.Second
		switch {
		case left.TTL < 0: // it has just gone, with the state
			continue
		case now < idle:
			return nil // another engine has renewed it
		case now > 2*renewal(granted):
			w.log.Info("the run is closed and its proxies have ended: its keys are deleted", "run", w.e.options.Run)
			return w.e.revoke(id)
		}
		idle = now
		if !sleep(w.e.ctx, time.Second) {
			return context.Cause(w.e.ctx)
		}
	}
}

// mayBeClosed reports whether a state is closed, or has a form that is not known.
func mayBeClosed(state []byte) bool {
	m, err := parseMembership(state)
	return string(state) != noState && (err != nil || m.closed())
}
