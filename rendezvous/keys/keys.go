// Package keys is etcd's v2 keys API on an etcd v3 store, as far as PyTorch's rendezvous uses it. In go HTTP requests,
// or calls of Get, Put, Delete and Watch; out come the answers that etcd 3.4 gives, and in the store there is one key
// for each v2 node.
//
// Nothing is kept in a process but a copy: any number of them serve one store, and any may die. Each follows the store
// through one v3 watch and answers reads and long polls from its copy, the tree, so that a thousand waits cost the
// store nothing. One that is alone knows its writes from their answers, and follows the store only where one may be
// lacking: after it has begun, and after the store did not answer. Before a read is answered the tree has caught up
// with a linearizable read of one key, head, which all requests share that come while the one before is under way. A
// write is decided upon by the tree and done in one v3 transaction, provided that what it was decided upon has not
// changed; if it has, it is decided again. Each transaction writes head, which holds what the changes were: those that
// come while one is under way share the next one, with one sync of the disk, and where more wait than it takes the runs
// take turns. So a v3 revision is one or more v2 events, whose indexes follow from it and from their places in it, and
// all processes report the same events in the same order.
//
// # Expiry
//
// A TTL is not a v3 lease. Leases last at least 2 s, cost a second write, do not know that a directory takes with it
// what is below it, and hide from the other processes that they were renewed, while a v2 client may see both the new
// modifiedIndex and the new expiration. Instead each process counts a node's TTL by its own clock from when it saw the
// node written, and the first one to reach the end deletes it, with all below it and provided that it was not written
// since. So neither clocks that differ nor a process that was stopped for a while let a node expire early: one that
// finds that it slept, or that the store did not answer it, gives owners time to come back first. Where no process
// runs, nothing expires; the next one to start deletes what is over by the clock of the one that wrote it, but not
// before half of the TTL, at which owners renew, has passed once more.
//
// # What differs from etcd
//
// Listings are sorted. POST, which makes keys in order, and streams are answered 501. Limits have an error code of
// their own. Indexes have gaps: each revision has 128 of them, and
// other users of the store take revisions too.
package keys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Options of Open. Zero is the default, named beside each.
type Options struct {
	Prefix string // of all keys in the store; "/tegen/v2/"
	Alone  bool   // no other process serves this prefix, as with an embedded store: reads need not ask it
	// URLs at which clients reach this API; where there are none, the Host that the request names
	Advertise []string
	MaxKey    int           // bytes in a key; 4 KiB
	MaxValue  int           // bytes in a value; 1 MiB, and the store takes 1.5 MiB in a request
	MaxKeys   int           // keys, directories among them; 100,000
	MaxBytes  int           // in all keys and values; 128 MiB
	MaxWaits  int           // long polls at a time; 10,000
	History   int           // events that a wait may begin at; 1,000
	MaxAnswer int           // bytes of all answers and bodies of requests that are under way; 64 MiB
	Timeout   time.Duration // for all that is not a wait; 10 s
	// ClientTimeout is how long a client may send or take nothing, and how long a request waits for room; 10 s.
	ClientTimeout time.Duration

	Room     func() error // an error while the store's disk has no room for a write; nil: there always is
	Advanced func()       // called for each part of the state that Open has read
	Failed   func(error)  // called when nothing can be served any more; it must not wait
	Log      *slog.Logger // nowhere
}

