package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"path"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Get is the node at a path, and what is in a directory; with recursive all below it. All calls return an *Error where
// etcd would, with the index of the state that it was decided upon; CodeStore where the store did not answer, in which
// case a write may still have happened.
func (k *Keys) Get(ctx context.Context, key string, recursive bool) (*Event, error) {
	key, err := k.clean(key)
	if err != nil {
		return nil, err
	}
	if err := k.prepareRead(ctx); err != nil {
		return nil, err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.tree.get(key, recursive, time.Now())
}

// Put writes a node, and makes the directories above it.
func (k *Keys) Put(ctx context.Context, key string, p Put) (*Event, error) {
	key, err := k.clean(key)
	if err != nil {
		return nil, err
	}
	if len(p.Value) > k.o.MaxValue {
		return nil, exceeded(http.StatusRequestEntityTooLarge, "a value of %d bytes is longer than %d", len(p.Value),
			k.o.MaxValue)
	}
	if err := k.o.Room(); err != nil {
		full := fail(CodeStore, err.Error(), k.index())
		full.status = http.StatusInsufficientStorage
		return nil, full
	}
	return k.write(ctx, key, func(t *tree, now time.Time) (*plan, *Error) {
		w, err := p.plan(t, key, now)
		if err != nil {
			return nil, err
		}
		if err := k.room(t, w); err != nil {
			return nil, err
		}
		return w, nil
	})
}

// room refuses what a plan adds beyond the limits. A run may take half of what there is, so that it leaves some to
// the others.
func (k *Keys) room(t *tree, w *plan) *Error {
	var more usage
	for _, c := range w.changes(0) {
		n := t.at(c.path)
		if n == nil {
			more.keys++
			more.bytes += len(c.path)
		} else {
			more.bytes -= len(n.record.value)
		}
		more.bytes += len(c.record.value)
	}
	refused := func(name string, has usage, part int) *Error {
		if n := has.keys + more.keys; more.keys > 0 && n > k.o.MaxKeys/part {
			return exceeded(0, "%s has %d keys: with %d more there would be over %d", name, has.keys, more.keys,
				k.o.MaxKeys/part)
		}
		if n := has.bytes + more.bytes; more.bytes > 0 && n > k.o.MaxBytes/part {
			return exceeded(0, "%s takes %d bytes: with %d more there would be over %d", name, has.bytes, more.bytes,
				k.o.MaxBytes/part)
		}
		return nil
	}
	if s := t.shares[ownerOf(w.head.Key).at]; s != nil {
		if err := refused(s.of.name, s.usage, 2); err != nil {
			return err
		}
	}
	return refused("the store", t.usage, 1)
}

// Delete removes a node.
func (k *Keys) Delete(ctx context.Context, key string, d Delete) (*Event, error) {
	key, err := k.clean(key)
	if err != nil {
		return nil, err
	}
	return k.write(ctx, key, func(t *tree, now time.Time) (*plan, *Error) { return d.plan(t, key, now) })
}

// clean is the path that etcd takes a key for.
func (k *Keys) clean(key string) (string, error) {
	key = path.Clean("/" + key)
	if len(key) > k.o.MaxKey {
		return "", exceeded(http.StatusRequestURITooLong, "a key of %d bytes is longer than %d", len(key), k.o.MaxKey)
	}
	if n := strings.Count(key, "/"); n > maxDepth {
		return "", exceeded(http.StatusRequestURITooLong, "a key of %d parts is deeper than %d", n, maxDepth)
	}
	return key, nil
}

// broken is the error for a store that does not answer.
func (k *Keys) broken(err error) error {
	if e := new(Error); errors.As(err, &e) {
		return e
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.closed {
		return ErrClosed
	}
	return fail(CodeStore, err.Error(), k.tree.index)
}

// write does what was decided upon, or decides again, until one of both holds. What was decided against is
// decided once more with the tree caught up: an older one may be wrong, and no transaction finds out.
func (k *Keys) write(ctx context.Context, key string, decide func(*tree, time.Time) (*plan, *Error)) (*Event, error) {
	ctx, cancel := context.WithTimeout(ctx, k.o.Timeout)
	defer cancel()
	for fresh := false; ; {
		e, refused, err := k.try(ctx, key, decide)
		switch {
		case err != nil:
			return nil, k.broken(err)
		case e != nil:
			return e, nil
		case refused == nil: // lost to another process
		case fresh:
			return nil, refused
		default:
			if err := k.catchUp(ctx); err != nil {
				return nil, k.broken(err)
			}
			if _, refused := k.decide(decide); refused != nil {
				return nil, refused
			}
		}
		fresh = fresh || refused != nil
	}
}

func (k *Keys) decide(decide func(*tree, time.Time) (*plan, *Error)) (*plan, *Error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return decide(k.tree, time.Now())
}

var seed = maphash.MakeSeed()

// try is one attempt: an event, or why not, or neither if somebody else was first.
func (k *Keys) try(
	ctx context.Context, key string, decide func(*tree, time.Time) (*plan, *Error),
) (*Event, *Error, error) {
	lock := k.locks[maphash.String(seed, key)%uint64(len(k.locks))]
	select {
	case lock <- struct{}{}:
		defer func() { <-lock }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	w, refused := k.decide(decide)
	if refused != nil {
		return nil, refused, nil
	}
	e, err := k.commit(ctx, w)
	return e, nil, err
}

// commit does a plan and waits until the tree shows it. No event: something had changed, and the tree shows that.
func (k *Keys) commit(ctx context.Context, w *plan) (*Event, error) {
	then, err := k.operations(w)
	if err != nil {
		return nil, err
	}
	before := k.index()
	r, err := k.client.Txn(ctx).If(k.compares(w)...).Then(then...).Else(clientv3.OpGet(k.head())).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return nil, exceeded(http.StatusRequestEntityTooLarge, "the store takes less in a request")
	case err != nil:
		if !errors.Is(context.Cause(ctx), context.Canceled) { // else it is the client that went
			k.noteFailure()
		}
		return nil, err
	}
	index := headIndex(r)
	if err := k.seen(r.Header, index, before); err != nil {
		return nil, err
	}
	if !r.Succeeded {
		return nil, k.reach(ctx, index)
	}
	rev := r.Header.Revision
	k.applyOwn(index, commit{rev, w.head, w.changes(rev)})
	if err := k.reach(ctx, uint64(rev)); err != nil {
		return nil, fmt.Errorf("waiting to see what was written: %w", err)
	}
	return event(w.head, w.prev, w.put, uint64(rev)), nil
}

// headIndex is the index that a transaction has found, 0 in an empty store.
func headIndex(r *clientv3.TxnResponse) uint64 {
	if r.Succeeded {
		if kv := r.Responses[0].GetResponsePut().GetPrevKv(); kv != nil {
			return uint64(kv.ModRevision)
		}
	} else if kvs := r.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return uint64(kvs[0].ModRevision)
	}
	return 0
}

func (k *Keys) compares(w *plan) []clientv3.Cmp {
	var cmps []clientv3.Cmp
	for _, g := range w.guards {
		switch g.what {
		case written:
			cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(k.key(g.path)), "=", g.want))
		case created:
			cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(k.key(g.path)), "=", g.want))
		case empty: // no key is modified at revision 0
			cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(k.key(g.path)+"/"), "=", 0).WithPrefix())
		}
	}
	return cmps
}

func (k *Keys) operations(w *plan) ([]clientv3.Op, error) {
	h, err := json.Marshal(w.head)
	if err != nil {
		return nil, fmt.Errorf("writing what happens: %w", err)
	}
	ops := []clientv3.Op{clientv3.OpPut(k.head(), string(h), clientv3.WithPrevKV())}
	if w.put == nil {
		ops = append(ops, clientv3.OpDelete(k.key(w.head.Key)))
		if w.prev.Dir {
			ops = append(ops, clientv3.OpDelete(k.key(w.head.Key)+"/", clientv3.WithPrefix()))
		}
		return ops, nil
	}
	put := func(p string, r record) error {
		v, err := r.encode()
		ops = append(ops, clientv3.OpPut(k.key(p), v))
		return err
	}
	for _, dir := range w.dirs {
		if err := put(dir, record{Dir: true, Time: w.put.Time}); err != nil {
			return nil, err
		}
	}
	return ops, put(w.head.Key, *w.put)
}
