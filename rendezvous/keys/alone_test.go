package keys

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/store"
)

// watches counts those that are open, and hands on what they bring so much later, and nothing while it is held.
type watches struct {
	clientv3.Watcher
	open atomic.Int64
	late time.Duration
	held sync.RWMutex
}

func (w *watches) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	w.open.Add(1)
	context.AfterFunc(ctx, func() { w.open.Add(-1) })
	told := w.Watcher.Watch(ctx, key, opts...)
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		for r := range told {
			time.Sleep(w.late)
			w.held.RLock()
			select {
			case out <- r:
			case <-ctx.Done():
			}
			w.held.RUnlock()
		}
	}()
	return out
}

// quiet returns once a process that is alone has no watch.
func (w *watches) quiet(t *testing.T) {
	t.Helper()
	until(t, "a watch is open", func() bool { return w.open.Load() == 0 })
}

// until waits for what must come true; else something is wrong.
func until(t *testing.T, wrong string, is func() bool) {
	t.Helper()
	for ctx := soon(t); !is(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal(wrong)
		}
	}
}

// reading counts what is read of a store.
type reading struct {
	clientv3.KV
	n atomic.Int64
}

func (a *reading) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	r, err := a.KV.Get(ctx, key, opts...)
	a.n.Add(1)
	return r, err
}

// alone is a process that has its keys of a store alone.
func alone(t *testing.T, s *store.Store) (endpoint, *gate, *watches) {
	t.Helper()
	g, w := &gate{KV: s.KV}, &watches{Watcher: s.Watcher}
	c := clientv3.NewCtxClient(t.Context())
	c.KV, c.Watcher = g, w
	return open(t, &store.Store{Client: c}, Options{Alone: true}), g, w
}

// next waits for the first event of a key at or after an index, and returns a function that hands it out.
func next(t *testing.T, k *Keys, key string, since uint64) func() *Event {
	t.Helper()
	w, err := k.Watch(soon(t), key, true, since)
	if err != nil {
		t.Fatal(err)
	}
	return func() *Event {
		t.Helper()
		defer w.Stop()
		e, err := w.Next(soon(t))
		if err != nil {
			t.Fatalf("no event of %s: %v", key, err)
		}
		return e
	}
}

// TestAlone: a process that alone writes to its keys hears of what it writes, and of what it ends, without a watch, and
// keeps what happened for waits that come late.
func TestAlone(t *testing.T) {
	t.Parallel()
	k, _, w := alone(t, embedded(t))
	w.quiet(t)
	w.held.Lock() // a process that has stood still begins to watch again
	defer w.held.Unlock()
	event := next(t, k.Keys, "/run", 0)
	first := put(t, k.Keys, "/run/a", Put{Value: "1", TTL: seconds(1)})
	if e := event(); e.Index != first.Index || *e.Node.Value != "1" {
		t.Errorf("a wait has heard %s %s at %d, and not what was set at %d", e.Action, e.Node.Key, e.Index, first.Index)
	}
	if e := next(t, k.Keys, "/run", first.Index+1)(); e.Action != actionExpire {
		t.Errorf("after the end of its time a wait has heard %s", e.Action)
	}
	if e := next(t, k.Keys, "/run", first.Index)(); e.Index != first.Index {
		t.Errorf("a wait that began late has heard what was at %d, and not at %d", e.Index, first.Index)
	}
}

// TestLostAnswer: a write whose answer was lost has happened, and whoever waits hears of it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	s := gapless(t)
	k, g, w := alone(t, s)
	w.quiet(t)
	for range 3 {
		put(t, k.Keys, "/k", Put{})
	}
	before := put(t, k.Keys, "/k", Put{Value: "before"})
	if _, err := s.Compact(soon(t), int64(before.Index/stride)); err != nil { // what was before is known
		t.Fatal(err)
	}
	event := next(t, k.Keys, "/k", 0)
	lose(t, k.Keys, g, "/k", Put{Value: "lost", PrevValue: "before"})
	if e := event(); *e.Node.Value != "lost" {
		t.Errorf("a wait has heard %q", *e.Node.Value)
	}
	put(t, k.Keys, "/k", Put{Value: "after", PrevValue: "lost"})
}

// lose writes, and the answer is lost.
func lose(t *testing.T, k *Keys, g *gate, key string, p Put) {
	t.Helper()
	disturb := func(how func(int, commitCall) (*clientv3.TxnResponse, error)) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.disturb = how
	}
	disturb(func(_ int, commit commitCall) (*clientv3.TxnResponse, error) {
		if r, err := commit(); err != nil {
			return r, err
		}
		return nil, rpctypes.ErrNoLeader
	})
	defer disturb(nil)
	if _, err := k.Put(soon(t), key, p); refused(err) != CodeStore {
		t.Fatalf("a write that was not answered has come to %v", err)
	}
}

// TestLostAnswerLate: a write whose answer was lost is heard of from the store, however long that takes to tell.
func TestLostAnswerLate(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	reads := &reading{KV: s.KV}
	k, g, w := alone(t, &store.Store{Client: &clientv3.Client{KV: reads, Watcher: s.Watcher}})
	put(t, k.Keys, "/k", Put{Value: "before"})
	w.quiet(t)
	event := next(t, k.Keys, "/k", 0)
	w.held.Lock()
	lose(t, k.Keys, g, "/k", Put{Value: "lost", PrevValue: "before"})
	until(t, "it does not watch", func() bool { return w.open.Load() > 0 })
	k.lastFailure.Store(new(time.Time)) // long ago
	before := reads.n.Load()
	until(t, "it does not go on asking", func() bool { return reads.n.Load() > before+1 })
	w.held.Unlock()
	if e := event(); *e.Node.Value != "lost" {
		t.Errorf("a wait has heard %q", *e.Node.Value)
	}
	w.quiet(t)
}

// TestLateWrite: what was written without an answer, and so late that nobody looks for it any more, is noticed by the
// next write, and nobody misses it, however long the store takes to tell.
func TestLateWrite(t *testing.T) {
	t.Parallel()
	k, _, w := alone(t, embedded(t))
	put(t, k.Keys, "/a", Put{Value: "before"})
	w.quiet(t)
	late, err := Open(t.Context(), embedded(t).Client, Options{Prefix: k.o.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	w.late = 3 * tick
	event := next(t, k.Keys, "/", 0)
	was := put(t, late, "/a", Put{Value: "late"})
	for _, key := range []string{"/b", "/c"} {
		put(t, k.Keys, key, Put{})
	}
	if e := event(); e.Index != was.Index || *e.Node.Value != "late" {
		t.Errorf("a wait has heard of %s first", e.Node.Key)
	}
	put(t, k.Keys, "/a", Put{Value: "after", PrevValue: "late"})
}
