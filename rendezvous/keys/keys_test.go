package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous/store"
)

// endpoint is one process at a store, as far as it differs from others.
type endpoint struct {
	*Keys
	*httptest.Server
}

func open(t testing.TB, s *store.Store, o Options) endpoint {
	t.Helper()
	o.Prefix = prefix(t)
	k, err := Open(t.Context(), s.Client, o)
	if err != nil {
		t.Fatal(err)
	}
	d := endpoint{k, httptest.NewServer(k.Handler())}
	d.Config.ErrorLog = nil
	t.Cleanup(d.close)
	return d
}

// close is called by a test's cleanup, and before it by one that ends a process.
func (d endpoint) close() {
	d.Keys.Close()
	d.Server.Close()
}

// reply is what clients look at.
type reply struct {
	Status int
	Index  string
	Body   string
}

func (d endpoint) do(t testing.TB, method, target, form string) reply {
	t.Helper()
	return do(t, d.URL, method, target, form)
}

func do(t testing.TB, base, method, target, form string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base+target, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPut {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{a.StatusCode, a.Header.Get("X-Etcd-Index"), string(b)}
}

// get begins a request, whose answer the caller reads and closes.
func get(ctx context.Context, t testing.TB, target string) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// soon is a context for what must happen, so that nothing hangs.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func put(t testing.TB, k *Keys, key string, p Put) *Event {
	t.Helper()
	e, err := k.Put(soon(t), key, p)
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return e
}

func seconds(n uint64) *uint64 { return &n }

// refused is the code of an error, 0 for none.
func refused(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// TestTwoProcesses: what is written through one process is read, and wakes waits, at another; a process that ends takes
// nothing with it.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	a, b := open(t, s, Options{}), open(t, s, Options{})
	w, err := b.Watch(soon(t), "/run", true, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	wrote := put(t, a.Keys, "/run/x", Put{Value: "1"})
	seen, err := w.Next(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(t, wrote), text(t, seen)); diff != "" {
		t.Errorf("what the writer was answered, and a watcher at another process (-want +got):\n%s", diff)
	}
	for i := range 50 {
		v := fmt.Sprint(i)
		put(t, a.Keys, "/run/x", Put{Value: v})
		e, err := b.Get(soon(t), "/run/x", false)
		if err != nil || *e.Node.Value != v {
			t.Fatalf("read %v, %v; %s was written before", e, err, v)
		}
	}
	a.close()
	put(t, b.Keys, "/run/y", Put{})
	c := open(t, s, Options{})
	if diff := cmp.Diff(b.do(t, "GET", "/v2/keys/?recursive=true", ""),
		c.do(t, "GET", "/v2/keys/?recursive=true", "")); diff != "" {
		t.Errorf("what an old process and a new one see (-old +new):\n%s", diff)
	}
	if e, err := c.Wait(soon(t), "/run/x", false, wrote.Index); err != nil || e.Index != wrote.Index {
		t.Errorf("a new process does not know the events that the old one reported: %v, %v", e, err)
	}
}

func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestExpiry: a key and a directory go when their time is over, the latter with all in it, and waits end with that
// event.
func TestExpiry(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	a, b := open(t, s, Options{}), open(t, s, Options{})
	put(t, a.Keys, "/d", Put{Dir: true, TTL: seconds(1)})
	put(t, a.Keys, "/d/x/y", Put{Value: "1"})
	k := put(t, a.Keys, "/k", Put{Value: "2", TTL: seconds(1)})
	for _, key := range []string{"/d", "/d/x/y"} {
		e, err := b.Wait(soon(t), key, false, k.Index)
		if err != nil || e.Action != "expire" || e.Node.Key != "/d" {
			t.Errorf("waiting for %s: %+v, %v", key, e, err)
		}
	}
	e, err := b.Wait(soon(t), "/k", false, k.Index+1)
	if err != nil || e.Action != "expire" || *e.Prev.Value != "2" {
		t.Errorf("waiting for /k: %+v, %v", e, err)
	}
	if r, err := s.Get(t.Context(), prefix(t)+"keys/", clientPrefix); err != nil || len(r.Kvs) != 0 {
		t.Errorf("in the store there is still %v, %v", r.Kvs, err)
	}
}
