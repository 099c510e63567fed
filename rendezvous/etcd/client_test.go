package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous"
)

// TestFailover: an endpoint that does not answer is passed over for the next, and for those that the store names.
func TestFailover(t *testing.T) {
	t.Parallel()
	api := companion(t)
	second := serve(t, api)
	first := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/machines" {
			if _, err := fmt.Fprint(w, "http://127.0.0.1:1, "+second.URL+", not a url, "+second.URL); err != nil {
				t.Error(err)
			}
			return
		}
		api.ServeHTTP(w, r)
	}))
	c := newClient([]string{strings.TrimPrefix(first.URL, "http://")}, nil, "", "", time.Second)
	defer c.close()
	if err := c.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{first.URL, "http://127.0.0.1:1", second.URL}, c.endpoints); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := c.put(t.Context(), "/k", url.Values{"value": {"v"}}); err != nil {
		t.Fatal(err)
	}
	first.CloseClientConnections()
	first.Close()
	if a, err := c.get(t.Context(), "/k"); err != nil || a.Node.Value != "v" {
		t.Errorf("reading %+v: %v", a, err)
	}
	want := Requests{Reads: 1, Writes: 1, Lost: 2}
	if diff := cmp.Diff(want, c.requests()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSecured: agents are let in where the API asks for a known certificate and a password. It refuses as etcd 3.4 does
// (writeNoAuth in etcdserver/api/v2http/client_auth.go), which asks a guest's role where nobody gives a password.
func TestSecured(t *testing.T) {
	t.Parallel()
	api := companion(t)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "agent" || password != "secret" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"message":"Insufficient credentials"}`))
			return
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := Config{
		Endpoints: []string{s.Listener.Addr().String()}, Username: "agent", Password: "secret",
		TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	settings := rendezvous.Settings{RunID: "a b/ü?", Min: 1, Max: 1, Join: 10 * time.Second}
	a, err := Open(c, settings, rendezvous.Agent{Host: "h", Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer kill(t, a)
	w, err := a.Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w.Size != 1 || w.Total != 1 {
		t.Errorf("the world is %+v", w)
	}
	c.Password, settings.Join = "wrong", 4*time.Second // etcd takes its time to hash a password
	b, err := Open(c, settings, rendezvous.Agent{})
	if err != nil {
		t.Fatal(err)
	}
	defer kill(t, b)
	if _, err := b.Join(t.Context()); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// TestStoreReturns: an agent in a world outlives a store that does not answer for a while.
func TestStoreReturns(t *testing.T) {
	t.Parallel()
	down := failing{Handler: companion(t)}
	s := serve(t, &down)
	r := &run{t: t, address: s.Listener.Addr().String(), log: &buffer{}, timings: quick}
	r.Settings = rendezvous.Settings{RunID: t.Name(), Min: 2, Max: 2, Join: time.Minute, LastCall: time.Second}
	agents := r.agents(2)
	worlds := r.world(agents...)
	down.set(true)
	s.CloseClientConnections()
	time.Sleep(2 * quick.KeepAliveTTL)
	down.set(false)
	time.Sleep(quick.KeepAliveTTL)
	r.stands(worlds...)
	a := agents[0]
	got, err := a.client.get(t.Context(), a.protocol.VersionDir(1))
	if err != nil {
		t.Fatal(err)
	}
	alive := 0
	for _, n := range got.Node.Nodes {
		if !n.Dir {
			alive++
		}
	}
	if alive != 2 {
		t.Errorf("%d of 2 keep-alives are there: %+v", alive, got.Node.Nodes)
	}
	r.finish(agents...)
}

// TestOpen: what cannot be is refused.
func TestOpen(t *testing.T) {
	for name, open := range map[string]func() (*Agent, error){
		"no endpoint": func() (*Agent, error) {
			return Open(Config{}, rendezvous.Settings{RunID: "a", Min: 1, Max: 1}, rendezvous.Agent{})
		},
		"no run": func() (*Agent, error) {
			return Open(Config{Endpoints: []string{"a:1"}}, rendezvous.Settings{Min: 1, Max: 1}, rendezvous.Agent{})
		},
		"no agents": func() (*Agent, error) {
			return Open(Config{Endpoints: []string{"a:1"}}, rendezvous.Settings{RunID: "a"}, rendezvous.Agent{})
		},
		"fewer at most than at least": func() (*Agent, error) {
			return Open(Config{Endpoints: []string{"a:1"}}, rendezvous.Settings{RunID: "a", Min: 2, Max: 1},
				rendezvous.Agent{})
		},
	} {
		if _, err := open(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
