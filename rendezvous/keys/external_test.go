package keys

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// listening is an etcd for other processes, in a directory and at an address of its own.
func listening(t *testing.T, dir, address string) *store.Store {
	t.Helper()
	s, err := store.Embedded{Dir: dir, Listen: address}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// external is an endpoint of an etcd that listens.
func external(t *testing.T, address string) endpoint {
	t.Helper()
	s, err := store.External{Endpoints: []string{address}}.Open(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // its etcd may have ended before
	return open(t, s, Options{Timeout: time.Second})
}

// eventually writes until the store takes it.
func eventually(t *testing.T, d endpoint, key, value string) *Event {
	t.Helper()
	for ctx := soon(t); ; time.Sleep(50 * time.Millisecond) {
		e, err := d.Put(ctx, key, Put{Value: value})
		if err == nil {
			return e
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// TestStoreRestarts: an etcd that ends is an error that clients see, and when it is back waits go on, and what was over
// meanwhile lives until its owner could have come back.
func TestStoreRestarts(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), ports.Address(t)
	s := listening(t, dir, address)
	a, b := external(t, address), external(t, address)
	first := put(t, a.Keys, "/k", Put{Value: "1"})
	put(t, a.Keys, "/lives", Put{TTL: seconds(2)})
	events := make(chan *Event, 2)
	for _, d := range []endpoint{a, b} {
		go func() {
			e, err := d.Wait(soon(t), "/k", false, first.Index+1)
			if err != nil {
				t.Error(err)
			}
			events <- e
		}()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r := b.do(t, "PUT", "/v2/keys/other", "value=1"); r.Status != 500 ||
		!strings.Contains(r.Body, `"errorCode":300`) {
		t.Errorf("with no store a write is answered %+v", r)
	}
	if _, err := a.Get(soon(t), "/k", false); refused(err) != CodeStore {
		t.Errorf("with no store a read ends with %v", err)
	}
	time.Sleep(2 * time.Second) // until the time of what lives is over
	s = listening(t, dir, address)
	defer s.Close() //nolint:errcheck // the test is over
	eventually(t, b, "/k", "2")
	for range 2 {
		select {
		case e := <-events: // of the first write that was done, which may be one that was not answered
			if *e.Node.Value != "2" || e.Prev == nil || *e.Prev.Value != "1" {
				t.Errorf("a wait returns %+v after %+v", e.Node, e.Prev)
			}
		case <-soon(t).Done():
			t.Fatal("a wait has lost its event")
		}
	}
	yes := true
	if _, err := a.Put(soon(t), "/lives", Put{TTL: seconds(100), Refresh: true, PrevExist: &yes}); err != nil {
		t.Errorf("the owner comes back: %v", err)
	}
}

// TestStoreSetUpAnew: an etcd that comes back with nothing, as without a volume, is served as it is, and not as it was.
func TestStoreSetUpAnew(t *testing.T) {
	t.Parallel()
	address := ports.Address(t)
	s := listening(t, t.TempDir(), address)
	a, b := external(t, address), external(t, address)
	for range 20 { // more than are written to the new one
		put(t, a.Keys, "/k", Put{})
	}
	if _, err := b.Get(soon(t), "/k", false); err != nil { // so that it has seen them all
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = listening(t, t.TempDir(), address)
	defer s.Close() //nolint:errcheck // the test is over
	eventually(t, a, "/new", "1")
	for _, d := range []endpoint{a, b} {
		for ctx := soon(t); ; time.Sleep(50 * time.Millisecond) {
			_, err := d.Get(ctx, "/k", false)
			if refused(err) == CodeNotFound {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("what is gone is read: %v", err)
			}
		}
		if e, err := d.Get(soon(t), "/new", false); err != nil || *e.Node.Value != "1" {
			t.Errorf("what is there is read as %+v, %v", e, err)
		}
	}
}

// TestEmptied: somebody deletes all that is in the store.
func TestEmptied(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	d := open(t, s, Options{})
	put(t, d.Keys, "/k", Put{Value: "1"})
	if _, err := s.Delete(t.Context(), prefix(t), clientPrefix); err != nil {
		t.Fatal(err)
	}
	// A write that failed may have been done all the same: then the next one replaces it.
	if e := eventually(t, d, "/k", "2"); e.Prev != nil && *e.Prev.Value != "2" {
		t.Errorf("what was deleted is there: %q, %+v", *e.Prev.Value, e.Prev)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if e, err := d.Get(ctx, "/k", false); err != nil || *e.Node.Value != "2" {
		t.Errorf("what was written since is %+v, %v", e, err)
	}
}
