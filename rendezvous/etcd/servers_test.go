package etcd

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/keys"
	"github.com/tegen-dev/tegen/rendezvous/store"
)

// stores are what the tests run against: each starts a server, and returns its address.
var stores = map[string]func(*testing.T) string{
	"etcd-3.4": startEtcd,
	"door":     func(t *testing.T) string { return httptestServer(t, openDoor(t), nil).Listener.Addr().String() },
}

// openDoor is the v2 door of the companion, on an etcd of today.
func openDoor(t *testing.T) http.Handler {
	t.Helper()
	s, err := store.Embedded{Dir: t.TempDir()}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // it serves until its server is closed
	k, err := keys.Open(ctx, s.Client, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.Close()
		cancel()
	})
	return k.Handler()
}

func httptestServer(t *testing.T, h http.Handler, wrap func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	if wrap != nil {
		h = wrap(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// startEtcd starts the etcd of the system with its v2 API, which etcd dropped in 3.6.
func startEtcd(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("no etcd is installed: Debian's package etcd-server has one that still speaks v2")
	}
	if out, err := exec.CommandContext(t.Context(), path, "--version").Output(); err != nil || !strings.Contains(string(out), "Version: 3.4") {
		t.Skipf("%s is not etcd 3.4: %q, %v", path, out, err)
	}
	address, peer := free(t), free(t)
	log := &buffer{}
	c := exec.CommandContext(t.Context(), path, "--enable-v2", "--data-dir", t.TempDir(), "--log-level", "error",
		"--listen-client-urls", "http://"+address, "--advertise-client-urls", "http://"+address,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "default=http://"+peer)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
		c.Wait() //nolint:errcheck // it says that it was killed
		if t.Failed() {
			t.Logf("etcd:\n%s", log)
		}
	})
	await(t, address)
	return address
}

// await waits until a server answers, which for etcd means that it has a leader.
func await(t *testing.T, address string) {
	t.Helper()
	c := newClient([]string{address}, nil, "", "", time.Second)
	defer c.close()
	for ctx := t.Context(); ; time.Sleep(20 * time.Millisecond) {
		if _, err := c.get(ctx, "/"); err == nil {
			return
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func free(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return address
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

// failing is a server that can be told to answer nothing.
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
