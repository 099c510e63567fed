package etcdv3

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// restarted is a store that other processes reach, and that can end and be started again on what it has kept.
type restarted struct {
	t       testing.TB
	at      store.Embedded
	running *store.Store
	clients *relay
}

func newRestarted(t testing.TB) *restarted {
	t.Helper()
	r := &restarted{t: t, at: store.Embedded{Dir: t.TempDir(), Listen: ports.Address(t)}}
	r.clients = newRelay(t, r.at.Listen)
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
	r.clients.open()
}

// stop ends the store. Its clients lose their connections first: etcd waits 7 s for their watches to end.
func (r *restarted) stop() {
	if r.running == nil {
		return
	}
	r.clients.cut()
	if err := r.running.Close(); err != nil {
		r.t.Error(err)
	}
	r.running = nil
}

// client is one of its own, as each agent's process has.
func (r *restarted) client() *clientv3.Client {
	r.t.Helper()
	return openAt(r.t, r.clients.listener.Addr().String())
}

// relay carries connections to a store until it is cut.
type relay struct {
	listener net.Listener
	mu       sync.Mutex
	closed   bool
	conns    []net.Conn
}

func newRelay(t testing.TB, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(from, to)
		}
	}()
	return r
}

func (r *relay) carry(from net.Conn, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		_ = from.Close()
		return
	}
	r.mu.Lock()
	r.conns = append(r.conns, from, to)
	if r.closed {
		_, _ = from.Close(), to.Close()
	}
	r.mu.Unlock()
	go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
	_, _ = io.Copy(from, to)
	_ = from.Close()
}

func (r *relay) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = false
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// withClients are agents with a client each.
func (r *restarted) withClients(s rendezvous.Settings, o Options, ids ...string) []*peer {
	r.t.Helper()
	var all []*peer
	for _, id := range ids {
		all = append(all, newPeer(r.t, r.client(), s, id, o))
	}
	return all
}

// TestStoreRestarts: a world outlives a store that is away for less than its leases.
func TestStoreRestarts(t *testing.T) {
	t.Parallel()
	r := newRestarted(t)
	all := r.withClients(settings(t, 3, 3), quick, "a", "b", "c", "d")
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
}

// TestNotRenewed: a lease that its agent could not renew for longer than it lasts, but that the store still has, is no
// loss, and is renewed from then on.
func TestNotRenewed(t *testing.T) {
	t.Parallel()
	c := open(t)
	all := crowd(t, c, settings(t, 2, 2), 2, Options{Lease: time.Hour})
	together(all, join(t))
	s := all[0].session
	never := make(chan *clientv3.LeaseKeepAliveResponse)
	close(never) // as the client does when the time is over without an answer
	s.post(func() { s.alive = never })
	for ctx := within(t); ; time.Sleep(10 * time.Millisecond) {
		renewed := make(chan bool, 1)
		if !s.post(func() { renewed <- s.alive != nil && s.alive != never }) {
			t.Fatal("the session has ended")
		}
		if <-renewed {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the lease is not renewed any more")
		}
	}
	select {
	case <-all[0].world.Changed:
		t.Error("the world has ended")
	default:
	}
}

// TestStoreSetUpAnew: agents find each other again on a store that has come back without their leases.
func TestStoreSetUpAnew(t *testing.T) {
	t.Parallel()
	r := newRestarted(t)
	all := r.withClients(settings(t, 3, 3), mortal, "a", "b", "c")
	together(all, join(t))
	checkWorld(t, 1, all...)
	r.stop()
	r.at.Dir = t.TempDir()
	r.start()
	changed(t, all...)
	together(all, join(t))
	checkWorld(t, 1, all...)
	together(all, func(p *peer) {
		if err := p.Finish(within(t)); err != nil {
			t.Errorf("%s: %v", p.id, err)
		}
	})
}
