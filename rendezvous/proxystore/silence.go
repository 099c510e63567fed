package proxystore

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// Torch's agents notice that a node is lost when a worker fails, which a collective does after half an hour by default
// where the node's connections stay open, as they do when a machine loses its power or its network. The engines of a
// run notice it themselves. Each of them writes a key of its agent's node at every tick, and counts how many of its own
// ticks the other nodes' keys have not changed for. A node whose key stays the same for beats ticks is silent, and any
// engine evicts it from the state of torch's rendezvous (see membership): the agents of the other nodes then form the
// next world, as they do when a node joins.
//
// Only ticks that reached the etcd count, so an engine that cannot reach it evicts nobody, and an etcd that is away
// evicts nobody. After an absence an engine waits twice as long, because other engines may need longer to connect
// again. The eviction is one transaction. It holds only if the state and the silent node's key are as they were.

// beats is how many ticks of silence are a loss.
const beats = 8

// mostEvicted is how many nodes are evicted at a time, so that a transaction has fewer operations than etcd allows.
const mostEvicted = 50

// watcher looks after the nodes of one run.
type watcher struct {
	e      *Engine
	prefix string // of the keys that nodes write
	state  string // torch's key
	log    *slog.Logger
	off    bool // no node is watched, and none is evicted

	mu     sync.Mutex
	own    map[tcpstore.Client]*ownNode
	gone   map[string]bool // the nodes of clients that have left
	kept   map[string]bool // the nodes that have keys
	warned map[string]bool

	// Only the goroutine that ticks uses these. They hold in one era.
	era    *era
	heard  map[string]*beat // by the names of nodes
	last   time.Time        // of the latest tick that reached the etcd
	rev    int64            // of the state that was read last
	read   *membership
	ending int64     // the round that has lost a node
	since  time.Time // when that was seen first
}

// ownNode is that of an agent which is a client of this engine.
type ownNode struct {
	name   string
	node   *pyObject
	joined bool // it took part in the last state that its agent wrote
}

// beat is what was last seen of a node.
type beat struct {
	rev   int64 // of its key
	ticks int   // since that has changed
}

func newWatcher(e *Engine, base string) *watcher {
	return &watcher{
		e: e, prefix: base + "nodes/", state: stateKey(e.options.Run), log: e.options.Log, off: e.options.Silence <= 0,
		own: map[tcpstore.Client]*ownNode{}, gone: map[string]bool{}, warned: map[string]bool{},
	}
}

func (w *watcher) key(node string) string { return w.prefix + url.PathEscape(node) }

// pass sees a request before it is carried out. It learns from an agent's writes which node is that agent's. It removes
// from them the lost nodes of rounds that have ended, and puts back the participants that the agent has removed because
// of their heartbeats: no agent would notice, and of nodes with engines, engines decide which are lost.
func (w *watcher) pass(c tcpstore.Client, q *tcpstore.Request) {
	if w.off || q.Op != tcpstore.CompareSet || q.Keys[0] != w.state {
		return
	}
	m, err := parseMembership(q.Values[1])
	if err != nil {
		w.once("state", "silent nodes are not evicted", "error", err)
		return
	}
	older, err := parseMembership(q.Values[0])
	if err != nil { // the first agent expects no state
		older = nil
	}
	w.learn(c, m.beaten(older), m)
	restored := m.restore(older, func(name string) bool { return w.keeps(c, name) })
	if m.expired() || restored {
		if text, err := m.text(); err == nil {
			q.Values = [][]byte{q.Values[0], text}
		}
	}
}

// learn notes which node is that of a client.
func (w *watcher) learn(c tcpstore.Client, beaten []*pyObject, m *membership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(beaten) == 1 {
		name := nodeName(beaten[0])
		if o := w.own[c]; o == nil || o.name != name {
			w.own[c] = &ownNode{name: name, node: beaten[0]}
		}
	}
	if o := w.own[c]; o != nil {
		o.joined = slices.Contains(names(m.participants.keys), o.name)
	}
}

// keeps says whether a node that a client has removed is to stay: it has a key, and is not the client's own.
func (w *watcher) keeps(c tcpstore.Client, name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.own[c]
	return o != nil && o.name != name && w.kept[name]
}

// once logs a warning the first time.
func (w *watcher) once(what, text string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.warned[what] {
		w.warned[what] = true
		w.log.Warn(text, args...)
	}
}

// leave notes that the agent of a client has ended: torch's clients never connect again.
func (w *watcher) leave(c tcpstore.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.own[c]; o != nil {
		w.gone[o.name] = true
		delete(w.own, c)
	}
}

// nodes are those of this engine's agents, and those of agents that have ended.
func (w *watcher) nodes() (own []ownNode, gone map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.own {
		own = append(own, *o)
	}
	return own, maps.Clone(w.gone)
}

