// Package proxystore keeps the keys of a TCPStore in an etcd, so that a server beside each agent serves one run, and
// the run outlives the loss of any of them, and the absence of an etcd that keeps its data. In come the requests of a
// tcpstore.Server; out go the replies that torch's own server gives.
//
// Keys, all below <prefix>/<run>/ and on the run's lease, which every engine of the run keeps alive:
//
//	keys/<key>         a key of torch: a byte that says how it was written, then the value
//	sessions/<engine>  the number of the engine's last write, and what was answered to it
//	nodes/<node>       nothing; the engine of this node's agent writes it at every tick (see silence.go)
//	lease              the run's lease
//
// An engine carries out one request after the other, in the order in which they came: no operation of a pod overtakes
// its SETs, which have no reply. A write is one transaction, which holds only if the key and the engine's session are
// as they were, and writes both. So whoever repeats one after a lost answer finds in the session that it was carried
// out, and one that is still on its way can do no harm. Waits are watches.
//
// While the etcd is away requests wait and are repeated until it answers: torch's clients never connect again, so an
// error would end their agent. Clients since torch 2.2 limit the time of a WAIT only. Older ones, whose dialect is
// tcpstore.Old, limit that of every answer. A WAIT for keys that this engine has seen is therefore answered without the
// etcd, if that does not answer within Options.Patience. So are requests of agents of older torches that train, after
// Options.Absence (see polls.go). All other requests wait for the etcd.
//
// An etcd that comes back empty or older is a store that is empty (see era): what is asked for is answered from that,
// and what waits is refused, because what it waits for may have been written before.
package proxystore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// Options are what a proxy is told. The zero value of each but Run means its default.
type Options struct {
	Run      string        // the same for all proxies of a run
	Prefix   string        // of all keys, default /tegen/c10d
	TTL      time.Duration // how long a run is kept that no proxy renews, default DefaultTTL, at least 2 s
	Patience time.Duration // after which a WAIT for keys that were seen needs no answer of the etcd, default 2 s
	Attempt  time.Duration // how long a request to the etcd may take before it is repeated, at first; default 5 s
	Absence  time.Duration // after which agents of torch 1.13 to 2.1 that train need no etcd; default 200 s
	// Silence is the time after which a silent node is evicted from the run; 0 disables eviction. MinNodes is the
	// smallest number of nodes in a world. Stop ends the workers on this node. It is called if they still run Grace
	// after the eviction of another node; a Grace of 0 disables that. Restart starts the agent anew. It is called if
	// the agent's round has lost a node, or the agent was evicted, and it has not asked for the state for three times
	// Grace, not counting the time that the etcd was away.
	Silence  time.Duration
	MinNodes int
	Grace    time.Duration
	Stop     func()
	Restart  func()
	// Signalled reports whether this engine's agents were sent a signal that ends them. Those that then close the run
	// depart alone.
	Signalled func() bool
	Pending   int // bytes of requests that may wait, default 64 MiB
	Answer    int // bytes of values that one answer may have, default 64 MiB: as long as a request may be
	Log       *slog.Logger
}

// DefaultTTL is the default of Options.TTL, the longest that a gate grants. No proxy can renew the lease while the etcd
// runs and cannot be reached, so that the lease has to outlast that.
const DefaultTTL = 24 * time.Hour

// mostValue is how long a value or the pairs of a MULTI_SET may be in one transaction: by default etcd refuses requests
// of more than 1.5 MiB.
const mostValue = 1 << 20

// mostOps is how many keys a transaction reads or writes: by default etcd refuses more than 128 operations.
const mostOps = 100

// mostListed is how many keys are listed at a time.
const mostListed = 1000

// Engine is a tcpstore.Engine.
type Engine struct {
	client  *clientv3.Client
	options Options
	keys    keys
	ctx     context.Context // of all that is under way
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	queue   []*operation // the first is being carried out
	bytes   int
	clients map[tcpstore.Client][]*operation // those that were asked to wait, or may be

	// Only the goroutine that carries out requests uses session, seen and known. Others may read seen.state.
	session session
	seen    seen
	known   *era
	lease   lease
	trouble trouble
	era     atomic.Pointer[era]
	watcher *watcher
}

var _ tcpstore.Engine = (*Engine)(nil)

type keys struct{ values, sessions, session, lease string }

// visible is a key as its client knows it.
func (k keys) visible(stored []byte) string { return strings.TrimPrefix(string(stored), k.values) }

// operation is a request on its way.
type operation struct {
	client tcpstore.Client
	q      tcpstore.Request
	ctx    context.Context
	cancel context.CancelFunc
	came   time.Time
	over   bool // it was answered, or its client waits no longer; the engine's lock guards it
	queued bool // so this
}