func (o Options) filled() Options {
	def := func(v *int, n int) {
		if *v == 0 {
			*v = n
		}
	}
	def(&o.MaxKey, 4<<10)
	def(&o.MaxValue, 1<<20)
	def(&o.MaxKeys, 100_000)
	def(&o.MaxBytes, 128<<20)
	def(&o.MaxWaits, 10_000)
	def(&o.History, 1000)
	def(&o.MaxAnswer, 64<<20)
	if o.Prefix == "" {
		o.Prefix = "/tegen/v2/"
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.ClientTimeout == 0 {
		o.ClientTimeout = 10 * time.Second
	}
	if o.Room == nil {
		o.Room = func() error { return nil }
	}
	if o.Advanced == nil {
		o.Advanced = func() {}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// maxDepth of a path: etcd takes 128 operations in a transaction, and each directory on the way may be one.
const maxDepth = 64

// ErrClosed ends waits: the Keys was closed, or lost the thread of events. The client asks again, elsewhere or here.
var ErrClosed = errors.New("the wait was ended by the server")

// Keys is one process's copy of the store, and the way to write to it.
type Keys struct {
	client      *clientv3.Client
	o           Options
	cluster     atomic.Pointer[string] // id in hexadecimal digits
	term        atomic.Uint64
	small       *budget // of answers and bodies: listings have one of their own, so that they keep nobody else from his
	listings    *budget
	sent        lastEvent
	ctx         context.Context
	stop        context.CancelFunc
	running     sync.WaitGroup
	sync        barrier
	queue       proposals
	lastFailure atomic.Pointer[time.Time] // when the store last did not answer

	caughtUp atomic.Bool // since it was last loaded
	isOpen   atomic.Bool // Open has returned, or is about to

	mu      sync.RWMutex
	tree    *tree
	past    history
	hub     hub
	waiters []*waiter
	own     map[uint64]commit // of this process, by the index that each comes right after
	next    int64             // revision to watch from
	rewatch func()            // ends the watch
	missed  chan struct{}     // tells follow that the tree may lack what was written
	stale   bool              // the store was replaced: nothing of the tree holds
	ended   bool              // there are no more waits
	closed  bool
}

// commit is a transaction that was done, and that the watch may not have brought yet.
type commit struct {
	rev   int64
	parts []part
}

// part is an event of a transaction, and what it changed. What somebody else wrote has no head, and is no event.
type part struct {
	head    *head
	changes []change
}

// waiter waits until the tree has reached an index.
type waiter struct {
	index uint64
	done  chan struct{}
}

// Open loads the state and begins to follow it. The client stays the caller's, and must outlive the Keys.
func Open(ctx context.Context, client *clientv3.Client, o Options) (*Keys, error) {
	k := &Keys{client: client, o: o.filled(), rewatch: func() {}, missed: make(chan struct{}, 1)}
	k.lastFailure.Store(&time.Time{})
	k.small = newBudget(k.o.MaxAnswer/2, k.o.ClientTimeout)
	k.listings = newBudget(k.o.MaxAnswer/2, k.o.ClientTimeout)
	k.queue.wake = make(chan struct{}, 1)
	k.ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := k.load(ctx); err != nil {
		k.stop()
		return nil, err
	}
	k.running.Go(k.follow)
	k.running.Go(k.commitProposals)
	k.running.Go(k.expire)
	if err := k.catchUp(ctx); err != nil {
		k.Close()
		return nil, fmt.Errorf("catching up with the store: %w", err)
	}
	k.isOpen.Store(true)
	return k, nil
}

// advanced reports progress to the caller of Open.
func (k *Keys) advanced() {
	if !k.isOpen.Load() {
		k.o.Advanced()
	}
}

// EndWaits ends all waits, and those that are still to come. All else goes on.
func (k *Keys) EndWaits() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.hub.reset()
}

// Close ends all. It writes nothing.
func (k *Keys) Close() {
	k.EndWaits()
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.stop()
	k.running.Wait()
}

func (k *Keys) head() string { return k.o.Prefix + "head" }

func (k *Keys) key(p string) string { return k.o.Prefix + "keys" + p }

// load reads the state as it was some revisions ago, where the store still knows it: following it from there fills the
// history, so that waits go on with a process that has just begun.
func (k *Keys) load(ctx context.Context) error {
	r, err := k.client.Get(ctx, k.head())
	if err != nil {
		return fmt.Errorf("reading the store's revision: %w", err)
	}
	id := strconv.FormatUint(r.Header.ClusterId, 16)
	k.cluster.Store(&id)
	k.term.Store(r.Header.RaftTerm)
	if len(r.Kvs) > 0 {
		if h := readHead(r.Kvs[0].Value); h.Format > format {
			return errNewer(h.Format)
		}
	}
	from := max(1, r.Header.Revision-int64(k.o.History))
	if k.isStale() { // what was before is of no use
		from = r.Header.Revision
	}
	err = k.loadAt(ctx, from)
	if errors.Is(err, rpctypes.ErrCompacted) {
		err = k.loadAt(ctx, r.Header.Revision)
	}
	if err != nil {
		return fmt.Errorf("reading the state: %w", err)
	}
	return nil
}

func (k *Keys) loadAt(ctx context.Context, rev int64) error {
	t, now, grace := newTree(), time.Now(), grace
	from, end := k.o.Prefix, clientv3.GetPrefixRangeEnd(k.o.Prefix)
	for many := int64(16); ; { // as many as are some megabytes: a thousand of the longest would be a gigabyte
		r, err := k.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithRev(rev), clientv3.WithLimit(many))
		if err != nil {
			return err
		}
		k.advanced()
		size := 0
		for _, kv := range r.Kvs {
			size += len(kv.Value)
			if string(kv.Key) == k.head() {
				t.index = indexAt(kv)
			} else if c, ok := k.change(kv, false); ok {
				t.put(c, now, &grace)
			}
		}
		if !r.More {
			break
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
		if size < 1<<20 {
			many = min(2*many, 1000)
		} else if size > 4<<20 {
			many = max(1, many/2)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hub.reset()
	k.caughtUp.Store(false)
	k.tree, k.next, k.own, k.stale = t, rev+1, map[uint64]commit{}, false
	k.past = history{limit: k.o.History, first: t.index + 1}
	k.wakeWaiters()
	return nil
}

// change is what happened to a key of the store, if it is one of ours.
func (k *Keys) change(kv *mvccpb.KeyValue, deleted bool) (change, bool) {
	p, ok := strings.CutPrefix(string(kv.Key), k.key(""))
	if !ok || p == "/" || p == "" || path.Clean(p) != p {
		return change{}, false
	}
	if deleted {
		return change{path: p}, true
	}
	r, err := decode(kv.Value)
	if err != nil {
		k.o.Log.Warn("ignoring a record of another program", "key", string(kv.Key), "error", err)
		return change{}, false
	}
	return change{p, &r, kv.ModRevision, kv.CreateRevision}, true
}

// seen compares the index of a linearizable answer with that of the tree before the question. A store that is behind,
// or has another id, was replaced, restored from a backup, or emptied: then all is loaded again.
func (k *Keys) seen(h *etcdserverpb.ResponseHeader, index, before uint64) error {
	k.term.Store(h.RaftTerm)
	if index >= before && strconv.FormatUint(h.ClusterId, 16) == *k.cluster.Load() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stale && before <= k.tree.index { // else it has been loaded meanwhile
		k.o.Log.Error("store was replaced; reloading", "index", index, "was", before)
		k.stale = true
		k.rewatch()
		k.listen()
	}
	return errStale
}

var errStale = errors.New("the store was replaced")

func (k *Keys) isStale() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.stale
}

func (k *Keys) index() uint64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.tree.index
}

func (k *Keys) wakeWaiters() {
	left := k.waiters[:0]
	for _, w := range k.waiters {
		if w.index <= k.tree.index {
			close(w.done)
		} else {
			left = append(left, w)
		}
	}
	clear(k.waiters[len(left):])
	k.waiters = left
}

// reach waits until the tree is as new as an index.
func (k *Keys) reach(ctx context.Context, index uint64) error {
	k.mu.Lock()
	if k.tree.index >= index {
		k.mu.Unlock()
		return nil
	}
	w := &waiter{index, make(chan struct{})}
	k.waiters = append(k.waiters, w)
	k.mu.Unlock()
	k.listen()
	select {
	case <-w.done:
		return nil
	case <-k.ctx.Done():
		return ErrClosed
	case <-ctx.Done():
		k.mu.Lock()
		defer k.mu.Unlock()
		for i, x := range k.waiters {
			if x == w {
				k.waiters = append(k.waiters[:i], k.waiters[i+1:]...)
				break
			}
		}
		return context.Cause(ctx)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
