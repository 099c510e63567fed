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

// Eviction of silent nodes.
//
// Torch's agents notice a lost node when a worker fails. If the node has lost its power or its network, its connections
// stay open, and a collective fails after half an hour by default. The engines of a run notice the loss earlier. At
// every tick an engine writes a key of its agent's node. It also counts for how many of its own ticks the keys of the
// other nodes have not changed. A node whose key is the same for silentTicks ticks is silent. Any engine may evict it
// from the state of torch's rendezvous (see membership). The agents of the other nodes then form the next world, as
// they do when a node joins.
//
// Only ticks that reach the etcd count. An engine without a connection to the etcd therefore evicts no node, and no
// engine does while the etcd is away. After an absence an engine waits twice as long, because other engines may need
// longer to connect again. An eviction is one transaction. Its conditions are that the state and the keys of the silent
// nodes have not changed.

// silentTicks is the number of ticks after which a node whose key has not changed is silent.
const silentTicks = 8

// mostEvicted is the largest number of nodes in one eviction: etcd limits the operations of a transaction.
const mostEvicted = 50

// watcher evicts the silent nodes of one run.
type watcher struct {
	e      *Engine
	prefix string // of the keys that nodes write
	state  string // torch's key
	log    *slog.Logger
	off    bool // eviction is disabled

	mu       sync.Mutex
	own      map[tcpstore.Client]*ownNode
	ended    map[string]bool // nodes whose clients have disconnected
	withKeys map[string]bool // nodes that have keys
	warned   map[string]bool // warnings that were logged

	// Only the goroutine that runs tick uses the following fields. They are valid in one era.
	era       *era
	keys      map[string]*nodeKey // by the names of nodes
	lastTick  time.Time           // the latest that reached the etcd
	rev       int64               // of the state that was read last
	read      *membership
	lostRound int64     // the latest round that has lost a node
	lostSince time.Time // when this engine noticed it
}

// ownNode is the node of an agent that is a client of this engine.
type ownNode struct {
	name   string
	node   *pyObject
	joined bool // it took part in the last state that its agent wrote
	quiet  int  // ticks since its agent has asked for the state
}

// nodeKey is the key of a node at the latest tick.
type nodeKey struct {
	rev   int64 // its mod revision
	ticks int   // since rev has changed
}

// noState is what torch's agents write if there is no state.
const noState = "Y2FuaW1hZGFt"

// unknownForm is what does not work if the form of the state is unknown.
const unknownForm = "silent nodes are not evicted, and agents are not answered without the etcd"

func newWatcher(e *Engine, base string) *watcher {
	return &watcher{
		e: e, prefix: base + "nodes/", state: stateKey(e.options.Run), log: e.options.Log, off: e.options.Silence <= 0,
		own: map[tcpstore.Client]*ownNode{}, ended: map[string]bool{}, warned: map[string]bool{},
	}
}

func (w *watcher) key(node string) string { return w.prefix + url.PathEscape(node) }

// adjust records the node of an agent that writes the state. Unless eviction is disabled, it also changes what is
// written: it removes the placeholders of rounds that have ended, and puts back participants that the agent has removed
// because their heartbeats are old. The other agents would not notice that, and only engines decide which nodes are
// lost. An agent that removes itself for that reason gets a placeholder.
func (w *watcher) adjust(c tcpstore.Client, q *tcpstore.Request) {
	if q.Op != tcpstore.CompareSet || q.Keys[0] != w.state || string(q.Values[1]) == noState {
		return
	}
	m, err := parseMembership(q.Values[1])
	if err != nil {
		w.warnOnce("state", unknownForm, "error", err)
		return
	}
	older, err := parseMembership(q.Values[0])
	if err != nil { // the first agent expects no state
		older = nil
	}
	w.recordOwnNode(c, m.withNewHeartbeats(older), m)
	if w.off {
		return
	}
	changed := m.restore(older, func(name string) bool { return w.mustStay(c, name) })
	changed = m.replaceLeaver(older, w.nameOf(c)) || changed
	if m.removeExpired() || changed {
		if text, err := m.text(); err == nil {
			q.Values = [][]byte{q.Values[0], text}
		}
	}
}

// closesStopped reports whether a request closes the run because its agent was sent a signal. The agent of torch 2.6
// does so, and the agents of all other nodes would end. Such a request is answered as if it had been carried out, since
// the agent repeats it otherwise, and changes nothing: depart evicts the node. Closing changes no other field.
func (w *watcher) closesStopped(q tcpstore.Request) bool {
	if q.Op != tcpstore.CompareSet || q.Keys[0] != w.state || w.e.options.Signalled == nil ||
		!w.e.options.Signalled() {
		return false
	}
	m, err := parseMembership(q.Values[1])
	if err != nil || !m.closed() {
		return false
	}
	if older, err := parseMembership(q.Values[0]); err == nil && older.closed() {
		return false
	}
	w.log.Info("the agent was sent a signal and closes the run: the run continues for the other nodes")
	return true
}

