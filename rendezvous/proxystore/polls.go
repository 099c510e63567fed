package proxystore

import (
	"maps"
	"slices"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// Answers without the etcd.
//
// A client of torch 1.13 ends if it waits too long for an answer: for 5 minutes once its agent has formed a world,
// whatever its read_timeout is, since synchronize in torch/distributed/elastic/utils/store.py sets that limit and never
// sets it back. Agents whose workers train make two kinds of requests: they read the state of the rendezvous, and they
// write their heartbeat into it. While the etcd is away, both are answered from the latest state that was seen. Other
// nodes may have changed the state since: the agent reads that once its proxy reaches the etcd. A heartbeat that is not
// written is no loss, also without eviction: torch ignores one that is older than 15 s, and it has waited for longer.
// All other requests wait: to form a world, agents need the etcd.
//
// They are answered as late as possible. An agent that waits for an answer does not look at its workers, and so does
// not take it for a failure of its own if others leave the round as soon as the etcd is back.

// answerPolls answers such requests of clients of torch 1.13 once they have waited for Options.Absence, until the
// engine ends.
func (w *watcher) answerPolls() {
	e := w.e
	ticks := time.NewTicker(min(e.options.Absence/4, time.Second))
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-e.ctx.Done():
			return
		}
		state := e.seen.state.Load()
		if state == nil || !w.waitFor(e.options.Absence) {
			continue
		}
		if m, err := parseMembership(*state); err == nil && m.complete() && !m.closed() {
			w.answerQueued(m)
		}
	}
}

// waitFor reports whether the oldest request has waited for so long.
func (w *watcher) waitFor(d time.Duration) bool {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return len(w.e.queue) > 0 && time.Since(w.e.queue[0].came) >= d
}

// answerQueued answers what it can of the queue, and removes it from there. The first request stays, because it may be
// on its way to the etcd; that it was answered does not matter then. No request of a client overtakes another.
func (w *watcher) answerQueued(m *membership) {
	e := w.e
	for _, node := range m.participants.keys {
		m.setHeartbeat(node, time.Now().Add(heartbeatLifetime))
	}
	text, err := m.text()
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return
	}
	waiting := map[tcpstore.Client]bool{}
	answered := func(o *operation) bool {
		if o.over {
			return false
		}
		reply := w.answerTo(o, m, text)
		if reply == nil || waiting[o.client] {
			waiting[o.client] = true
			return false
		}
		o.client.Send(reply)
		e.finish(o)
		return true
	}
	answered(e.queue[0])
	rest := slices.DeleteFunc(e.queue[1:], func(o *operation) bool {
		remove := answered(o)
		if remove {
			o.queued = false
			e.bytes -= size(o.q)
		}
		return remove
	})
	e.queue = e.queue[:1+len(rest)]
}

// answerTo returns the reply to a request that is answered without the etcd, and nil to any other.
func (w *watcher) answerTo(o *operation, m *membership, text []byte) tcpstore.Reply {
	if o.client.Dialect() != tcpstore.Old || time.Since(o.came) < w.e.options.Absence || len(o.q.Keys) != 1 ||
		o.q.Keys[0] != w.state || !w.takesPart(o.client, m) {
		return nil
	}
	switch o.q.Op {
	case tcpstore.Wait:
		return tcpstore.Status(0)
	case tcpstore.Get:
		return tcpstore.Reply{}.Value(text)
	case tcpstore.CompareSet:
		if changesHeartbeatsOnly(o.q.Values[0], o.q.Values[1]) {
			return written(o.q, 0)
		}
	}
	return nil
}

// takesPart reports whether the node of a client's agent is a participant.
func (w *watcher) takesPart(c tcpstore.Client, m *membership) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.own[c]
	return o != nil && slices.Contains(names(m.participants.keys), o.name)
}

// changesHeartbeatsOnly reports whether two states are of the same complete round with the same nodes.
func changesHeartbeatsOnly(from, to []byte) bool {
	a, err := parseMembership(from)
	b, err2 := parseMembership(to)
	return err == nil && err2 == nil && a.complete() && b.complete() && a.closed() == b.closed() &&
		a.round() == b.round() && maps.Equal(a.places(), b.places())
}

// places returns the name of the list that each node is in. The ranks of a complete round do not change.
func (m *membership) places() map[string]string {
	all := map[string]string{}
	for list, nodes := range map[string][]any{
		"participants": m.participants.keys, "wait list": m.waiting.items, "redundancy list": m.redundant.items,
	} {
		for _, name := range names(nodes) {
			all[name] = list
		}
	}
	return all
}
