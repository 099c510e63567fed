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
// after one that is away for longer. Each has a client of its own.
func TestStoreRestarts(t *testing.T) {
	t.Parallel() // the store takes some seconds to end while agents watch
	r := newRestarted(t)
	s := rendezvous.Settings{RunID: "r", Min: 3, Max: 3, Join: time.Minute}
	o := quick
	o.Lease = 6 * time.Second
	var all []*peer
	for _, id := range []string{"a", "b", "c", "d"} {
		all = append(all, newPeer(t, r.client(), s, id, o))
	}
	all, spare := all[:3], all[3]
	together(all, join(t))
	checkWorld(t, 1, all...)

	r.stop()
	r.start()
	for _, p := range all {
		if _, err := p.client.Get(within(t), "x"); err != nil { // it serves
			t.Fatal(err)
		}
		select {
		case <-p.world.Changed:
			t.Error("the world has ended with a store that was away for a moment")
		default:
		}
	}
	if err := all[2].Leave(within(t)); err != nil { // which the others hear of, by watches of before
		t.Error(err)
	}
	changed(t, all[:2]...)
	all[2] = spare
	together(all, join(t))
	checkWorld(t, 2, all...)

	r.stop()
	changed(t, all...) // their leases are over, whether the store says so or not
	again := join(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		together(all, again)
	}()
	r.start()
	<-ended
	checkWorld(t, 3, all...)
	together(all, func(p *peer) {
		if err := p.Finish(within(t)); err != nil {
			t.Errorf("%s: %v", p.id, err)
		}
	})
}
