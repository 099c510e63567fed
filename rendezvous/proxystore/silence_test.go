package proxystore

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// short is a silence for tests. What holds for it holds for any.
const short = 400 * time.Millisecond

// node is an agent of torch at a proxy of its own, which a relay can cut off.
type node struct {
	peer
	pod
	relay *relay
	run   string
	name  string
	id    func(any) bool
}

// newNode starts a proxy, and writes a heartbeat of its agent.
func newNode(t *testing.T, at, name string, o Options) *node {
	t.Helper()
	r := newRelay(t, at)
	p := newPod(t, r.address, o)
	n := &node{peer: p.dial(t), pod: p, relay: r, run: o.Run, name: name}
	n.id = func(v any) bool { return nodeName(v) == name }
	n.change(func(*membership) {})
	return n
}

// change writes what is made of the state, with a heartbeat of the node.
func (n *node) change(of func(m *membership)) {
	n.t.Helper()
	for {
		was := n.get(stateKey(n.run))
		m, err := parseMembership([]byte(was))
		if err != nil {
			n.t.Fatal(err)
		}
		self := m.heartbeats.keys[slices.IndexFunc(m.heartbeats.keys, n.id)]
		of(m)
		if !m.setHeartbeat(self, time.Now()) {
			n.t.Fatal("the state has no heartbeat")
		}
		text, err := m.text()
		if err != nil {
			n.t.Fatal(err)
		}
		now, err := parseMembership([]byte(n.swap(stateKey(n.run), was, string(text))))
		if err != nil {
			n.t.Fatal(err)
		}
		if at := slices.IndexFunc(now.heartbeats.keys, n.id); at >= 0 &&
			stamp(now.heartbeats.values[at]) == stamp(m.heartbeats.values[slices.IndexFunc(m.heartbeats.keys, n.id)]) {
			return
		}
	}
}

func (n *node) state() *membership {
	n.t.Helper()
	m, err := parseMembership([]byte(n.get(stateKey(n.run))))
	if err != nil {
		n.t.Fatal(err)
	}
	return m
}

// world is a complete round of a and b.
func world(t *testing.T, at string, o Options) (a, b *node) {
	t.Helper()
	o.Run = newRun()
	return firstNode(t, at, o), newNode(t, at, nodeB, o)
}

// firstNode is a, of a complete round with b.
func firstNode(t *testing.T, at string, o Options) *node {
	t.Helper()
	m := state(t, "2.6")
	m.remove(func(v any) bool { return nodeName(v) == nodeC })
	text, err := m.text()
	if err != nil {
		t.Fatal(err)
	}
	first := newPod(t, at, o)
	first.dial(t).swap(stateKey(o.Run), "", string(text))
	a := newNode(t, at, nodeA, o)
	if err := first.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	return a
}

// turns waits until an engine has looked at the nodes so often.
func (n *node) turns(t *testing.T, at string, more int64) {
	t.Helper()
	c, key := client(t, at), n.watcher.key(n.name)
	written := func() int64 {
		r, err := c.Get(within(t), key)
		if err != nil || len(r.Kvs) == 0 {
			return 0
		}
		return r.Kvs[0].Version
	}
	until(t, func() bool { return written() > 0 })
	begin := written()
	until(t, func() bool { return written() >= begin+more })
}

// TestSilent: a node that cannot reach the etcd is evicted, and those that are left see a node that waits, until they
// have left the round. When it can reach the etcd again it waits for the next round itself.
func TestSilent(t *testing.T) { ways(t, silentWay) }

func silentWay(t *testing.T, at string) {
	a, b := world(t, at, Options{Silence: short, MinNodes: 1})
	b.turns(t, at, 1)
	b.relay.cut()
	until(t, func() bool { return !a.state().has(nodeB) })
	if m := a.state(); !m.hasPlaceholder() || m.remaining(nil) != 1 || !m.complete() {
		t.Fatalf("after b fell silent: %s", summary(m))
	}
	b.relay.open()
	until(t, func() bool { return a.state().has(nodeB) })
	if m := a.state(); len(m.participants.keys) != 1 || len(m.waiting.items) != 2 {
		t.Fatalf("after b came back: %s", summary(m))
	}
	a.change(func(m *membership) {
		m.remove(a.id)
		m.fields.set("round", m.round()+1)
		m.fields.set("complete", false)
	})
	if m := a.state(); m.hasPlaceholder() || len(m.waiting.items) != 1 || !m.has(nodeB) {
		t.Errorf("after a has left the round: %s", summary(m))
	}
}

