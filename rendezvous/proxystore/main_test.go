package proxystore

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/gate"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// shared is the etcd of all tests that do not stop it: they have runs of their own, and one takes seconds to close.
var shared struct {
	once     sync.Once
	endpoint string
	stop     func()
	err      error
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == storeRole {
		if err := store.Main(store.Embedded{Dir: os.Args[2], Listen: os.Args[3]}, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

// storeRole as the first argument makes this program an etcd, in the directory and at the address that follow.
const storeRole = "store-of-proxies"

func startShared() {
	dir, err := os.MkdirTemp("", "tegen-etcd-")
	if err != nil {
		shared.err = err
		return
	}
	addresses, err := ports.Addresses(1)
	if err != nil {
		shared.err = err
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := store.Embedded{Dir: dir, Listen: addresses[0]}.Open(ctx)
	shared.endpoint, shared.err = addresses[0], err
	shared.stop = func() {
		if s != nil {
			_ = s.Close()
		}
		_ = os.RemoveAll(dir)
	}
}

// etcd returns the address of the shared one.
func etcd(t *testing.T) string {
	t.Helper()
	shared.once.Do(startShared)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.endpoint
}

// ways runs a test with the etcd itself, and with a gate before it.
func ways(t *testing.T, test func(t *testing.T, at string)) {
	t.Parallel()
	t.Run("etcd", func(t *testing.T) { test(t, etcd(t)) })
	t.Run("gate", func(t *testing.T) { test(t, gated(t, etcd(t))) })
}

// gated starts a gate before an etcd.
func gated(t *testing.T, endpoint string) string {
	t.Helper()
	_, at := gatedBy(t, endpoint, gate.Options{})
	return at
}

func gatedBy(t *testing.T, endpoint string, o gate.Options) (*gate.Gate, string) {
	t.Helper()
	g := gate.New(o)
	if err := g.Open(client(t, endpoint), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		g.Close(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return g, l.Addr().String()
}

// within is a deadline so that nothing hangs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// client is one of its own, as each pod has.
func client(t *testing.T, endpoints ...string) *clientv3.Client {
	t.Helper()
	s, err := store.External{Endpoints: endpoints}.Open(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.Client
}

// pod is a server with an engine of its own.
type pod struct {
	*Engine
	address string
}

// newPod serves a run until the test ends.
func newPod(t *testing.T, endpoint string, o Options) pod {
	t.Helper()
	return newPodWith(t, client(t, endpoint), o)
}

func newPodWith(t *testing.T, c *clientv3.Client, o Options) pod {
	t.Helper()
	e, err := New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	s := tcpstore.NewFor(e, tcpstore.DefaultLimits(), nil, tcpstore.Observer{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return pod{e, listener.Addr().String()}
}

// waiting says whether a client waits for what others write.
func (p pod) waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) == 0 && len(p.clients) > 0
}

func newRun() string { return "run-" + rand.Text() }

// until waits for what must come true.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came true")
		}
	}
}

// relay carries connections to an etcd until it is cut.
type relay struct {
	address string
	to      string
	mu      sync.Mutex
	closed  bool
	mute    atomic.Bool // no request arrives
	deaf    atomic.Bool // no answer arrives
	conns   []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: l.Addr().String(), to: to}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(from)
		}
	}()
	return r
}

func (r *relay) carry(from net.Conn) {
	to, err := net.Dial("tcp", r.to)
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
	go func() { _, _ = io.Copy(to, oneWay{from, &r.mute}); _ = to.Close() }()
	_, _ = io.Copy(from, oneWay{to, &r.deaf})
	_ = from.Close()
}

// oneWay is one direction of a connection. While it is interrupted nothing passes, and nothing is lost, as in TCP.
type oneWay struct {
	io.Reader
	interrupted *atomic.Bool
}

func (w oneWay) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	for w.interrupted.Load() {
		time.Sleep(time.Millisecond)
	}
	return n, err
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
