package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// logs collects what a server says, and shows it where a test fails.
type logs struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

// begin starts a server with free ports and a store of its own.
func begin(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	said := &logs{}
	c := Config{
		Store: store.Embedded{Dir: t.TempDir()}.Open, Client: "127.0.0.1:0", C10d: "127.0.0.1:0", Status: "127.0.0.1:0",
		TCPStore: tcpstore.DefaultLimits(),
		Log:      slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&c)
	}
	s, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		const limit = 20 * time.Second
		ctx, cancel := context.WithTimeout(context.Background(), limit) //nolint:usetesting // the test's has ended
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(said.out.String())
		}
	})
	return s
}

func put(t *testing.T, s *Server, path, form string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.Address(apiKeys)+"/v2/keys"+path,
		strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	return r.StatusCode
}

// until waits for what must come true, and fails with what is so otherwise.
func until(t *testing.T, otherwise string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}

// TestIdleRuns: a run without a time to live gets one and is gone when nobody asks for it; those in use stay, and those
// with a longer time of their own keep it.
func TestIdleRuns(t *testing.T) {
	t.Parallel()
	s := begin(t, func(c *Config) { c.RunTTL = 4 * time.Second })
	for path, form := range map[string]string{
		"/run_idle": "dir=true", "/deep/run_used": "dir=true",
		"/run_own": "dir=true&ttl=7200",
	} {
		if code := put(t, s, path, form); code != http.StatusCreated {
			t.Fatalf("%s: %d", path, code)
		}
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		r, err := http.Get("http://" + s.Address(apiKeys) + "/v2/keys/deep/run_used")
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		runs, err := s.Runs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) == 2 {
			if diff := cmp.Diff([]string{"own", "used"}, []string{runs[0].ID, runs[1].ID}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			break
		}
		if len(runs) < 2 || time.Now().After(end) {
			t.Fatalf("%d runs are left", len(runs))
		}
	}
	e, err := s.opened.Load().keys.Get(t.Context(), "/run_own", false)
	if err != nil || e.Node.TTL < 7000 {
		t.Errorf("it has %+v, %v", e, err)
	}
}

// TestUses: what clients ask for of runs that are not there leaves nothing behind, and a wait that its client has given
// up is a use all the same.
func TestUses(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	base := "http://" + s.Address(apiKeys) + "/v2/keys"
	r, err := http.Get(base + "/run_none")
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	ctx, giveUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/run_waits/k?wait=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	}
	giveUp()
	_ = r.Body.Close()
	until(t, "a wait is no use", func() bool { return s.used.since("/run_waits") <= time.Hour })
	// An answer comes before its request has ended.
	until(t, "what is not there is in use", func() bool { return s.used.since("/run_none") >= time.Hour })
	var u uses
	for i := range maxUses + 10 {
		u.note(strconv.Itoa(i), time.Now())
	}
	if len(u.last) > maxUses || u.since(strconv.Itoa(maxUses+9)) > time.Hour {
		t.Errorf("%d uses are remembered", len(u.last))
	}
}

// TestEndOfRequests: a shutdown answers the writes that are under way, and ends waits.
func TestEndOfRequests(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	base := "http://" + s.Address(apiKeys) + "/v2/keys"
	if code := put(t, s, "/k", "value=0"); code != http.StatusCreated {
		t.Fatal(code)
	}
	wait, err := http.Get(base + "/none?wait=true")
	if err != nil {
		t.Fatal(err)
	}
	defer wait.Body.Close()
	bad := make(chan string, 8)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, base+"/k",
					strings.NewReader("value=1"))
				if err != nil {
					bad <- err.Error()
					return
				}
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r, err := http.DefaultClient.Do(req)
				if err != nil { // the listener is closed
					return
				}
				text, _ := io.ReadAll(r.Body)
				_ = r.Body.Close()
				if r.StatusCode != http.StatusOK {
					bad <- string(text)
					return
				}
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	if err := s.release(); err != nil {
		t.Error(err)
	}
	all.Wait()
	close(bad)
	for text := range bad {
		t.Errorf("a write that was under way was answered %s", text)
	}
	if _, err := io.ReadAll(wait.Body); err == nil {
		t.Error("a wait ended as if it were answered")
	}
}

