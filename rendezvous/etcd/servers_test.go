package etcd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/keys"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// stores are what the tests run against. All share one server of each kind, which is started when the first needs it,
// and have runs of their own: closing an embedded etcd takes seconds.
var stores = map[string]*server{"etcd-3.4": {start: startEtcd}, "companion": {start: startCompanion}}

// server is started once, for all tests.
type server struct {
	start   func(dir string) (started, error)
	once    sync.Once
	started started
	err     error
}

// started is a server that runs.
type started struct {
	address string
	handler http.Handler // of the companion, in this process
	stop    func()
}

// errNone says that a store is not installed here.
var errNone = errors.New("no etcd 3.4 is installed: Debian's package etcd-server has one that still speaks v2")

func (s *server) open(t *testing.T) started {
	t.Helper()
	s.once.Do(s.begin)
	switch {
	case errors.Is(s.err, errNone):
		t.Skip(s.err)
	case s.err != nil:
		t.Fatal(s.err)
	}
	return s.started
}

// begin starts the server. Its directory outlives the test that is the first.
func (s *server) begin() {
	dir, err := os.MkdirTemp("", "tegen-etcd-")
	if err != nil {
		s.err = err
		return
	}
	s.started, s.err = s.start(dir)
	stop := s.started.stop
	s.started.stop = func() {
		if stop != nil {
			stop()
		}
		_ = os.RemoveAll(dir)
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil { // they wait, and compute little
		panic(err)
	}
	code := m.Run()
	for _, s := range stores {
		if s.started.stop != nil {
			s.started.stop()
		}
	}
	os.Exit(code)
}

// startCompanion starts the v2 API of the companion, on an etcd of today.
func startCompanion(dir string) (started, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := store.Embedded{Dir: dir}.Open(ctx)
	if err != nil {
		cancel()
		return started{}, err
	}
	k, err := keys.Open(ctx, s.Client, keys.Options{})
	if err != nil {
		cancel()
		return started{}, errors.Join(err, s.Close())
	}
	h := httptest.NewServer(k.Handler())
	return started{h.Listener.Addr().String(), k.Handler(), func() {
		h.CloseClientConnections()
		h.Close()
		k.Close()
		cancel()
		_ = s.Close()
	}}, nil
}

// companion is the v2 API of the companion, to be served by a test in its own way.
func companion(t *testing.T) http.Handler {
	t.Helper()
	return stores["companion"].open(t).handler
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// startEtcd starts the etcd of the system with its v2 API, which etcd dropped in 3.6.
func startEtcd(dir string) (started, error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return started{}, errNone
	}
	if out, err := exec.Command(path, "--version").Output(); err != nil ||
		!strings.Contains(string(out), "Version: 3.4") {
		return started{}, fmt.Errorf("%w; %s is %q, %w", errNone, path, out, err)
	}
	free, err := ports.Addresses(2)
	if err != nil {
		return started{}, err
	}
	address, peer := free[0], free[1]
	log := &buffer{}
	c := exec.Command(path, "--enable-v2", "--data-dir", dir, "--log-level", "error",
		"--listen-client-urls", "http://"+address, "--advertise-client-urls", "http://"+address,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "default=http://"+peer)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return started{}, err
	}
	stop := func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it says that it was killed
	}
	if err := await(address); err != nil {
		stop()
		return started{}, fmt.Errorf("starting etcd: %w\n%s", err, log)
	}
	return started{address: address, stop: stop}, nil
}

// await waits until a server answers, which for etcd means that it has a leader.
func await(address string) error {
	c := newClient([]string{address}, nil, "", "", time.Second)
	defer c.close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		_, err := c.get(ctx, "/")
		if err == nil || sleep(ctx, 20*time.Millisecond) != nil {
			return err
		}
	}
}

// buffer is a log that many write.
type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// failing is a server that can be switched off.
type failing struct {
	http.Handler
	down atomic.Bool
}

func (f *failing) set(down bool) { f.down.Store(down) }

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.down.Load() {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	f.Handler.ServeHTTP(w, r)
}
