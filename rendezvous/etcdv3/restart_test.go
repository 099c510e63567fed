package etcdv3

import (
	"net"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/store"
)

// restarted is a store that other processes reach, and that can end and be started again on what it has kept.
type restarted struct {
	t       testing.TB
	at      store.Embedded
	running *store.Store
}

func newRestarted(t testing.TB) *restarted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &restarted{t: t, at: store.Embedded{Dir: t.TempDir(), Listen: l.Addr().String()}}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *restarted) start() {
	r.t.Helper()
	var err error
	if r.running, err = r.at.Open(within(r.t)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *restarted) stop() {
	if r.running == nil {
		return
	}
	if err := r.running.Close(); err != nil {
		r.t.Error(err)
	}
	r.running = nil
}

// client is one of its own, as each agent's process has.
func (r *restarted) client() *clientv3.Client {
	r.t.Helper()
	s, err := store.External{Endpoints: []string{r.at.Listen}}.Open(within(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s.Client
}

// TestStoreRestarts: a world outlives a store that is away for less than its leases, and agents find each other again
// after one that is away for longer; those that wait go on waiting.
func TestStoreRestarts(t *testing.T) {
	t.Parallel() // the store takes some seconds to end while agents watch
	r := newRestarted(t)
	s := rendezvous.Settings{RunID: "r", Min: 2, Max: 3, Join: time.Minute, LastCall: time.Second}
	o := quick
	o.Lease = 3 * time.Second
	a, b := newPeer(t, r.client(), s, "a", o), newPeer(t, r.client(), s, "b", o)
	together([]*peer{a, b}, join(t))
	checkWorld(t, 1, a, b)

	r.stop()
	r.start()
	c := newPeer(t, r.client(), s, "c", o)
	if _, err := c.client.Get(within(t), "x"); err != nil { // it serves
		t.Fatal(err)
	}
	select {
	case <-a.world.Changed:
		t.Error("the world has ended with a store that was away for a moment")
	default:
	}

	joining := make(chan struct{}) // while the world is at work, which ends for it
	go func() {
		defer close(joining)
		join(t)(c)
	}()
	back(t, a, b)
	<-joining
	checkWorld(t, 2, a, b, c)

	r.stop()
	changed(t, a, b, c) // their leases are over, whether the store says so or not
	again := join(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		together([]*peer{a, b, c}, again)
	}()
	r.start()
	<-ended
	if a.world.Version < 3 {
		t.Errorf("version %d after version 2", a.world.Version)
	}
	checkWorld(t, a.world.Version, a, b, c)
	together([]*peer{a, b, c}, func(p *peer) {
		if err := p.Finish(within(t)); err != nil {
			t.Errorf("%s: %v", p.id, err)
		}
	})
}
