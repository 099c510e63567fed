package proxystore

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// killed ends a node's proxy as SIGKILL does: it writes nothing more.
func (n *node) killed(t *testing.T) {
	t.Helper()
	n.relay.cut()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = n.Engine.Close(ctx) // whether something was lost does not matter
}

func keysOf(t *testing.T, at, run string) int64 {
	t.Helper()
	r, err := client(t, at).Get(within(t), "/tegen/c10d/"+run+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return r.Count
}

func closes(m *membership) { m.fields.set("closed", true) }

// TestClosedEnds: the keys of a closed run are deleted with its last node, though the proxy of another was killed
// before, and no sooner.
func TestClosedEnds(t *testing.T) { ways(t, closedEndsWay) }

func closedEndsWay(t *testing.T, at string) {
	o := Options{Silence: 2 * time.Second, MinNodes: 1} // of which a proxy that ends has a part
	a, b := world(t, at, o)
	o.Run = a.run
	c := newNode(t, at, nodeB, o) // the agent in the place of b
	b.turns(t, at, 1)
	b.killed(t)
	a.change(closes)
	if err := a.Engine.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if m := c.state(); !m.closed() {
		t.Errorf("the run is gone while one of its nodes is there: %s", summary(m))
	}
	if err := c.Engine.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	equal(t, "keys that are left", keysOf(t, at, a.run), 0)
}

// TestOpenStays: the keys of a run that is not closed stay for the proxy of a node that may be cut off.
func TestOpenStays(t *testing.T) {
	t.Parallel()
	a, b := world(t, etcd(t), Options{Silence: short, MinNodes: 1})
	b.turns(t, etcd(t), 1)
	b.relay.cut()
	until(t, func() bool { return !a.state().has(nodeB) })
	if err := a.Engine.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	b.relay.open()
	if m := b.state(); m.closed() {
		t.Errorf("the run is closed: %s", summary(m))
	}
}

// TestAbandoned: a proxy that starts deletes the keys of a closed run whose proxies were killed, and of no other run.
func TestAbandoned(t *testing.T) { ways(t, abandonedWay) }

func abandonedWay(t *testing.T, at string) {
	for name, c := range map[string]struct {
		state       func(*membership)
		alive, gone bool
	}{
		"closed":            {closes, false, true},
		"closed and in use": {closes, true, false},
		"open":              {func(*membership) {}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{TTL: 6 * time.Second, Silence: short, MinNodes: 1, Run: newRun()}
			a := firstNode(t, at, o)
			a.change(c.state)
			if !c.alive {
				a.killed(t)
			}
			next := newPod(t, at, o).dial(t)
			got := next.swap(stateKey(o.Run), "", noState) // torch's first request
			if gone := got == noState; gone != c.gone {
				t.Errorf("the next agent reads %q", got)
			}
		})
	}
}
