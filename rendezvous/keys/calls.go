package keys

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
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
		if err := k.room(t, w, nil); err != nil {
			return nil, err
		}
		return w, nil
	})
}

// room refuses what a plan adds beyond the limits, beside what others are about to add. A run may take half of what
// there is, so that it leaves some to the others.
func (k *Keys) room(t *tree, w *plan, others growth) *Error {
	w.grows(t)
	refused := func(name string, has usage, part int) *Error {
		if n := has.keys + w.more.keys; w.more.keys > 0 && n > k.o.MaxKeys/part {
			return exceeded(0, "%s has %d keys: with %d more there would be over %d", name, has.keys, w.more.keys,
				k.o.MaxKeys/part)
		}
		if n := has.bytes + w.more.bytes; w.more.bytes > 0 && n > k.o.MaxBytes/part {
			return exceeded(0, "%s takes %d bytes: with %d more there would be over %d", name, has.bytes, w.more.bytes,
				k.o.MaxBytes/part)
		}
		return nil
	}
	if w.of.at != "" {
		has := others[w.of.at]
		if s := t.shares[w.of.at]; s != nil {
			has.add(s.keys, s.bytes)
		}
		if err := refused(w.of.name, has, 2); err != nil {
			return err
		}
	}
	has := others[""]
	has.add(t.keys, t.bytes)
	return refused("the store", has, 1)
}

// growth is what writes of one transaction add, by the paths of owners, and that of all at "".
type growth map[string]usage

func (g growth) add(w *plan) {
	for _, at := range []string{"", w.of.at} {
		u := g[at]
		u.add(max(0, w.more.keys), max(0, w.more.bytes)) // what they free is free once they are done
		if g[at] = u; w.of.at == "" {
			return
		}
	}
}

// grows finds out what a plan adds, and whom it counts for.
func (w *plan) grows(t *tree) {
	w.of, w.more = ownerOf(w.head.Key), usage{}
	for _, c := range w.changes(0) {
		n := t.at(c.path)
		if n == nil {
			w.more.add(1, len(c.path))
		} else {
			w.more.bytes -= len(n.record.value)
		}
		w.more.bytes += len(c.record.value)
	}
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

// write does what was decided upon. What was decided against is decided once more with the tree caught up: an older one
// may be wrong, and no transaction finds out.
func (k *Keys) write(ctx context.Context, key string, decide decision) (*Event, error) {
	until := time.Now().Add(k.o.Timeout)
	for fresh := false; ; fresh = true {
		w, by, refused := k.decide(decide) // it need not wait for a transaction to be refused
		if refused == nil {
			v := k.propose(ctx, &proposal{key: key, decide: decide, plan: w, decidedBy: by, until: until})
			if v.err != nil {
				return nil, k.broken(v.err)
			}
			if v.event != nil {
				return v.event, nil
			}
			refused = v.refused
		}
		if fresh {
			return nil, refused
		}
		if err := k.catchUpUntil(ctx, until); err != nil {
			return nil, k.broken(err)
		}
	}
}

// decide returns a plan, and the tree it was made from.
func (k *Keys) decide(decide decision) (*plan, basis, *Error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	by := basis{k.tree, k.tree.index, time.Now()}
	w, refused := decide(k.tree, by.time)
	return w, by, refused
}

// headIndex is the index that a transaction has found, 0 in an empty store.
func headIndex(r *clientv3.TxnResponse) uint64 {
	if r.Succeeded {
		return indexAt(r.Responses[0].GetResponsePut().GetPrevKv())
	}
	if kvs := r.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return indexAt(kvs[0])
	}
	return 0
}

// indexAt is the index of the last event that a head holds, 0 where there is none.
func indexAt(head *mvccpb.KeyValue) uint64 {
	if head == nil {
		return 0
	}
	return indexOf(head.ModRevision, len(readHead(head.Value).Then))
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

// operations appends what a plan does.
func (k *Keys) operations(ops []clientv3.Op, w *plan) []clientv3.Op {
	if w.put == nil {
		ops = append(ops, clientv3.OpDelete(k.key(w.head.Key)))
		if w.prev.Dir {
			ops = append(ops, clientv3.OpDelete(k.key(w.head.Key)+"/", clientv3.WithPrefix()))
		}
		return ops
	}
	for _, c := range w.changes(0) {
		ops = append(ops, clientv3.OpPut(k.key(c.path), c.record.encode()))
	}
	return ops
}