// base is what all keys of the run begin with.
func (o Options) base() string {
	return strings.TrimSuffix(cmp.Or(o.Prefix, "/tegen/c10d"), "/") + "/" + url.PathEscape(o.Run) + "/"
}

// Permitted says why the etcd does not let its user have the run's keys. It writes nothing, and an etcd that does not
// answer is no reason. An engine would take that for an absence of the etcd, and wait.
func Permitted(ctx context.Context, c *clientv3.Client, o Options) error {
	key := o.base() + "lease"
	never := clientv3.Compare(clientv3.Version(key), "<", 0)
	_, err := c.Txn(ctx).If(never).Then(clientv3.OpPut(key, ""), clientv3.OpGet(key)).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		who := "user"
		if c.Username != "" {
			who = fmt.Sprintf("user %q", c.Username)
		}
		return fmt.Errorf("the etcd's %s may not read and write %s: grant its role readwrite with that prefix",
			who, o.base())
	case status.Code(err) == codes.PermissionDenied: // of a gate, which says it itself
		return errors.New(status.Convert(err).Message())
	}
	return nil
}

// New begins to serve a run. The client stays the caller's, and is to be closed after the engine.
func New(c *clientv3.Client, o Options) (*Engine, error) {
	o.Prefix, o.TTL = cmp.Or(o.Prefix, "/tegen/c10d"), cmp.Or(o.TTL, DefaultTTL)
	o.Patience, o.Attempt = cmp.Or(o.Patience, 2*time.Second), cmp.Or(o.Attempt, 5*time.Second)
	o.Absence = cmp.Or(o.Absence, 200*time.Second)
	o.Pending, o.Answer = cmp.Or(o.Pending, 64<<20), cmp.Or(o.Answer, 64<<20)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	switch {
	case o.Run == "":
		return nil, errors.New("the run has no id")
	case o.TTL < 2*time.Second:
		return nil, errors.New("a run's time to live must be at least 2 s")
	case o.Absence < 0:
		return nil, fmt.Errorf("the absence is %s. Use a positive duration, or 0 for the default", o.Absence)
	}
	base := o.base()
	sessions := base + "sessions/"
	e := &Engine{
		client: c, options: o, clients: map[tcpstore.Client][]*operation{},
		keys: keys{base + "keys/", sessions, sessions + rand.Text(), base + "lease"},
	}
	e.watcher = newWatcher(e, base)
	e.seen.stateKey = e.watcher.state
	e.seen.clear()
	e.changed.L = &e.mu
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.known = e.begin()
	e.era.Store(e.known)
	e.done.Go(e.run)
	e.done.Go(e.keepAlive)
	e.done.Go(e.watcher.run)
	e.done.Go(e.watcher.answerPolls)
	return e, nil
}

// waits says whether an operation may have to wait for what others write.
func waits(op tcpstore.Op) bool {
	switch op {
	case tcpstore.Wait, tcpstore.Get, tcpstore.MultiGet, tcpstore.Barrier:
		return true
	}
	return false
}

// Do is described at tcpstore.Engine.
func (e *Engine) Do(c tcpstore.Client, q tcpstore.Request) error {
	switch q.Op {
	case tcpstore.Validate:
		return nil
	case tcpstore.Ping:
		c.Send(tcpstore.Nonce(q.Number))
		return nil
	case tcpstore.CancelWait:
		e.stopWaiting(c, func(*operation) bool { return true })
		c.Send(tcpstore.Status(1))
		return nil
	case tcpstore.WatchKey, tcpstore.QueuePush, tcpstore.QueuePop, tcpstore.QueueLen:
		return refuse("operation", "%s is not served by a proxy: no agent of torch uses it", q.Op)
	}
	if c.Dialect() == tcpstore.Old { // whose client says nothing when it gives up waiting; it just goes on
		e.stopWaiting(c, func(o *operation) bool { return !o.queued || time.Since(o.came) > time.Second })
	}
	for _, v := range q.Values {
		if len(v) > mostValue {
			return refuse("length", "%s with a value of %d bytes: an etcd takes %d", q.Op, len(v), mostValue)
		}
	}
	e.watcher.recordRequest(c, q)
	if e.watcher.closesStopped(q) {
		c.Send(tcpstore.Reply{}.Value(q.Values[1]))
		return nil
	}
	e.watcher.adjust(c, &q)
	return e.enqueue(&operation{client: c, q: q, came: time.Now(), queued: true})
}

