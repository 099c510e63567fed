package proxystore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// Answers without the etcd.
//
// A client of torch 1.13 ends if it waits too long for an answer: for 5 minutes once its agent has formed a world,
// whatever its read_timeout is, since synchronize in torch/distributed/elastic/utils/store.py sets that limit and never
// sets it back. Torch 2.0 and 2.1 have the same dialect, and are answered as well. Agents whose workers train make two
// kinds of requests: they read the state of the rendezvous, and they write their heartbeat into it. While the etcd is
// away, both are answered from the latest state that was seen. Other nodes may have changed the state since: the agent
// reads that once its proxy reaches the etcd. A heartbeat that is not written is no loss, also without eviction: torch
// ignores one that is older than 15 s, and it has waited for longer. All other requests wait: to form a world, agents
// need the etcd.
//
// They are answered as late as possible. An agent that waits for an answer does not look at its workers, and so does
// not take it for a failure of its own if others leave the round as soon as the etcd is back. It therefore looks at its
// workers every 200 s. If one has failed, the agent reads the state, which takes as long, and ends 5 minutes after it
// has asked to leave the round: 8 to 12 minutes after the failure.

// answerPolls answers such requests of clients of the old dialect once they have waited for Options.Absence, until the
// engine ends.
func (w *watcher) answerPolls() {
	e := w.e
	for sleep(e.ctx, min(e.options.Absence/4, time.Second)) {
		if !w.polled() {
			continue
		}
		m, text, err := stateOfTraining(e.seen.state.Load())
		if err != nil {
			w.warnOnce("polls "+err.Error(), "an agent is not answered without the etcd, and may end", "error", err)
		} else if m != nil && w.answerQueued(m, text) {
			e.trouble.answered(e.options)
		}
	}
}

// polled reports whether an agent waits for an answer that the latest state may have.
func (w *watcher) polled() bool {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return slices.ContainsFunc(w.e.queue, func(o *operation) bool { return !o.over && w.ownNodeOf(o) != "" })
}

// ownNodeOf returns the node of the agent that waits for an answer about the state for too long, and "" for any other
// operation.
func (w *watcher) ownNodeOf(o *operation) string {
	if o.client.Dialect() != tcpstore.Old || time.Since(o.came) < w.e.options.Absence || len(o.q.Keys) != 1 ||
		o.q.Keys[0] != w.state {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if own := w.own[o.client]; own != nil {
		return own.name
	}
	return ""
}

// stateOfTraining returns what agents are answered that train by a state. It is nil without an error if the workers do
// not train.
//
// All participants have recent heartbeats, since torch would remove the others. No node waits: agents would stop their
// workers, and could form no world. A write that expects this state fails once the etcd is back, and the agent then
// reads the true one.
func stateOfTraining(state *[]byte) (m *membership, text []byte, err error) {
	if state == nil {
		return nil, nil, errors.New("the proxy has not seen the state of the rendezvous")
	}
	if string(*state) == noState {
		return nil, nil, nil
	}
	if m, err = parseMembership(*state); err != nil || !m.complete() || m.closed() {
		return nil, nil, err
	}
	m.waiting.items = nil
	for _, node := range m.participants.keys {
		if !m.setHeartbeat(node, time.Now().Add(heartbeatLifetime)) {
			return nil, nil, errState
		}
	}
	text, err = m.text()
	return m, text, err
}

// answerQueued answers what it can of the queue, and removes it from there. The first request stays, because it may be
// on its way to the etcd; that it was answered does not matter then. No request of a client overtakes another. It
// reports whether it has answered one.
func (w *watcher) answerQueued(m *membership, text []byte) (some bool) {
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	var rest []*operation
	waiting := map[tcpstore.Client]bool{}
	for i, o := range e.queue {
		var reply tcpstore.Reply
		if !o.over && !waiting[o.client] {
			reply = w.answerTo(o, m, text)
			waiting[o.client] = reply == nil
		}
		if reply != nil {
			o.client.Send(reply)
			e.finish(o)
			some = true
		}
		if o.queued = i == 0 || reply == nil; o.queued {
			rest = append(rest, o)
		} else {
			e.bytes -= size(o.q)
		}
	}
	e.queue = rest
	return some
}

// answerTo returns the reply to a request that is answered without the etcd, and nil to any other. A heartbeat is not
// written: the answer is that the agent has expected another state than this one, which has its heartbeat already.
func (w *watcher) answerTo(o *operation, m *membership, text []byte) tcpstore.Reply {
	if own := w.ownNodeOf(o); own == "" || !slices.Contains(names(m.participants.keys), own) {
		return nil
	}
	switch o.q.Op {
	case tcpstore.Wait:
		return tcpstore.Status(0)
	case tcpstore.Get:
		return tcpstore.Reply{}.Value(text)
	case tcpstore.CompareSet:
		if m.changesHeartbeatsOnly(o.q.Values[0], o.q.Values[1]) {
			return tcpstore.Reply{}.Value(text)
		}
	}
	return nil
}

// changesHeartbeatsOnly reports whether two states are of the same complete round with the same nodes in each list, and
// of the round and the participants of m.
func (m *membership) changesHeartbeatsOnly(from, to []byte) bool {
	a, err := parseMembership(from)
	b, err2 := parseMembership(to)
	if err != nil || err2 != nil || !a.complete() || a.outline() != b.outline() {
		return false
	}
	b.waiting = m.waiting // which is empty
	return b.outline() == m.outline()
}

// outline is a state without its heartbeats. The ranks of a complete round do not change.
func (m *membership) outline() string {
	nodes := func(all []any) []string { return slices.Sorted(slices.Values(names(all))) }
	return fmt.Sprintf("%d %t %t %q %q %q", m.round(), m.complete(), m.closed(), nodes(m.participants.keys),
		nodes(m.waiting.items), nodes(m.redundant.items))
}
