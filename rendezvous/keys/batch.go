package keys

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// batchPlans is how many plans a transaction has: etcd takes 128 operations, and head's is one of them.
	batchPlans = stride - 1
	// batchOps and batchBytes are what etcd takes in a transaction at its defaults, the latter with room to spare.
	batchOps   = 128
	batchBytes = 1 << 20
	// looks is how many waiting writes are looked at for a transaction, where many wait for the same key.
	looks = 4 * batchPlans
	// shareOfSync is how many writes are worth a sync: with more at a time the processor is what they wait for.
	shareOfSync = 16
	// longestPatience is for clients that come again: on a slow disk they are long back.
	longestPatience = time.Millisecond
)

// commitProposals does what is proposed, one transaction after the other, until Close. Whoever was answered may well
// come again at once: those are waited for, for no longer than the last transaction took. Another sync costs more.
// Where one was answered alone, as of many that swap one key, nobody waits.
func (k *Keys) commitProposals() {
	limits := batchLimits{plans: batchPlans, bytes: batchBytes}
	for want, patience := 1, time.Duration(0); k.queue.await(k.ctx, want, patience); {
		b, begin := k.gather(limits), time.Now()
		answered := 0
		if len(b.all) > 0 {
			answered = k.commit(b, &limits)
		}
		patience, want = min(time.Since(begin), longestPatience), 1
		if waiting := k.queue.size(); answered > 1 && answered >= waiting {
			want = min(answered+waiting, shareOfSync)
		}
	}
}

// batchLimits are what a transaction may have. They shrink where the store's own are lower than etcd's defaults.
type batchLimits struct{ plans, bytes int }

// batch is what becomes one transaction: plans that have nothing to do with each other, so that each holds whatever the
// others do, and no key is written twice, which etcd refuses.
type batch struct {
	index   uint64 // of the tree by which its plans were decided
	all     []*proposal
	ops     int
	bytes   int
	written map[string]bool // paths, of what is deleted as well
	deleted map[string]bool
	more    growth
}

func newBatch() *batch {
	return &batch{ops: 1, written: map[string]bool{}, deleted: map[string]bool{}, more: growth{}}
}

// gather decides upon what waits, and takes as much of it as goes into one transaction. The rest waits on.
func (k *Keys) gather(limits batchLimits) *batch {
	b := newBatch()
	var left []*proposal
	waiting, lost := inTurn(k.queue.take(looks))
	k.mu.RLock()
	now := time.Now()
	b.index = k.tree.index
	for i, p := range waiting {
		if len(b.all) >= limits.plans {
			left = append(left, waiting[i:]...)
			break
		}
		if p.ctx.Err() != nil || now.After(p.until) { // nobody waits for it any more, and it was told to nobody
			continue
		}
		// it is decided upon once that is done
		if first := lost[p.key]; b.written[p.key] || first != nil && first != p {
			left = append(left, p)
			continue
		}
		w, refused := p.plan, (*Error)(nil)
		if !p.decidedBy.holds(k.tree, now) {
			w, refused = p.decide(k.tree, now)
		}
		if refused != nil {
			p.done <- verdict{refused: refused}
			continue
		}
		// What it was decided upon has changed: that may be what made its transaction fail.
		p.alone = p.alone || p.failed && !slices.Equal(p.plan.guards, w.guards)
		p.plan, p.failed, p.decidedBy = w, false, basis{}
		full := len(b.all) > 0 && w.put != nil && k.room(k.tree, w, b.more) != nil // it is refused once those are done
		if full || !b.add(p, limits) {
			left = append(left, p)
		}
	}
	k.mu.RUnlock()
	k.queue.putBack(left)
	return b
}

// inTurn has those that let others go first come last, once: else one that loses again and again, as another process
// writes its key, would keep all others waiting. Of each key that has been lost it returns the first proposal, behind
// which the others of the key wait: they would lose it for a whole transaction.
func inTurn(all []*proposal) (waiting []*proposal, lost map[string]*proposal) {
	var last []*proposal
	lost = map[string]*proposal{}
	for _, p := range all {
		if p.alone && lost[p.key] == nil {
			lost[p.key] = p
		}
		if p.yields {
			p.yields = false
			last = append(last, p)
		} else {
			waiting = append(waiting, p)
		}
	}
	return append(waiting, last...), lost
}

// add takes a proposal in where it fits. The first one always does.
func (b *batch) add(p *proposal, limits batchLimits) bool {
	w := p.plan
	ops, bytes := w.size()
	if len(b.all) > 0 {
		tooMuch := b.ops+ops > batchOps || b.bytes+bytes > limits.bytes
		if tooMuch || p.alone || b.all[0].alone || b.touches(w) {
			return false
		}
	}
	b.ops, b.bytes = b.ops+ops, b.bytes+bytes
	for _, dir := range w.dirs {
		b.written[dir] = true
	}
	b.written[w.head.Key] = true
	if w.put == nil {
		b.deleted[w.head.Key] = true
	}
	b.more.add(w)
	w.place(len(b.all))
	b.all = append(b.all, p)
	return true
}

