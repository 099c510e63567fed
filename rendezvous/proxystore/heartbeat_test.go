package proxystore

import (
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// TestHeartbeat: a proxy sets the heartbeat of a participant ahead, but not if its agent is about to leave
// the round. Torch ignores a node with an old heartbeat, its own too, and may have skipped its own departure: with a
// new heartbeat the agent would join the round again that the others have left.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	p, agent := single(t, client(t, etcd(t)), Options{})
	key := stateKey(p.options.Run)
	for _, left := range []bool{false, true} {
		m, err := parseMembership([]byte(agent.get(key)))
		if err != nil {
			t.Fatal(err)
		}
		m.setHeartbeat(m.participants.keys[0], time.Now().Add(-20*time.Second))
		text, err := m.text()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.client.Put(within(t), p.keys.values+key, encode(text, false)); err != nil {
			t.Fatal(err)
		}
		if left {
			m.remove(func(any) bool { return true })
			if text, err = m.text(); err != nil {
				t.Fatal(err)
			}
			agent.swap(key, "an older state", string(text))
		}
		for range 3 {
			if err := p.watcher.tick(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		if m, err = parseMembership([]byte(agent.get(key))); err != nil {
			t.Fatal(err)
		}
		if _, stale := m.stale(nodeA, time.Now().Add(heartbeatLifetime/2)); stale != left {
			t.Errorf("the agent leaves: %t; its heartbeat is not in the future: %t", left, stale)
		}
	}
	rev := p.watcher.rev
	for range 3 {
		if err := p.watcher.tick(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "the revision of a state that has not changed", p.watcher.rev, rev)
}

// TestNoState: before the first state there is the value by which torch marks that there is none. It is no reason for
// a warning, neither when an agent writes it nor when a watcher reads it.
func TestNoState(t *testing.T) {
	t.Parallel()
	log, o := &said{}, Options{Run: newRun(), Silence: time.Hour, MinNodes: 1}
	o.Log = log.logger()
	p := newPodWith(t, client(t, etcd(t)), o)
	agent := p.dial(t)
	equal(t, "the state", agent.swap(stateKey(o.Run), "", noState), noState)
	if err := p.watcher.tick(within(t)); err != nil {
		t.Fatal(err)
	}
	equal(t, "warnings without a state", log.count("not evicted"), 0)
	agent.swap(stateKey(o.Run), noState, "unknown")
	equal(t, "warnings about an unknown state", log.count("not evicted"), 1)
}

// TestUnknownForm: a node that was evicted cannot join a state without heartbeats, and the log does not claim it.
func TestUnknownForm(t *testing.T) {
	t.Parallel()
	log := &said{}
	p, agent := single(t, client(t, etcd(t)), Options{Log: log.logger()})
	m := state(t, "2.6")
	m.remove(func(v any) bool { return nodeName(v) != nodeB })
	m.heartbeats.remove(func(any) bool { return true })
	text, err := m.text()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "something written", agent.add("/n", 1), 1)
	if _, err := p.client.Put(within(t), p.keys.values+stateKey(p.options.Run), encode(text, false)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.watcher.tick(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "messages that it joins", log.count("joins again"), 0)
	equal(t, "messages that it does not", log.count("cannot join"), 1)
}

// TestRemovesItself: the state tells the others of a round that an agent has removed itself because its heartbeat was
// old.
func TestRemovesItself(t *testing.T) {
	t.Parallel()
	a, _ := world(t, etcd(t), Options{Silence: time.Hour, MinNodes: 1})
	was, m := a.get(stateKey(a.run)), a.state()
	node := m.participants.keys[0].(*pyObject)
	m.remove(func(v any) bool { return nodeName(v) == nodeA })
	m.addToWaitList(node, time.Now())
	a.say(tcpstore.CompareSet, stateKey(a.run), was, string(textOf(t, m)))
	if got, err := parseMembership([]byte(a.value())); err != nil || !got.hasPlaceholder() {
		t.Errorf("the agent reads another state, %v", err)
	}
	if !a.state().hasPlaceholder() {
		t.Error("the others are not told")
	}
}