// TestNeeded: a world that needs a silent node is left as it is.
func TestNeeded(t *testing.T) {
	t.Parallel()
	a, b := world(t, etcd(t), Options{Silence: short, MinNodes: 2})
	b.turns(t, etcd(t), 1)
	b.relay.cut()
	until(t, func() bool {
		a.watcher.mu.Lock()
		defer a.watcher.mu.Unlock()
		return a.watcher.warned["few "+nodeB]
	})
	a.turns(t, etcd(t), 2)
	a.change(func(m *membership) { m.remove(b.id) }) // as agents of torch do after 15 s
	if m := a.state(); !m.has(nodeB) || m.hasPlaceholder() {
		t.Errorf("b was evicted from a world of two that needs two: %s", summary(m))
	}
}

// TestFull: a world that has as many nodes as it needs and no room for more evicts a silent node for one that has come
// in its place, and all of them if none is left. Torch's agents have put the newcomer into the redundancy list.
func TestFull(t *testing.T) {
	t.Parallel()
	for _, lost := range []int{1, 2} {
		o := Options{Silence: short, MinNodes: 2, Run: newRun()}
		m := state(t, "2.6")
		isC := func(v any) bool { return nodeName(v) == nodeC }
		newcomer := m.heartbeats.keys[slices.IndexFunc(m.heartbeats.keys, isC)].(*pyObject)
		m.remove(isC)
		m.setHeartbeat(newcomer, time.Now())
		m.redundant.items = append(m.redundant.items, newcomer)
		text, err := m.text()
		if err != nil {
			t.Fatal(err)
		}
		newPod(t, etcd(t), o).dial(t).swap(stateKey(o.Run), "", string(text))
		a, b, c := newNode(t, etcd(t), nodeA, o), newNode(t, etcd(t), nodeB, o), newNode(t, etcd(t), nodeC, o)
		for _, n := range []*node{b, a}[:lost] {
			n.turns(t, etcd(t), 1)
			n.relay.cut()
		}
		until(t, func() bool { return !c.state().has(nodeB) })
		until(t, func() bool { m := c.state(); return lost == 1 && m.hasPlaceholder() || lost == 2 && !m.complete() })
		if m := c.state(); m.remaining(nil) != 3-lost {
			t.Errorf("%d of two are silent: %s", lost, summary(m))
		}
	}
}

// TestExposed: torch's agents see that a silent node is lost that its world needs, since they have to make room for one
// that comes in its place.
func TestExposed(t *testing.T) {
	t.Parallel()
	a, b := world(t, etcd(t), Options{Silence: short, MinNodes: 2})
	ahead := func(name string) bool { _, past := a.state().stale(name, time.Now().Add(time.Second)); return !past }
	until(t, func() bool { return ahead(nodeA) && ahead(nodeB) })
	b.relay.cut()
	until(t, func() bool { return !ahead(nodeB) })
	a.turns(t, etcd(t), 2)
	if !ahead(nodeA) || !a.state().has(nodeB) {
		t.Errorf("b is silent: %s", summary(a.state()))
	}
	b.relay.open()
	until(t, func() bool { return ahead(nodeB) })
}

// TestAllAway: an etcd that no node can reach for a while evicts none, though one can reach it again later than the
// other.
func TestAllAway(t *testing.T) {
	t.Parallel()
	a, b := world(t, etcd(t), Options{Silence: short, MinNodes: 1})
	b.turns(t, etcd(t), 1)
	a.relay.cut()
	b.relay.cut()
	time.Sleep(2 * short) // nothing shows that a node cannot write
	a.relay.open()
	a.turns(t, etcd(t), silentTicks/2)
	b.relay.open()
	b.turns(t, etcd(t), 2*silentTicks)
	if m := a.state(); !m.has(nodeA) || !m.has(nodeB) || m.hasPlaceholder() || len(m.waiting.items) > 0 {
		t.Errorf("after the etcd was away: %s", summary(m))
	}
}

// TestDepart: an agent that has ended is evicted at once, even from a world that needs it.
func TestDepart(t *testing.T) {
	t.Parallel()
	a, b := world(t, etcd(t), Options{Silence: time.Minute, MinNodes: 2})
	_ = b.Conn.Close()
	until(t, func() bool { // the proxy has seen it
		own, _ := b.watcher.nodes()
		return len(own) == 0
	})
	if err := b.pod.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if m := a.state(); m.has(nodeB) || !m.hasPlaceholder() {
		t.Errorf("after the agent of b has ended: %s", summary(m))
	}
	r, err := client(t, etcd(t)).Get(within(t), b.watcher.key(nodeB), clientv3.WithCountOnly())
	if err != nil || r.Count > 0 {
		t.Errorf("its key is still there: %v", err)
	}
}