// run ticks until the engine ends.
func (w *watcher) run() {
	if w.off {
		return
	}
	ticks := time.NewTicker(w.e.options.Silence / beats)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-w.e.ctx.Done():
			return
		}
		if err := w.tick(w.e.ctx); err != nil {
			w.log.Debug("looking after the nodes of the run", "error", err)
		}
	}
}

// mostDeparture is how long an engine that ends may take to evict its nodes.
const mostDeparture = time.Second

// depart evicts the nodes of this engine before it ends, so that no other node waits for them.
func (w *watcher) depart(ctx context.Context) {
	if w.off {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mostDeparture)
	defer cancel()
	w.mu.Lock()
	for _, o := range w.own {
		w.gone[o.name] = true
	}
	clear(w.own)
	w.mu.Unlock()
	for range 5 { // agents write the state meanwhile
		_, gone := w.nodes()
		if len(gone) == 0 || ctx.Err() != nil {
			return
		}
		if err := w.tick(ctx); err != nil {
			w.log.Debug("leaving the run", "error", err)
		}
	}
}

// tick writes the keys of this engine's nodes, and checks those of all others.
func (w *watcher) tick(ctx context.Context) error {
	w.renew() // before the lease is read, which may be of a later era
	lease := w.e.lease.get()
	own, gone := w.nodes()
	if lease == 0 || len(own)+len(gone) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.e.options.Silence/2)
	defer cancel()
	if err := w.look(ctx, own, lease); err != nil {
		return err
	}
	if err := w.listen(ctx); err != nil {
		return err
	}
	if w.read == nil || w.read.closed() {
		w.forget(gone)
		return nil
	}
	if err := w.evict(ctx, lease, gone, true); err != nil {
		return err
	}
	if err := w.evict(ctx, lease, w.silent(), false); err != nil {
		return err
	}
	w.stop(own)
	return w.rejoin(ctx, own, lease)
}

// renew discards what was read in an era that has ended. An etcd that comes back empty or older uses the same revisions
// again, so that a comparison with an earlier revision proves nothing.
func (w *watcher) renew() {
	if now := w.e.era.Load(); now != w.era {
		w.era, w.heard, w.last, w.rev, w.read, w.ending = now, nil, time.Time{}, 0, nil, -1
	}
}

func (w *watcher) forget(gone map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range gone {
		delete(w.gone, name)
	}
}

// look writes the keys of this engine's nodes, and reads the state if it has changed.
func (w *watcher) look(ctx context.Context, own []ownNode, lease clientv3.LeaseID) error {
	var ops []clientv3.Op
	for _, o := range own {
		ops = append(ops, clientv3.OpPut(w.key(o.name), "", clientv3.WithLease(lease)))
	}
	at, floor := w.e.keys.values+w.state, w.era.rev.Load()
	r, err := w.e.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(at), "=", w.rev)).
		Then(ops...).Else(append(ops, clientv3.OpGet(at))...).Commit()
	if err != nil {
		return err
	}
	if w.e.heard(w.era, floor, r.Header); w.e.era.Load() != w.era {
		return errors.New("the etcd is empty or older than before")
	}
	if !r.Succeeded {
		w.rev, w.read = 0, nil
		if kvs := r.Responses[len(ops)].GetResponseRange().Kvs; len(kvs) > 0 {
			v := fromKVs(kvs)
			w.rev = v.rev
			if w.read, err = parseMembership(v.data); err != nil {
				w.once("state", "silent nodes are not evicted", "error", err)
			}
		}
	}
	return nil
}

// listen counts for how many ticks each node has been silent.
func (w *watcher) listen(ctx context.Context) error {
	r, err := w.e.client.Get(ctx, w.prefix, clientv3.WithRange(clientv3.GetPrefixRangeEnd(w.prefix)),
		clientv3.WithKeysOnly(), clientv3.WithLimit(mostListed))
	if err != nil {
		return err
	}
	now := time.Now()
	absent := now.Sub(w.last) > 2*w.e.options.Silence/beats
	w.last = now
	there := map[string]*beat{}
	for _, kv := range r.Kvs {
		name, err := url.PathUnescape(strings.TrimPrefix(string(kv.Key), w.prefix))
		if err != nil {
			continue
		}
		b := w.heard[name]
		switch {
		case absent:
			b = &beat{rev: kv.ModRevision, ticks: -beats}
		case b == nil || b.rev != kv.ModRevision:
			b = &beat{rev: kv.ModRevision}
		default:
			b.ticks++
		}
		there[name] = b
	}
	w.heard = there
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = map[string]bool{}
	for name := range there {
		w.kept[name] = true
	}
	return nil
}

// silent are the nodes that are lost.
func (w *watcher) silent() map[string]bool {
	all := map[string]bool{}
	for name, b := range w.heard {
		if b.ticks >= beats {
			all[name] = true
		}
	}
	return all
}