// touches says whether a plan is about what another one changes.
func (b *batch) touches(w *plan) bool {
	if b.written[w.head.Key] {
		return true
	}
	for _, dir := range w.dirs {
		if b.written[dir] {
			return true
		}
	}
	if len(b.deleted) > 0 {
		for dir := path.Dir(w.head.Key); dir != "/"; dir = path.Dir(dir) {
			if b.deleted[dir] {
				return true
			}
		}
	}
	if w.put == nil && w.prev.Dir {
		for p := range b.written {
			if under(p, w.head.Key) {
				return true
			}
		}
	}
	return false
}

// size is about what a plan takes of a transaction: operations, or comparisons where there are more of them, and bytes.
func (w *plan) size() (ops, bytes int) {
	const around = 256 // what a record and the protocol put around a key
	ops, bytes = 1+len(w.dirs), (len(w.head.Key)+around)*(2+len(w.guards))
	if w.put == nil {
		ops = 2
	} else {
		bytes += len(w.put.value)
	}
	for _, dir := range w.dirs {
		bytes += len(dir) + around
	}
	return max(ops, len(w.guards)), bytes
}

// commit does a batch, and tells each of it what became of it. Where something had changed nobody is answered, and all
// are decided upon again: the tree then shows the change.
func (k *Keys) commit(b *batch, limits *batchLimits) (answered int) {
	ctx, cancel := context.WithTimeout(k.ctx, k.o.Timeout)
	defer cancel()
	index, err := k.transact(ctx, b)
	switch {
	case err == nil && index == 0:
		for _, p := range b.all {
			p.failed, p.yields = true, p.alone
		}
		k.queue.putBack(b.all)
		return 0
	case err == nil:
		for at, p := range b.all {
			w := p.plan
			p.done <- verdict{event: event(w.head, w.prev, w.put, index+uint64(at))}
		}
		return len(b.all)
	case refusedWhole(err) && len(b.all) > 1:
		limits.shrink(err, b)
		k.queue.putBack(b.all)
		return 0
	}
	if errors.Is(err, rpctypes.ErrRequestTooLarge) {
		err = exceeded(http.StatusRequestEntityTooLarge, "the store takes less in a request")
	}
	for _, p := range b.all {
		p.done <- verdict{err: err}
	}
	return len(b.all)
}

// refusedWhole says whether the store has refused a transaction for its size, so that nothing of it was done.
func refusedWhole(err error) bool {
	return errors.Is(err, rpctypes.ErrRequestTooLarge) || errors.Is(err, rpctypes.ErrTooManyOps)
}

func (l *batchLimits) shrink(err error, b *batch) {
	if errors.Is(err, rpctypes.ErrTooManyOps) {
		l.plans = max(1, len(b.all)/2)
	} else {
		l.bytes = b.bytes / 2
	}
}

// transact does a batch and waits until the tree shows it. It returns the index of its first event; 0 says that
// something had changed, and that the tree shows what.
func (k *Keys) transact(ctx context.Context, b *batch) (uint64, error) {
	if k.isStale() { // each write would bring the index nearer to those that other processes remember
		return 0, errStale
	}
	cmps, then := k.transaction(b)
	r, err := k.client.Txn(ctx).If(cmps...).Then(then...).Else(clientv3.OpGet(k.head())).Commit()
	if err != nil {
		if !refusedWhole(err) {
			k.noteFailure()
		}
		return 0, err
	}
	index := b.index // which is what was compared
	if !k.o.Alone || !r.Succeeded {
		index = headIndex(r)
	}
	if err := k.seen(r.Header, index, b.index); err != nil {
		return 0, err
	}
	if !r.Succeeded {
		return 0, k.reach(ctx, index)
	}
	rev := r.Header.Revision
	done := commit{rev: rev}
	for _, p := range b.all {
		done.parts = append(done.parts, part{&p.plan.head, p.plan.changes(rev)})
	}
	k.applyOwn(index, done)
	if err := k.reach(ctx, indexOf(rev, len(b.all)-1)); err != nil {
		return 0, fmt.Errorf("waiting to see what was written: %w", err)
	}
	return indexOf(rev, 0), nil
}

// transaction is what etcd is asked to compare, and to do. For a process that is alone all is as it was decided upon
// where head is: nobody else writes its keys, and all that it wrote itself has changed head.
func (k *Keys) transaction(b *batch) (cmps []clientv3.Cmp, ops []clientv3.Op) {
	ops = make([]clientv3.Op, 1, b.ops)
	if k.o.Alone {
		cmps = []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(k.head()), "=", int64(b.index/stride))}
	}
	h := b.all[0].plan.head
	for i, p := range b.all {
		if i > 0 {
			h.Then = append(h.Then, p.plan.head)
		}
		if !k.o.Alone {
			cmps = append(cmps, k.compares(p.plan)...)
		}
		ops = k.operations(ops, p.plan)
	}
	var before []clientv3.OpOption
	if !k.o.Alone {
		before = append(before, clientv3.WithPrevKV())
	}
	ops[0] = clientv3.OpPut(k.head(), string(h.append(nil)), before...)
	return cmps, ops
}
