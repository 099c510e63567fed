package proxystore

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// TestPolls: while the etcd is away for long, an agent of torch 1.13 that trains reads the state and writes its
// heartbeat, as it does all the time. What changes the round waits for the etcd, and what was answered meanwhile
// changes nothing.
func TestPolls(t *testing.T) {
	for name, silence := range map[string]time.Duration{"eviction": time.Hour, "no eviction": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			polls(t, silence)
		})
	}
}

func polls(t *testing.T, silence time.Duration) {
	a, b := world(t, etcd(t), Options{
		Silence: silence, MinNodes: 1, Patience: 10 * time.Millisecond, Attempt: 100 * time.Millisecond,
		Absence: 300 * time.Millisecond,
	})
	key := stateKey(a.run)
	a.peer = peer{t, oldConn{a.dialOld(t)}}
	a.change(func(*membership) {})
	a.relay.cut()
	for range 3 {
		a.change(func(*membership) {})
	}
	m := a.state()
	equal(t, "participants while the etcd is away", len(m.participants.keys), 2)
	for _, name := range []string{nodeA, nodeB} {
		if _, stale := m.stale(name, time.Now().Add(heartbeatLifetime/2)); stale {
			t.Errorf("%s will be stale for the agent", name)
		}
	}
	was := a.get(key)
	m.remove(a.id)
	without, err := m.text()
	if err != nil {
		t.Fatal(err)
	}
	a.say(tcpstore.CompareSet, key, was, string(without))
	time.Sleep(2 * a.options.Absence)
	b.change(func(*membership) {})
	a.relay.open()
	equal(t, "participants afterwards, as the etcd has them", len(a.answeredState().participants.keys), 2)
	equal(t, "participants for the other", len(b.state().participants.keys), 2)
	equal(t, "something else", a.add("/n", 1), 1)
}

// dialOld connects as torch 1.13 does.
func (p pod) dialOld(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// oldConn sends the numbers of torch 1.13, which has no VALIDATE, for operations in messages of one write each.
type oldConn struct{ net.Conn }

func (c oldConn) Write(b []byte) (int, error) {
	return c.Conn.Write(append([]byte{b[0] - 1}, b[1:]...))
}

// answeredState reads an answer that is a state.
func (n *node) answeredState() *membership {
	n.t.Helper()
	m, err := parseMembership([]byte(n.value()))
	if err != nil {
		n.t.Fatal(err)
	}
	return m
}

// TestHeartbeatsOnly: a change of anything else is no heartbeat.
func TestHeartbeatsOnly(t *testing.T) {
	for _, version := range []string{"1.13", "2.6"} {
		for name, test := range map[string]struct {
			change func(m *membership)
			only   bool
		}{
			"a heartbeat": {func(m *membership) { m.setHeartbeat(m.participants.keys[0], time.Now()) }, true},
			"a node leaves": {func(m *membership) {
				m.remove(func(v any) bool { return v == m.participants.keys[0] })
			}, false},
			"a node waits": {func(m *membership) {
				m.addToWaitList(m.placeholder(m.participants.keys[0]), time.Now())
			}, false},
			"closed":    {func(m *membership) { m.fields.set("closed", true) }, false},
			"no longer": {func(m *membership) { m.fields.set("complete", false) }, false},
			"the next":  {func(m *membership) { m.fields.set("round", m.round()+1) }, false},
		} {
			m := state(t, version)
			m.fields.set("complete", true)
			before, err := m.text()
			if err != nil {
				t.Fatal(err)
			}
			test.change(m)
			after, err := m.text()
			if err != nil {
				t.Fatal(err)
			}
			if slices.Equal(before, after) {
				t.Errorf("%s: nothing was changed", name)
			}
			equal(t, version+": "+name, changesHeartbeatsOnly(before, after), test.only)
		}
	}
	equal(t, "no state", changesHeartbeatsOnly([]byte(noState), []byte(noState)), false)
}