// TestStoppedAgent: an agent that was sent a signal and closes the run departs alone, and the run continues. Without a
// signal it closes the run for all.
func TestStoppedAgent(t *testing.T) { ways(t, stoppedAgentWay) }

func stoppedAgentWay(t *testing.T, at string) {
	var signalled atomic.Bool
	a, b := world(t, at, Options{Silence: time.Minute, MinNodes: 2, Signalled: signalled.Load})
	closeRun := func(n *node) {
		t.Helper()
		was := n.get(stateKey(n.run))
		m, err := parseMembership([]byte(was))
		if err != nil {
			t.Fatal(err)
		}
		m.fields.set("closed", true)
		text, err := m.text()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "the answer, by which torch decides whether it has closed the run", n.swap(stateKey(n.run), was,
			string(text)), string(text))
	}
	signalled.Store(true)
	closeRun(b)
	if m := a.state(); m.closed() || !m.has(nodeB) {
		t.Fatalf("after b was stopped: %s", summary(m))
	}
	if err := b.pod.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if m := a.state(); m.closed() || m.has(nodeB) || !m.hasPlaceholder() {
		t.Fatalf("after the proxy of b has ended: %s", summary(m))
	}
	signalled.Store(false)
	closeRun(a)
	if m := a.state(); !m.closed() {
		t.Errorf("after a has closed the run: %s", summary(m))
	}
}

// TestStop: workers that still run some time after a node was evicted are to be ended, and those of a round that has
// lost none are not.
func TestStop(t *testing.T) {
	t.Parallel()
	var stopped, restarted atomic.Int64
	a, b := world(t, etcd(t), Options{
		Silence: short, MinNodes: 1, Grace: time.Millisecond, Stop: func() { stopped.Add(1) },
		Restart: func() { restarted.Add(1) },
	})
	a.turns(t, etcd(t), 2)
	if stopped.Load() > 0 {
		t.Error("workers of a whole world were ended")
	}
	b.relay.cut()
	until(t, func() bool { return stopped.Load() > 0 })
	if m := a.state(); !strings.Contains(summary(m), placeholderHost) {
		t.Errorf("workers were ended in %s", summary(m))
	}
	until(t, func() bool { return restarted.Load() > 0 }) // the agent does not join the next round
}

// crowd is a complete round of a and so many other nodes, each of which has written its key once.
func crowd(t *testing.T, at string, others int, o Options) *node {
	t.Helper()
	o.Run = newRun()
	m := state(t, "2.6")
	m.remove(func(v any) bool { return nodeName(v) != nodeA })
	template := m.participants.keys[0].(*pyObject)
	for i := range others {
		other := *template
		fields := *other.state.(*pyDict)
		fields.values = slices.Clone(fields.values)
		fields.set("pid", int64(1000+i))
		other.state = &fields
		m.participants.set(&other, int64(i+1))
		m.setHeartbeat(&other, time.Now())
	}
	text, err := m.text()
	if err != nil {
		t.Fatal(err)
	}
	first := newPod(t, at, o)
	first.dial(t).swap(stateKey(o.Run), "", string(text))
	for _, name := range names(m.participants.keys[1:]) { // before a can count its ticks
		if _, err := first.client.Put(within(t), first.watcher.key(name), ""); err != nil {
			t.Fatal(err)
		}
	}
	return newNode(t, at, nodeA, o)
}

// TestCrowd: more silent nodes than one transaction evicts are evicted by several, and all of them count when a proxy
// decides whether enough nodes remain.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const others = mostEvicted + 10
	t.Run("few needed", func(t *testing.T) {
		t.Parallel()
		a := crowd(t, etcd(t), others, Options{Silence: short, MinNodes: 1})
		until(t, func() bool { return len(a.state().participants.keys) == 1 })
	})
	t.Run("more needed", func(t *testing.T) {
		t.Parallel()
		a := crowd(t, etcd(t), others, Options{Silence: short, MinNodes: 2})
		until(t, func() bool {
			a.watcher.mu.Lock()
			defer a.watcher.mu.Unlock()
			return len(a.watcher.warned) > 0
		})
		a.turns(t, etcd(t), 2)
		if n := len(a.state().participants.keys); n != 1+others {
			t.Errorf("%d nodes of %d are left in a world that needs one node more than were heard of", n, 1+others)
		}
	})
}

