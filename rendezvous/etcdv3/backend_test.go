package etcdv3

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/store"
)

// shared is the server of all tests, which have runs of their own: closing an embedded etcd takes seconds. It is
// reached as one elsewhere is: hundreds of watches at a time are too much for the channels of an in-process client,
// whose two ends then wait for each other for ever.
var shared struct {
	once     sync.Once
	endpoint string
	stop     func()
	err      error
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil { // they wait, and compute little
		panic(err)
	}
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

func startShared() {
	dir, err := os.MkdirTemp("", "tegen-etcd-")
	if err != nil {
		shared.err = err
		return
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel = dir, "panic"
	local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{local}, []url.URL{local}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{local}, []url.URL{local}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		shared.err = err
		return
	}
	shared.stop = func() {
		server.Close()
		_ = os.RemoveAll(dir)
	}
	select {
	case <-server.Server.ReadyNotify():
		shared.endpoint = server.Clients[0].Addr().String()
	case <-time.After(time.Minute):
		shared.err = errors.New("the store does not start")
	}
}

// open returns a client of the server for one test.
func open(t testing.TB) *clientv3.Client {
	t.Helper()
	shared.once.Do(startShared)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return openAt(t, shared.endpoint)
}

// openAt returns a client of the server at an endpoint, which a busy machine may let wait.
func openAt(t testing.TB, endpoint string) *clientv3.Client {
	t.Helper()
	for ctx := within(t); ; {
		c, err := store.External{Endpoints: []string{endpoint}}.Open(ctx)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c.Client
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// peer is an agent of a test, and what it was given last.
type peer struct {
	*Backend
	t     testing.TB
	id    string
	world rendezvous.World
	err   error
}

func newPeer(t testing.TB, c *clientv3.Client, s rendezvous.Settings, id string, o Options) *peer {
	t.Helper()
	if o.Listen == nil { // the lease alone
		o.Listen = func() (net.Listener, error) { return nil, errors.New("no neighbours") }
	}
	b, err := New(c, s, rendezvous.Agent{ID: id, Host: "host-" + id, Role: "trainer", Workers: 2}, o)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{Backend: b, t: t, id: id}
	t.Cleanup(func() { _ = b.Close() })
	return p
}

// within is a deadline so that nothing hangs.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// together runs one call per peer at the same time.
func together(peers []*peer, call func(*peer)) {
	var g sync.WaitGroup
	for _, p := range peers {
		g.Go(func() { call(p) })
	}
	g.Wait()
}

func join(t testing.TB) func(*peer) {
	ctx := within(t)
	return func(p *peer) {
		if p.world, p.err = p.Join(ctx); p.err != nil {
			t.Errorf("%s: %v", p.id, p.err)
		}
	}
}

// checkWorld: all peers are in one world, of that version, and have their places in it.
func checkWorld(t testing.TB, version int, peers ...*peer) {
	t.Helper()
	taken := make([]string, len(peers))
	for _, p := range peers {
		w := p.world
		if w.Rank < 0 || w.Rank >= len(peers) || taken[w.Rank] != "" {
			t.Fatalf("%s has rank %d of %d", p.id, w.Rank, len(peers))
		}
		taken[w.Rank] = p.id
	}
	for _, p := range peers {
		want := rendezvous.World{
			Version: version, Rank: p.world.Rank, Size: len(peers), Base: 2 * p.world.Rank, Total: 2 * len(peers),
			RoleBase: 2 * p.world.Rank, RoleTotal: 2 * len(peers), MasterAddr: "host-" + taken[0],
		}
		if diff := cmp.Diff(want, p.world, cmpopts.IgnoreFields(rendezvous.World{}, "Changed",
			"MasterPort")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.id, diff)
		}
		if p.world.MasterPort == 0 || p.world.MasterPort != peers[0].world.MasterPort {
			t.Errorf("%s: port %d", p.id, p.world.MasterPort)
		}
	}
}

func changed(t testing.TB, peers ...*peer) {
	t.Helper()
	for _, p := range peers {
		select {
		case <-p.world.Changed:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s still works in version %d", p.id, p.world.Version)
		}
	}
}

// runs are those of tests: one that runs again (-count) must not meet the run that it has closed.
var runs struct {
	of sync.Map // by test
	n  atomic.Int64
}

// runID is of a test's own run.
func runID(t testing.TB) string {
	if id, ok := runs.of.Load(t); ok {
		return id.(string)
	}
	id, _ := runs.of.LoadOrStore(t, fmt.Sprintf("%s.%d", t.Name(), runs.n.Add(1)))
	return id.(string)
}

// settings are those of a test's own run.
func settings(t testing.TB, least, most int) rendezvous.Settings {
	return rendezvous.Settings{RunID: runID(t), Min: least, Max: most, Join: time.Minute}
}

func crowd(t testing.TB, c *clientv3.Client, s rendezvous.Settings, n int, o Options) []*peer {
	var all []*peer
	for i := range n {
		all = append(all, newPeer(t, c, s, fmt.Sprintf("%s-%d", s.RunID, i), o))
	}
	return all
}

// TestWorlds: as many as are needed form a world, ask for another, and finish together.
func TestWorlds(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			c, s := open(t), settings(t, n, n)
			s.LastCall = time.Hour
			all := crowd(t, c, s, n, Options{})
			together(all, join(t))
			checkWorld(t, 1, all...)
			again := join(t)
			together(all, func(p *peer) {
				if p != all[0] { // which asks for a restart
					changed(t, p)
				}
				again(p)
			})
			checkWorld(t, 2, all...)
			together(all, func(p *peer) {
				if err := p.Finish(within(t)); err != nil {
					t.Errorf("%s: %v", p.id, err)
				}
			})
			late := newPeer(t, c, s, "late", Options{})
			if _, err := late.Join(within(t)); !errors.Is(err, rendezvous.ErrClosed) {
				t.Errorf("a late agent: %v", err)
			}
		})
	}
}