// recordOwnNode records the node of a client: the only one whose heartbeat the client has changed.
func (w *watcher) recordOwnNode(c tcpstore.Client, changed []*pyObject, m *membership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(changed) == 1 {
		name := nodeName(changed[0])
		if o := w.own[c]; o == nil || o.name != name {
			w.own[c] = &ownNode{name: name, node: changed[0]}
		}
	}
	if o := w.own[c]; o != nil {
		o.joined = slices.Contains(names(m.participants.keys), o.name)
	}
}

// nameOf returns the node of a client, "" if it is not known.
func (w *watcher) nameOf(c tcpstore.Client) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.own[c]; o != nil {
		return o.name
	}
	return ""
}

// mustStay reports whether a node that a client has removed stays in the state: it has a key, and is another node.
func (w *watcher) mustStay(c tcpstore.Client, name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.own[c]
	return o != nil && o.name != name && w.withKeys[name]
}

// warnOnce logs a warning unless it was logged before.
func (w *watcher) warnOnce(id, text string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.warned[id] {
		w.warned[id] = true
		w.log.Warn(text, args...)
	}
}

// leave records that the agent of a client has ended. Torch's clients never connect again.
func (w *watcher) leave(c tcpstore.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.own[c]; o != nil {
		w.ended[o.name] = true
		delete(w.own, c)
	}
}

// nodes returns the nodes of this engine's agents, and those of agents that have ended.
func (w *watcher) nodes() (own []ownNode, ended map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.own {
		own = append(own, *o)
	}
	return own, maps.Clone(w.ended)
}

// run ticks until the engine ends.
func (w *watcher) run() {
	if w.off {
		return
	}
	ticks := time.NewTicker(w.e.options.Silence / silentTicks)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-w.e.ctx.Done():
			return
		}
		if err := w.tick(w.e.ctx); err != nil {
			w.log.Debug("checking the nodes of the run", "error", err)
		}
	}
}

// tick writes the keys of this engine's nodes, and checks those of all others.
func (w *watcher) tick(ctx context.Context) error {
	w.discardOldEra() // before the lease is read, which may be of a later era
	lease := w.e.lease.get()
	own, ended := w.nodes()
	if lease == 0 || len(own)+len(ended) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.e.options.Silence/2)
	defer cancel()
	if err := w.putKeysGetState(ctx, own, lease); err != nil {
		return err
	}
	if err := w.countSilentTicks(ctx); err != nil {
		return err
	}
	w.countQuietTicks()
	if w.read == nil || w.read.closed() { // which evicts nobody, so that these keys would stay
		var keys []clientv3.Op
		for name := range ended {
			keys = append(keys, clientv3.OpDelete(w.key(name)))
		}
		_, err := w.write(ctx, lease, false, nil, keys)
		w.forgetEnded(ended)
		return err
	}
	if err := w.evict(ctx, lease, ended, true); err != nil {
		return err
	}
	if err := w.evict(ctx, lease, w.silent(), false); err != nil {
		return err
	}
	w.stopWorkers(own)
	w.restartStuck(own)
	return w.rejoin(ctx, own, lease)
}

// discardOldEra discards what was read in an era that has ended. An etcd that comes back empty or older uses the same
// revisions again, so that an equal revision does not prove an equal value.
func (w *watcher) discardOldEra() {
	if now := w.e.era.Load(); now != w.era {
		w.era, w.keys, w.lastTick, w.rev, w.read, w.lostRound = now, nil, time.Time{}, 0, nil, -1
	}
}

// forgetEnded discards ended nodes that need no eviction any more.
func (w *watcher) forgetEnded(nodes map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.ended, func(name string, _ bool) bool { return nodes[name] })
}

// putKeysGetState writes the keys of this engine's nodes, and reads the state if it has changed.
func (w *watcher) putKeysGetState(ctx context.Context, own []ownNode, lease clientv3.LeaseID) error {
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
			if string(v.data) == noState {
				return nil
			}
			if w.read, err = parseMembership(v.data); err != nil {
				w.warnOnce("state", unknownForm, "error", err)
			}
		}
	}
	return nil
}

// countSilentTicks counts for how many ticks the key of each node has not changed.
func (w *watcher) countSilentTicks(ctx context.Context) error {
	r, err := w.e.client.Get(ctx, w.prefix, clientv3.WithRange(clientv3.GetPrefixRangeEnd(w.prefix)),
		clientv3.WithKeysOnly(), clientv3.WithLimit(mostListed))
	if err != nil {
		return err
	}
	now := time.Now()
	absent := now.Sub(w.lastTick) > 2*w.e.options.Silence/silentTicks
	w.lastTick = now
	there := map[string]*nodeKey{}
	for _, kv := range r.Kvs {
		name, err := url.PathUnescape(strings.TrimPrefix(string(kv.Key), w.prefix))
		if err != nil {
			continue
		}
		b := w.keys[name]
		switch {
		case absent:
			b = &nodeKey{rev: kv.ModRevision, ticks: -silentTicks}
		case b == nil || b.rev != kv.ModRevision:
			b = &nodeKey{rev: kv.ModRevision}
		default:
			b.ticks++
		}
		there[name] = b
	}
	w.keys = there
	w.mu.Lock()
	defer w.mu.Unlock()
	w.withKeys = map[string]bool{}
	for name := range there {
		w.withKeys[name] = true
	}
	return nil
}

