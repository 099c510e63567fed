package proxystore

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// said is a log.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), what)
}

func (s *said) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

// losable is an etcd whose data the test changes while nobody reaches it.
type losable struct {
	t     *testing.T
	at    store.Embedded
	store *store.Store
	relay *relay
}

func newLosable(t *testing.T, before func(*testing.T, string) string) *losable {
	t.Helper()
	l := &losable{t: t, at: store.Embedded{Dir: filepath.Join(t.TempDir(), "data"), Listen: ports.Address(t)}}
	l.start()
	t.Cleanup(func() { _ = l.store.Close() })
	l.relay = newRelay(t, before(t, l.at.Listen))
	return l
}

func (l *losable) start() {
	l.t.Helper()
	s, err := l.at.Open(within(l.t))
	if err != nil {
		l.t.Fatal(err)
	}
	l.store = s
}

// away stops the etcd for what is done to its data, and for what else happens before pods reach it again.
func (l *losable) away(change func(dir string) error, then func()) {
	l.t.Helper()
	l.relay.cut() // or etcd waits for their watches to end
	_ = l.store.Close()
	if err := change(l.at.Dir); err != nil {
		l.t.Fatal(err)
	}
	l.start()
	if then != nil {
		then()
	}
	l.relay.open()
}

// straight is an etcd that nothing stands before.
func straight(_ *testing.T, at string) string { return at }

// TestEmpty: pods whose etcd comes back empty go on with an empty store. What waits is ended, since what it waits for
// may have been written before, and the log says so once.
func TestEmpty(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*testing.T, string) string{"etcd": straight, "gate": gated} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcdEmpty(t, before)
		})
	}
}

func etcdEmpty(t *testing.T, before func(*testing.T, string) string) {
	l, log := newLosable(t, before), &said{}
	o := Options{Run: newRun(), Attempt: time.Second, Log: log.logger()}
	first := newPod(t, l.relay.address, o)
	second := newPod(t, l.relay.address, o)
	a, b := first.dial(t), second.dial(t)
	equal(t, "before", a.add("/n", 5), 5)
	equal(t, "before", b.add("/n", 5), 10)
	for range 20 { // so that another history does not have as many revisions at once
		a.say(tcpstore.Set, "/k", "v")
	}
	equal(t, "written", a.get("/k"), "v")
	waits, gets, meets := second.dial(t), second.dial(t), second.dial(t)
	waits.wait("/never")
	gets.say(tcpstore.Get, "/not yet")
	meets.barrier("/b", 2)
	until(t, func() bool {
		second.mu.Lock()
		defer second.mu.Unlock()
		return len(second.queue) == 0 && len(second.clients) == 3
	})
	l.away(os.RemoveAll, nil)
	equal(t, "afterwards", a.add("/n", 1), 1)
	equal(t, "what was seen", a.swap("/k", "v", "w"), "v") // as where there is no such key
	equal(t, "to the other", b.add("/n", 1), 2)
	waits.cut()
	gets.cut()
	meets.cut()
	late := second.dial(t)
	late.wait("/late")
	a.say(tcpstore.Set, "/late", "v")
	late.status(0)
	equal(t, "words of the pods", log.count(lostText), 2)
}

// TestReaders: a pod that has written nothing, and so has no lease, notices an empty etcd while a client of it waits,
// also where nothing else is asked for.
func TestReaders(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*testing.T, string) string{"etcd": straight, "gate": gated} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, log := newLosable(t, before), &said{}
			o := Options{Run: newRun(), TTL: 3 * time.Second, Attempt: time.Second}
			writer := newPod(t, l.relay.address, o).dial(t)
			for range 20 { // so that another history does not have as many revisions at once
				writer.say(tcpstore.Set, "/k", "v")
			}
			equal(t, "written", writer.get("/k"), "v")
			o.Log = log.logger()
			reader := newPod(t, l.relay.address, o)
			waits, gets := reader.dial(t), reader.dial(t)
			equal(t, "read", waits.get("/k"), "v")
			waits.wait("/late")
			gets.say(tcpstore.Get, "/late")
			until(t, func() bool {
				reader.mu.Lock()
				defer reader.mu.Unlock()
				return len(reader.queue) == 0 && len(reader.clients) == 2
			})
			l.away(os.RemoveAll, nil)
			late := newPod(t, l.relay.address, o).dial(t)
			late.say(tcpstore.Set, "/late", "v")
			waits.cut()
			gets.cut()
			equal(t, "afterwards", reader.dial(t).get("/late"), "v")
			equal(t, "words of the pod", log.count(lostText), 1)
		})
	}
}

// TestOvertaken: an empty etcd in which others have written more than there was before is told by its leases, also
// where nothing is asked for.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	l, log := newLosable(t, straight), &said{}
	o := Options{Run: newRun(), TTL: 3 * time.Second, Attempt: time.Second, Log: log.logger()}
	p := newPod(t, l.relay.address, o)
	a := p.dial(t)
	equal(t, "before", a.add("/n", 5), 5)
	a.wait("/never")
	until(t, p.waiting)
	l.away(os.RemoveAll, func() {
		for i := range 50 {
			if _, err := l.store.Put(within(t), fmt.Sprint(i), ""); err != nil {
				t.Fatal(err)
			}
		}
	})
	a.cut()
	equal(t, "afterwards", p.dial(t).add("/n", 1), 1)
}

// TestOlder: of an etcd that was given an older state nothing of the run is left, to any pod.
func TestOlder(t *testing.T) {
	t.Parallel()
	l := newLosable(t, straight)
	o := Options{Run: newRun(), Attempt: time.Second}
	a, b := newPod(t, l.relay.address, o).dial(t), newPod(t, l.relay.address, o).dial(t)
	equal(t, "before", a.add("/n", 1), 1)
	equal(t, "before", b.add("/n", 1), 2)
	a.say(tcpstore.Set, "/old", "v")
	equal(t, "written", a.get("/old"), "v")
	saved := filepath.Join(t.TempDir(), "saved")
	l.away(func(dir string) error { return os.CopyFS(saved, os.DirFS(dir)) }, nil)
	for i := range 20 {
		equal(t, "since", a.add("/n", 1), int64(i+3))
	}
	equal(t, "since", b.add("/n", 1), 23)
	l.away(func(dir string) error {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		return os.Rename(saved, dir)
	}, nil)
	equal(t, "afterwards", a.add("/n", 1), 1)
	equal(t, "to the other", b.add("/n", 1), 2)
	b.write([]byte{byte(tcpstore.GetNumKeys)})
	equal(t, "keys", b.number(), 1)
}