func refuse(reason, format string, args ...any) *tcpstore.Refusal {
	return &tcpstore.Refusal{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

func (e *Engine) enqueue(o *operation) error {
	o.ctx, o.cancel = context.WithCancel(e.ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bytes += size(o.q); e.bytes > e.options.Pending {
		e.bytes -= size(o.q)
		return refuse("memory", "requests that wait for the etcd take %d bytes", e.options.Pending)
	}
	e.queue = append(e.queue, o)
	if waits(o.q.Op) {
		e.clients[o.client] = append(e.clients[o.client], o)
	}
	e.changed.Broadcast()
	return nil
}

func size(q tcpstore.Request) int {
	n := 256 // what a request takes beside its bytes, about
	for _, k := range q.Keys {
		n += len(k) + 32
	}
	for _, v := range q.Values {
		n += len(v) + 32
	}
	return n
}

// Leave is described at tcpstore.Engine. What the client has written before is written nevertheless, as torch's server
// would have at once.
func (e *Engine) Leave(c tcpstore.Client) {
	e.stopWaiting(c, func(*operation) bool { return true })
	e.watcher.leave(c)
}

// stopWaiting ends those of a client's waits that is says.
func (e *Engine) stopWaiting(c tcpstore.Client, is func(*operation) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := slices.DeleteFunc(e.clients[c], func(o *operation) bool {
		stop := is(o)
		if stop {
			o.over = true
			o.cancel()
		}
		return stop
	})
	if e.clients[c] = left; len(left) == 0 {
		delete(e.clients, c)
	}
}

// answer sends the reply to a request, unless its client waits no longer.
func (e *Engine) answer(o *operation, r tcpstore.Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !o.over && r != nil {
		o.client.Send(r)
	}
	e.finish(o)
}

// finish forgets an operation; the lock is held.
func (e *Engine) finish(o *operation) {
	o.over = true
	o.cancel()
	if list := e.clients[o.client]; len(list) > 0 {
		if list = slices.DeleteFunc(list, func(other *operation) bool { return other == o }); len(list) == 0 {
			delete(e.clients, o.client)
		} else {
			e.clients[o.client] = list
		}
	}
}

// fail ends an operation without an answer, and its client's connection where that is refused and still waits.
func (e *Engine) fail(o *operation, err error) {
	e.mu.Lock()
	over := o.over || e.ctx.Err() != nil
	e.finish(o)
	e.mu.Unlock()
	var r *tcpstore.Refusal
	if errors.As(err, &r) && !over {
		o.client.Refuse(r)
	}
}

// run carries out one request after the other.
func (e *Engine) run() {
	if err := e.watcher.deleteAbandoned(); err != nil && e.ctx.Err() == nil {
		e.options.Log.Warn("checking whether the run has ended", "run", e.options.Run, "error", err)
	}
	for {
		o := e.next()
		if o == nil {
			return
		}
		if err := e.perform(o); err != nil {
			e.fail(o, err)
		}
		e.mu.Lock()
		o.queued = false
		e.queue[0], e.queue = nil, e.queue[1:]
		e.bytes -= size(o.q)
		e.changed.Broadcast()
		e.mu.Unlock()
	}
}

// next is nil once the engine ends.
func (e *Engine) next() *operation {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) == 0 && e.ctx.Err() == nil {
		e.changed.Wait()
	}
	if e.ctx.Err() != nil {
		return nil
	}
	return e.queue[0]
}

// perform returns an error where the client is to be cut off, or waits no longer, or the engine ends.
func (e *Engine) perform(o *operation) error {
	switch o.q.Op {
	case tcpstore.Check, tcpstore.Get, tcpstore.MultiGet, tcpstore.Wait:
		return e.read(o)
	case tcpstore.GetNumKeys, tcpstore.ListKeys:
		return e.look(o)
	case tcpstore.MultiSet:
		return e.setAll(o)
	}
	return e.write(o)
}

// Close waits until what clients have written is in the etcd, at most for the context's time, and ends the engine. It
// then takes up to a second to delete the session. The error says how many requests were lost.
func (e *Engine) Close(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changed.Broadcast()
	})
	defer stop()
	e.mu.Lock()
	for len(e.queue) > 0 && ctx.Err() == nil {
		e.changed.Wait()
	}
	left := len(e.queue)
	e.cancel()
	e.changed.Broadcast()
	e.mu.Unlock()
	e.done.Wait()
	if left > 0 {
		return fmt.Errorf("%d requests of this pod are not in the etcd: %w", left, context.Cause(ctx))
	}
	if e.session.rev > 0 { // nothing of it is on its way; it expires where this fails
		if err := e.leave(ctx); err != nil {
			e.options.Log.Debug("leaving the run", "run", e.options.Run, "error", err)
		}
	}
	return nil
}