// single is a proxy whose ticks only the test starts, and whose agent is the only node of its run.
func single(t *testing.T, c *clientv3.Client, o Options) (p pod, agent peer) {
	t.Helper()
	o.Run, o.Silence, o.MinNodes = newRun(), time.Hour, 1
	m := state(t, "2.6")
	m.remove(func(v any) bool { return nodeName(v) != nodeA })
	text, err := m.text()
	if err != nil {
		t.Fatal(err)
	}
	p = newPodWith(t, c, o)
	agent = p.dial(t)
	agent.swap(stateKey(o.Run), "", string(text))
	return p, agent
}

// TestSlowDeparture: a proxy deletes its session when it ends, even if the eviction of its nodes takes all of its time.
func TestSlowDeparture(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd(t)}, DialOptions: []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any,
			conn *grpc.ClientConn, next grpc.UnaryInvoker, options ...grpc.CallOption,
		) error {
			if slow.Load() && strings.HasSuffix(method, "/Range") { // only ticks send it
				<-ctx.Done()
			}
			return next(ctx, method, request, reply, conn, options...)
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p, _ := single(t, c, Options{})
	slow.Store(true)
	if err := p.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	r, err := client(t, etcd(t)).Get(within(t), p.options.base(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil || len(r.Kvs) > 0 {
		t.Errorf("%d keys of the run are left: %v, %v", len(r.Kvs), r.Kvs, err)
	}
}

// TestNewEra: what a watcher has read from an etcd does not hold once that etcd came back empty or older, where a
// revision may occur again.
func TestNewEra(t *testing.T) {
	t.Parallel()
	p, agent := single(t, client(t, etcd(t)), Options{})
	w := p.watcher
	tick := func() {
		t.Helper()
		if err := w.tick(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		tick()
	}
	if w.read == nil || w.rev == 0 || len(w.keys) != 1 {
		t.Fatalf("the watcher has read %v at revision %d, and %d keys", w.read, w.rev, len(w.keys))
	}
	p.lose(p.era.Load(), "a test")
	tick()
	if w.read != nil || w.rev != 0 || len(w.keys) > 0 {
		t.Errorf("in a new era the watcher has %v of revision %d, and %d keys", w.read, w.rev, len(w.keys))
	}
	equal(t, "the first count of the new era", agent.add("/n", 1), 1)
	tick()
	if len(w.keys) != 1 {
		t.Errorf("%d nodes have keys in the new era", len(w.keys))
	}
}

// TestOlderRevision: a watcher notices an etcd that has come back older although nobody else requests anything.
func TestOlderRevision(t *testing.T) {
	t.Parallel()
	p, _ := single(t, client(t, etcd(t)), Options{})
	before := p.era.Load()
	before.rev.Add(1 << 40) // what the etcd had before
	if err := p.watcher.tick(within(t)); err == nil {
		t.Error("a tick has succeeded")
	}
	if p.era.Load() == before {
		t.Error("the watcher has not noticed it")
	}
}

// TestOvertakenRound: no agent could reach the etcd for longer than their heartbeats are ahead. The first to be back
// takes all others for lost, and begins the next round alone. Those join it.
func TestOvertakenRound(t *testing.T) {
	t.Parallel()
	a, b := world(t, etcd(t), Options{Silence: short, MinNodes: 2})
	a.turns(t, etcd(t), 1)
	b.change(func(m *membership) {
		m.remove(a.id)
		m.fields.set("round", m.round()+1)
		m.fields.set("complete", false)
	})
	until(t, func() bool { return slices.ContainsFunc(a.state().waiting.items, a.id) })
}

// TestStuckAgent: an agent that asks for nothing is started anew if its round has lost a node or it was evicted itself,
// and is not put back into the wait list meanwhile. Any other is left alone.
func TestStuckAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		evicted   string // "" for nobody
		quiet     int
		restarted bool
	}{
		"a whole round":                  {"", 100, false},
		"a round that has lost a node":   {nodeB, 100, true},
		"the same, and the agent asks":   {nodeB, 1, false},
		"an agent that was evicted":      {nodeA, 100, true},
		"one that was evicted, and asks": {nodeA, 1, false},
	} {
		restarted := false
		w := newWatcher(&Engine{options: Options{
			Silence: 8 * time.Second, Grace: 10 * time.Second, Restart: func() { restarted = true },
			Log: slog.New(slog.DiscardHandler),
		}}, "/")
		w.read = state(t, "2.6")
		if c.evicted != "" {
			w.read.evict(map[string]bool{c.evicted: true})
		}
		w.restartStuck([]ownNode{{name: nodeA, joined: true, quiet: c.quiet}})
		equal(t, name+": started anew", restarted, c.restarted)
	}
}