// evict removes nodes from the state, at most mostEvicted of them: the next tick evicts the others.
func (w *watcher) evict(ctx context.Context, lease clientv3.LeaseID, nodes map[string]bool, ended bool) error {
	if len(nodes) == 0 || w.read == nil || !ended && w.tooFew(nodes) {
		return nil
	}
	some := slices.Sorted(maps.Keys(nodes))
	some = some[:min(len(some), mostEvicted)]
	evicted := map[string]bool{}
	var there []string
	var conditions []clientv3.Cmp
	var then []clientv3.Op
	for _, name := range some {
		evicted[name] = true
		if w.read.has(name) {
			there = append(there, name)
		}
		key := w.key(name)
		then = append(then, clientv3.OpDelete(key))
		if !ended {
			conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(key), "=", w.heard[name].rev))
		}
	}
	if len(there) > 0 {
		w.read.evict(evicted)
	}
	held, err := w.write(ctx, lease, len(there) > 0, conditions, then)
	switch {
	case !held:
	case ended:
		w.forget(evicted)
		w.log.Info("the agent has ended: others form a world without it", "nodes", there)
	case len(there) > 0:
		w.log.Warn("evicted silent nodes: the others form a new world", "nodes", there,
			"silent", w.e.options.Silence.String())
	}
	return err
}

// tooFew reports whether a complete world needs some of its silent nodes, and logs it once. Such a world may continue
// when they come back.
func (w *watcher) tooFew(silent map[string]bool) bool {
	needed := slices.DeleteFunc(slices.Sorted(maps.Keys(silent)), func(name string) bool { return !w.read.has(name) })
	left, least := w.read.left(silent), w.e.options.MinNodes
	if len(needed) == 0 || !w.read.complete() || left >= least {
		return false
	}
	w.once("few "+strings.Join(needed, " "), "nodes are silent, and not evicted: too few would be left",
		"nodes", needed, "left", left, "minimum", least)
	return true
}

// stop has the workers of this engine's agents ended where those have had Grace to end them. Torch's agents wait for 30
// s, and a worker that handles SIGTERM does not do so while a collective waits for the node that was lost.
func (w *watcher) stop(own []ownNode) {
	if w.read == nil || w.e.options.Stop == nil || w.e.options.Grace <= 0 || !w.read.ending() {
		return
	}
	if w.ending != w.read.round() {
		w.ending, w.since = w.read.round(), time.Now()
	}
	takingPart := names(w.read.participants.keys)
	for _, o := range own {
		if slices.Contains(takingPart, o.name) && time.Since(w.since) >= w.e.options.Grace {
			w.e.options.Stop()
			return
		}
	}
}

// mostStale is how old the heartbeat of a node may be until its engine writes one. Agents do so each 5 s, and take each
// other for lost after 15 s, also where it was the etcd that was away.
const mostStale = 8 * time.Second

// rejoin has the nodes of this engine wait for the next round where others have evicted them: their agents do not
// notice it themselves, and would train on. Those that take part get a heartbeat if theirs is old.
func (w *watcher) rejoin(ctx context.Context, own []ownNode, lease clientv3.LeaseID) error {
	if w.read == nil || !w.read.complete() {
		return nil
	}
	var back []string
	refreshed := false
	for _, o := range own {
		if node, is := w.read.stale(o.name, time.Now().Add(-mostStale)); is {
			refreshed = w.read.beat(node, time.Now()) || refreshed
		}
		if o.joined && !w.read.has(o.name) {
			if !w.read.wait(o.node, time.Now()) {
				w.once("form", "others have evicted this node, and it cannot join again: the state has no heartbeats",
					"node", o.name)
				continue
			}
			back = append(back, o.name)
		}
	}
	if len(back) == 0 && !refreshed {
		return nil
	}
	held, err := w.write(ctx, lease, true, nil, nil)
	if held && len(back) > 0 {
		w.log.Warn("this node was silent and others have evicted it: it joins again", "nodes", back)
	}
	return err
}

// write commits what was made of the state that was read, if it is as it was.
func (w *watcher) write(
	ctx context.Context, lease clientv3.LeaseID, changed bool, conditions []clientv3.Cmp, then []clientv3.Op,
) (held bool, err error) {
	at := w.e.keys.values + w.state
	if changed {
		text, err := w.read.text()
		if err != nil {
			return false, err
		}
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(at), "=", w.rev))
		then = append(then, clientv3.OpPut(at, encode(text, false), clientv3.WithLease(lease)))
		w.rev, w.read = 0, nil // so that the next tick reads it
	}
	r, err := w.e.client.Txn(ctx).If(conditions...).Then(then...).Commit()
	return err == nil && r.Succeeded, err
}