// silent returns all silent nodes.
func (w *watcher) silent() map[string]bool {
	all := map[string]bool{}
	for name, b := range w.keys {
		if b.ticks >= silentTicks {
			all[name] = true
		}
	}
	return all
}

// evict removes nodes from the state, at most mostEvicted of them: the next tick evicts the others.
func (w *watcher) evict(ctx context.Context, lease clientv3.LeaseID, nodes map[string]bool, ended bool) error {
	if len(nodes) == 0 || w.read == nil {
		return nil
	}
	if !ended && w.tooFew(nodes) {
		return w.expose(ctx, lease, nodes)
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
			conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(key), "=", w.keys[name].rev))
		}
	}
	if len(there) > 0 {
		w.read.evict(evicted)
	}
	held, err := w.write(ctx, lease, len(there) > 0, conditions, then)
	switch {
	case !held:
	case ended:
		w.forgetEnded(evicted)
		w.log.Info("evicted the nodes of agents that have ended", "nodes", there)
	case len(there) > 0:
		w.log.Warn("evicted silent nodes: the others form a new world", "nodes", there,
			"silent", w.e.options.Silence.String())
	}
	return err
}

// expose ends the heartbeats that keep silent participants in the state. Torch's agents then ignore them after 15 s, so
// that a node that takes the place of one can wait for the next round.
func (w *watcher) expose(ctx context.Context, lease clientv3.LeaseID, silent map[string]bool) error {
	now, changed := time.Now(), false
	for _, node := range w.read.participants.keys {
		if _, past := w.read.stale(nodeName(node), now); silent[nodeName(node)] && !past {
			changed = w.read.setHeartbeat(node, now) || changed
		}
	}
	if !changed {
		return nil
	}
	_, err := w.write(ctx, lease, true, nil, nil)
	return err
}

// tooFew reports whether a complete world needs some of its silent nodes, and logs it once. Such a world may continue
// when they come back, unless none of its nodes is left.
func (w *watcher) tooFew(silent map[string]bool) bool {
	needed := slices.DeleteFunc(slices.Sorted(maps.Keys(silent)), func(name string) bool { return !w.read.has(name) })
	remaining, least := w.read.remaining(silent), w.e.options.MinNodes
	allSilent := !slices.ContainsFunc(w.read.participants.keys, func(n any) bool { return !silent[nodeName(n)] })
	if len(needed) == 0 || !w.read.complete() || remaining >= least || allSilent {
		return false
	}
	w.warnOnce("few "+strings.Join(needed, " "), "nodes are silent but not evicted: too few nodes would remain",
		"nodes", needed, "remaining", remaining, "minimum", least)
	return true
}

// heartbeatLifetime is how far in the future a heartbeat is that an engine writes. Without it agents write one every
// 5 s, and ignore a participant without one for 15 s, even if the reason is that the etcd was away. The first agent
// that read the state afterwards would count fewer participants than the others, and could have a rank beyond its size.
// It has an end because engines do not evict where all of them were lost, or where only the lost ones evict: torch then
// does.
const heartbeatLifetime = 2 * time.Minute

// rejoin adds nodes of this engine that others have evicted to the wait list. Their agents do not notice the eviction,
// and would continue to train, also while the others form the next round. The heartbeat of a participant of a complete
// round is set to a time in the future: only engines decide which nodes are lost.
func (w *watcher) rejoin(ctx context.Context, own []ownNode, lease clientv3.LeaseID) error {
	if w.read == nil {
		return nil
	}
	var back []string
	refreshed := false
	for _, o := range own {
		if !o.joined { // its agent leaves the round, or is about to join the next one
			continue
		}
		if node, is := w.read.stale(o.name, time.Now().Add(heartbeatLifetime/2)); is && w.read.complete() {
			refreshed = w.read.setHeartbeat(node, time.Now().Add(heartbeatLifetime)) || refreshed
		}
		if grace := w.e.options.Grace; !w.read.has(o.name) && (grace <= 0 || w.quietFor(o) < grace) {
			if !w.read.addToWaitList(o.node, time.Now()) {
				w.warnOnce("form", "others have evicted this node, and it cannot join: the state has no heartbeats",
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
		w.log.Warn("others have evicted this node because it was silent: it joins again", "nodes", back)
	}
	return err
}

// write commits the changes of the state that was read, if nothing else has changed it since.
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