// TestStart: what cannot be opened leaves nothing open.
func TestStart(t *testing.T) {
	free := ports.Address(t)
	broken := errors.New("no store today")
	_, err := Start(t.Context(), Config{
		Client: free, C10d: "127.0.0.1:0", Status: "127.0.0.1:0",
		Store: func(context.Context) (*store.Store, error) { return nil, broken },
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if l, err := net.Listen("tcp", free); err != nil {
		t.Errorf("the listener is still open: %v", err)
	} else {
		_ = l.Close()
	}
}

// TestLateEtcd: an etcd that does not answer yet does not end the server, which opens it later.
func TestLateEtcd(t *testing.T) {
	t.Parallel()
	tries := 0
	s := begin(t, func(c *Config) {
		open := c.Store
		c.Store = func(ctx context.Context) (*store.Store, error) {
			if tries++; tries == 1 {
				return nil, fmt.Errorf("of the test: %w", store.ErrAway)
			}
			return open(ctx)
		}
	})
	if code := put(t, s, "/a", "value=v"); code != http.StatusServiceUnavailable {
		t.Errorf("while the etcd does not answer a write is answered %d", code)
	}
	for end := time.Now().Add(time.Minute); put(t, s, "/a", "value=v") != http.StatusCreated; {
		if time.Now().After(end) {
			t.Fatal("the server does not open the etcd")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestLaterRefused: what cannot pass ends a server that waits for its etcd, as it does at the start.
func TestLaterRefused(t *testing.T) {
	t.Parallel()
	newer := store.Embedded{Dir: t.TempDir()}.Open
	st, err := newer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(t.Context(), "/tegen/v2/head", `{"format":2,"action":"set","key":"/x"}`); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		open func(context.Context) (*store.Store, error)
		want string
	}{
		"refused": {
			func(context.Context) (*store.Store, error) { return nil, store.ErrRefused }, store.ErrRefused.Error(),
		},
		"newer": {newer, "of a newer tegen-rendezvous"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			s := begin(t, func(config *Config) {
				config.Store = func(ctx context.Context) (*store.Store, error) {
					if tries++; tries == 1 {
						return nil, fmt.Errorf("of the test: %w", store.ErrAway)
					}
					return c.open(ctx)
				}
			})
			select {
			case err := <-s.Failed():
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			case <-time.After(4 * retryInterval):
				t.Error("the server tries again")
			}
		})
	}
}

// TestSilentEtcd: an etcd without a quorum answers what is asked of one member, and no read. It may answer later.
func TestSilentEtcd(t *testing.T) {
	t.Parallel()
	s := begin(t, func(c *Config) {
		c.StoreTimeout = time.Second
		c.Store = func(context.Context) (*store.Store, error) {
			c, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
			return &store.Store{Client: c}, err
		}
	})
	if code := put(t, s, "/a", "value=v"); code != http.StatusServiceUnavailable {
		t.Errorf("while the etcd does not answer a write is answered %d", code)
	}
}

// TestOpening: health is answered while the store opens, and it is not ready before.
func TestOpening(t *testing.T) {
	t.Parallel()
	status := ports.Address(t)
	codes := map[string]int{}
	begin(t, func(c *Config) {
		open := c.Store
		c.Status = status
		c.Store = func(ctx context.Context) (*store.Store, error) {
			for _, path := range []string{"/healthz", "/readyz", "/runs", "/metrics"} {
				r, err := http.Get("http://" + status + path)
				if err != nil {
					return nil, err
				}
				_ = r.Body.Close()
				codes[path] = r.StatusCode
			}
			return open(ctx)
		}
	})
	want := map[string]int{"/healthz": 200, "/readyz": 503, "/runs": 503, "/metrics": 200}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTLS: the keys API takes clients with a certificate of the authority, and a replaced certificate is shown at once.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := issue(t, dir, "ca", nil)
	issue(t, dir, "server", ca)
	issue(t, dir, "client", ca)
	files := Files{
		CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "server.crt"),
		Key: filepath.Join(dir, "server.key"),
	}
	config, err := ServerTLS(files)
	if err != nil {
		t.Fatal(err)
	}
	s := begin(t, func(c *Config) { c.TLS = config })
	get := func(f Files) (string, error) {
		config, err := ClientTLS(f)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		r, err := (&http.Client{Transport: transport}).Get("https://" + s.Address(apiKeys) + "/v2/machines")
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		return r.TLS.PeerCertificates[0].SerialNumber.String() + " " + string(body), err
	}
	with := Files{CA: files.CA, Cert: filepath.Join(dir, "client.crt"), Key: filepath.Join(dir, "client.key")}
	before, err := get(with)
	if err != nil || !strings.Contains(before, "https://"+s.Address(apiKeys)) {
		t.Errorf("got %q, %v", before, err)
	}
	if _, err := get(Files{CA: files.CA}); err == nil {
		t.Error("it takes clients without a certificate")
	}
	issue(t, dir, "server", ca)
	if after, err := get(with); err != nil || after == before {
		t.Errorf("got %q, %v", after, err)
	}
}

// TestFiles: what is missing is said before anything is opened.
func TestFiles(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		files Files
		want  string
	}{
		{Files{Cert: "a"}, "a certificate needs its key"},
		{Files{Cert: "none", Key: "none"}, "reading certificate none"},
		{Files{CA: "none"}, "reading the authority's certificate: open none"},
		{Files{CA: empty}, "holds none"},
	} {
		if _, err := ClientTLS(c.files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %s", c.files, err, c.want)
		}
	}
}

type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue writes a certificate and its key; without an authority it is one.
func issue(t *testing.T, dir, name string, by *pair) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if by == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		by = &pair{c, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for ext, block := range map[string]*pem.Block{
		".crt": {Type: "CERTIFICATE", Bytes: der},
		".key": {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(dir, name+ext), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &pair{c, key}
}

// TestWithoutStore: the TCPStore keeps nothing in the store, so that one alone serves, and is ready, without any.
func TestWithoutStore(t *testing.T) {
	t.Parallel()
	s := begin(t, func(c *Config) {
		c.Client = ""
		c.Store = func(context.Context) (*store.Store, error) { return nil, errors.New("nobody needs one") }
	})
	for _, path := range []string{"/readyz", "/healthz", "/runs", "/metrics"} {
		r, err := http.Get("http://" + s.Address(apiStatus) + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
}
