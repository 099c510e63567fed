package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/store"
)

// gate is a store whose next transaction can be held, so that writes gather, and whose transactions can be disturbed.
type gate struct {
	clientv3.KV
	mu       sync.Mutex
	hold     chan struct{} // the next one is done once it is closed
	held     chan struct{} // closed when it has come
	number   int           // of transactions since then
	gathered func()        // called once the writes wait
	disturb  func(ops int, commit commitCall) (*clientv3.TxnResponse, error)
}

type gatedTxn struct {
	clientv3.Txn
	gate *gate
	ops  int
}

func (g *gate) Txn(ctx context.Context) clientv3.Txn { return &gatedTxn{g.KV.Txn(ctx), g, 0} }

func (x *gatedTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	x.Txn = x.Txn.If(cs...)
	return x
}

func (x *gatedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	x.Txn, x.ops = x.Txn.Then(ops...), len(ops)
	return x
}

func (x *gatedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	x.Txn = x.Txn.Else(ops...)
	return x
}

type commitCall = func() (*clientv3.TxnResponse, error)

func (x *gatedTxn) Commit() (*clientv3.TxnResponse, error) {
	g := x.gate
	g.mu.Lock()
	hold, held, disturb := g.hold, g.held, g.disturb
	g.hold = nil
	g.number++
	g.mu.Unlock()
	if hold != nil {
		close(held)
		<-hold
		return x.Txn.Commit()
	}
	if disturb != nil {
		return disturb(x.ops, x.Txn.Commit)
	}
	return x.Txn.Commit()
}

// gated is a process at the shared store whose writes go through a gate.
func gated(t *testing.T) (endpoint, *gate) { return gatedWith(t, Options{}) }

func gatedWith(t *testing.T, o Options) (endpoint, *gate) {
	t.Helper()
	s := embedded(t)
	g := &gate{KV: s.KV}
	c := clientv3.NewCtxClient(t.Context())
	c.KV, c.Watcher = g, s.Watcher
	return open(t, &store.Store{Client: c}, o), g
}

// together has writes wait until all of them do, so that they are decided upon for one transaction, in their order.
func together(t *testing.T, d endpoint, g *gate, writes ...func() (*Event, error)) []result {
	t.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	g.mu.Lock()
	g.hold, g.held = hold, held
	g.mu.Unlock()
	results := make([]result, len(writes))
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := d.Put(soon(t), "/plug", Put{}); err != nil {
			t.Error(err)
		}
	})
	<-held
	for i, write := range writes {
		all.Go(func() { results[i].event, results[i].err = write() })
		for ctx := soon(t); d.queue.size() <= i; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				close(hold)
				t.Fatalf("write %d does not wait", i)
			}
		}
	}
	if g.gathered != nil {
		g.gathered()
	}
	g.mu.Lock()
	g.number = 0
	g.mu.Unlock()
	close(hold)
	all.Wait()
	return results
}

type result struct {
	event *Event
	err   error
}

func (r result) String() string {
	if e := new(Error); errors.As(r.err, &e) {
		return fmt.Sprint(e.Code, " ", e.Cause)
	}
	if r.err != nil {
		return r.err.Error()
	}
	e := r.event
	text := e.Action + " " + e.Node.Key
	if e.Node.Value != nil {
		text += "=" + *e.Node.Value
	}
	return text
}

func (g *gate) transactions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.number
}

func (d endpoint) putting(t *testing.T, key string, p Put) func() (*Event, error) {
	return func() (*Event, error) { return d.Put(soon(t), key, p) }
}

// TestOneTransaction: writes that wait share a transaction, and each is an event with an index of its own, which other
// processes, and those that begin later, report in the same order.
func TestOneTransaction(t *testing.T) {
	t.Parallel()
	d, g := gated(t)
	other := open(t, embedded(t), Options{})
	var writes []func() (*Event, error)
	for i := range 40 {
		writes = append(writes, d.putting(t, fmt.Sprintf("/at/%02d/k", i), Put{Value: fmt.Sprint(i)}))
	}
	put(t, d.Keys, "/at/k", Put{}) // else the first one makes the directory, and the others wait for that
	var indexes []uint64
	for i, r := range together(t, d, g, writes...) {
		if want := fmt.Sprintf("set /at/%02d/k=%d", i, i); r.String() != want {
			t.Fatalf("write %d comes to %v, not %q", i, r, want)
		}
		indexes = append(indexes, r.event.Index)
	}
	if n := g.transactions(); n != 1 {
		t.Errorf("40 writes that waited took %d transactions", n)
	}
	if !slices.IsSorted(indexes) || indexes[39] != indexes[0]+39 {
		t.Errorf("the indexes are %v", indexes)
	}
	late := open(t, embedded(t), Options{})
	for i, index := range indexes {
		for _, k := range []*Keys{d.Keys, other.Keys, late.Keys} {
			e, err := k.Wait(soon(t), "/at", true, index)
			if err != nil || e.Index != index || *e.Node.Value != fmt.Sprint(i) || e.Node.CreatedIndex != index {
				t.Fatalf("the event at %d is %+v, %v", index, e, err)
			}
			e, err = k.Get(soon(t), fmt.Sprintf("/at/%02d", i), true)
			if err != nil || e.Node.ModifiedIndex != index || e.Node.Nodes[0].ModifiedIndex != index {
				t.Fatalf("what was written at %d is read as %s, %v", index, text(t, e), err)
			}
		}
	}
}

// TestAboutOneKey: writes about the same keys that wait together come to what they would one after the other.
func TestAboutOneKey(t *testing.T) {
	t.Parallel()
	d, g := gated(t)
	no := false
	put(t, d.Keys, "/k", Put{Value: "0"})
	put(t, d.Keys, "/dir/k", Put{Value: "0"})
	got := together(
		t, d, g,
		d.putting(t, "/k", Put{Value: "1", PrevValue: "0"}),
		d.putting(t, "/a", Put{Value: "a"}),
		d.putting(t, "/k", Put{Value: "2", PrevValue: "0"}),
		d.putting(t, "/b", Put{Value: "b"}),
		d.putting(t, "/new", Put{Value: "1", PrevExist: &no}),
		d.putting(t, "/new", Put{Value: "2", PrevExist: &no}),
		d.putting(t, "/in/new/a", Put{}),
		d.putting(t, "/in/new/b", Put{}),
		d.putting(t, "/dir/more", Put{Value: "1"}),
		func() (*Event, error) { return d.Delete(soon(t), "/dir", Delete{Recursive: true}) },
	)
	want := []string{
		"compareAndSwap /k=1", "set /a=a", "101 [0 != 1]", "set /b=b", "create /new=1", "105 /new", "set /in/new/a=",
		"set /in/new/b=", "set /dir/more=1", "delete /dir",
	}
	if diff := cmp.Diff(want, texts(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := d.Get(soon(t), "/dir", true); refused(err) != CodeNotFound {
		t.Errorf("the directory is read with %v", err)
	}
}

func texts(results []result) []string {
	var all []string
	for _, r := range results {
		all = append(all, r.String())
	}
	return all
}

// TestTurns: a run with a thousand writes waiting keeps nobody else waiting, and writes of one key do not keep those of
// others from sharing transactions.
func TestTurns(t *testing.T) {
	t.Parallel()
	d, g := gated(t)
	const keys, many, others = 16, looks + 4, 5
	for i := range keys {
		put(t, d.Keys, fmt.Sprint("/p/run_noisy/", i), Put{})
	}
	var writes []func() (*Event, error)
	for i := range many {
		writes = append(writes, d.putting(t, fmt.Sprint("/p/run_noisy/", i%keys), Put{}))
	}
	for i := range others {
		writes = append(writes, d.putting(t, fmt.Sprintf("/p/run_%d", i), Put{}))
	}
	results := together(t, d, g, writes...)
	for i, r := range results {
		if r.err != nil {
			t.Fatalf("write %d comes to %v", i, r)
		}
		if first := results[0].event.Index / stride; i >= many && r.event.Index/stride != first {
			t.Errorf("write %d of another run is of revision %d, the first of the noisy run's of %d", i-many,
				r.event.Index/stride, first)
		}
	}
	if n := g.transactions(); n != many/keys {
		t.Errorf("%d writes of %d keys took %d transactions", many, keys, n)
	}
}

// TestLanes: each lane hands out what waits in its order, one at a time with the others; what is put back is next, each
// lane in its order again.
func TestLanes(t *testing.T) {
	t.Parallel()
	q := proposals{wake: make(chan struct{}, 1)}
	for _, key := range strings.Fields("/run_a/1 /run_a/2 /run_a/3 /run_b/1 /x /run_c/1 /y /run_c/2") {
		q.add(&proposal{key: key})
	}
	taken := func(most int) (all []*proposal, keys string) {
		for _, p := range q.take(most) {
			all, keys = append(all, p), keys+" "+p.key
		}
		return all, keys
	}
	first, keys := taken(5)
	if want := " /run_a/1 /run_b/1 /x /run_c/1 /run_a/2"; keys != want {
		t.Errorf("taken are%s, not%s", keys, want)
	}
	q.add(&proposal{key: "/run_b/2"})
	q.putBack(first[3:])
	q.putBack(nil)
	if n := q.size(); n != 6 {
		t.Errorf("%d wait", n)
	}
	want := " /run_c/1 /run_a/2 /y /run_b/2 /run_c/2 /run_a/3"
	if _, keys := taken(100); keys != want {
		t.Errorf("then are%s, not%s", keys, want)
	}
	if n := q.size(); n != 0 || len(q.lanes) != 0 || len(q.turns) != 0 {
		t.Errorf("%d, %d lanes, %d turns are left", n, len(q.lanes), len(q.turns))
	}
}

// TestLostToAnother: where another process has written one of the keys, that write alone is decided against.
func TestLostToAnother(t *testing.T) {
	t.Parallel()
	d, g := gated(t)
	other := open(t, embedded(t), Options{})
	put(t, d.Keys, "/k", Put{Value: "0"})
	once := sync.OnceFunc(func() { put(t, other.Keys, "/k", Put{Value: "theirs"}) })
	g.disturb = func(_ int, commit commitCall) (*clientv3.TxnResponse, error) {
		once()
		return commit()
	}
	got := together(
		t, d, g, d.putting(t, "/a", Put{}), d.putting(t, "/k", Put{Value: "1", PrevValue: "0"}),
		d.putting(t, "/b", Put{}), d.putting(t, "/c", Put{}),
	)
	want := []string{"set /a=", "101 [0 != theirs]", "set /b=", "set /c="}
	if diff := cmp.Diff(want, texts(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLosesAgain: while another process writes a key again and again, a write of it keeps nobody else waiting for more
// than one transaction at a time, of other runs or its own, and has its turn between theirs.
func TestLosesAgain(t *testing.T) {
	t.Parallel()
	d, g := gated(t)
	other := open(t, embedded(t), Options{})
	put(t, d.Keys, "/run_a/k", Put{})
	put(t, d.Keys, "/run_a/l", Put{})
	var theirs []uint64 // of one transaction at a time
	g.disturb = func(_ int, commit commitCall) (*clientv3.TxnResponse, error) {
		if len(theirs) < 20 {
			e, err := other.Put(soon(t), "/run_a/k", Put{Value: "theirs"})
			if err != nil {
				return nil, err
			}
			theirs = append(theirs, e.Index)
		}
		return commit()
	}
	got := together(
		t, d, g, d.putting(t, "/run_a/k", Put{Value: "ours"}), d.putting(t, "/run_a/k", Put{Value: "too"}),
		d.putting(t, "/run_a/l", Put{}),
		d.putting(t, "/run_b/k", Put{}), d.putting(t, "/run_c/k", Put{}), d.putting(t, "/run_d/k", Put{}),
	)
	if len(theirs) < 20 {
		t.Errorf("the write was done after it had lost %d times", len(theirs))
	}
	if got[0].event != nil && got[1].event != nil && got[0].event.Index > got[1].event.Index {
		t.Error("the second write of the key was done before the first")
	}
	for i, r := range got {
		if r.err != nil {
			t.Fatalf("write %d comes to %v", i, r)
		}
		// With all it loses the first transaction, and alone the second one.
		if i > 1 && len(theirs) > 3 && r.event.Index > theirs[3] {
			t.Errorf("%v waited for more than the first 3 transactions", r)
		}
	}
}

// TestTooLarge: what is too much for one transaction becomes several, whether etcd says so or it is known before.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse error
		ops    int // beyond which the store refuses
		value  int
	}{
		"operations":       {rpctypes.ErrTooManyOps, 5, 1},
		"request":          {rpctypes.ErrRequestTooLarge, 5, 1},
		"the store's own":  {nil, 0, 100 << 10},
		"of more than 128": {nil, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, g := gated(t)
			if c.refuse != nil {
				g.disturb = func(ops int, commit commitCall) (*clientv3.TxnResponse, error) {
					if ops > c.ops {
						return nil, c.refuse
					}
					return commit()
				}
			}
			var writes []func() (*Event, error)
			for i := range 150 {
				writes = append(writes, d.putting(t, fmt.Sprintf("/%d", i), Put{Value: strings.Repeat("x", c.value)}))
				if c.value > 1 && i == 40 {
					break
				}
			}
			for i, r := range together(t, d, g, writes...) {
				if r.err != nil || r.event.Action != "set" {
					t.Fatalf("write %d comes to %v", i, r)
				}
			}
			if n := g.transactions(); n < 2 {
				t.Errorf("%d transactions", n)
			}
		})
	}
}

// TestTogetherBeyondLimits: writes that share a transaction take no more than they would one after the other, of a run
// and of all.
func TestTogetherBeyondLimits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		o      Options
		prefix string
		put    Put
	}{
		"keys of all":    {Options{MaxKeys: 22}, "/at/", Put{}}, // with /plug and /at
		"keys of a run":  {Options{MaxKeys: 42}, "/run_a/", Put{}},
		"bytes of all":   {Options{MaxBytes: 2200}, "/at/", Put{Value: long}},
		"bytes of a run": {Options{MaxBytes: 4400}, "/run_a/", Put{Value: long}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, g := gatedWith(t, c.o)
			put(t, d.Keys, c.prefix+"k", Put{}) // the directory is there, so that none of them makes it
			if _, err := d.Delete(t.Context(), c.prefix+"k", Delete{}); err != nil {
				t.Fatal(err)
			}
			var writes []func() (*Event, error)
			for i := range 30 {
				writes = append(writes, d.putting(t, fmt.Sprintf("%s%02d", c.prefix, i), c.put))
			}
			taken := 0
			for _, r := range together(t, d, g, writes...) {
				if r.err == nil {
					taken++
				} else if refused(r.err) != CodeLimit {
					t.Errorf("a write comes to %v", r)
				}
			}
			if taken != 20 {
				t.Errorf("%d writes were taken, not 20", taken)
			}
		})
	}
}

// TestStoreDies: of a transaction that the store did not answer nobody is told that it was done, nor that it was not;
// what was not sent, because its client has gone, is not done later.
func TestStoreDies(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection is lost")
	for _, written := range []bool{false, true} {
		t.Run(fmt.Sprintf("written %t", written), func(t *testing.T) {
			t.Parallel()
			d, g := gated(t)
			put(t, d.Keys, "/a", Put{Value: "0"})
			g.disturb = func(_ int, commit commitCall) (*clientv3.TxnResponse, error) {
				if written {
					if _, err := commit(); err != nil {
						t.Error(err)
					}
				}
				return nil, lost
			}
			var gone context.Context
			gone, g.gathered = context.WithCancel(t.Context())
			defer g.gathered()
			got := together(
				t, d, g, d.putting(t, "/a", Put{Value: "1", PrevValue: "0"}), d.putting(t, "/b", Put{Value: "1"}),
				func() (*Event, error) { return d.Put(gone, "/c", Put{}) },
			)
			for i, r := range got[:2] {
				if refused(r.err) != CodeStore {
					t.Errorf("write %d comes to %v", i, r)
				}
			}
			g.mu.Lock()
			g.disturb = nil
			g.mu.Unlock()
			for key, want := range map[string]bool{"/b": written, "/c": false} {
				_, err := d.Get(soon(t), key, false)
				if (err == nil) != want || err != nil && refused(err) != CodeNotFound {
					t.Errorf("%s is there: %v, want %t", key, err, want)
				}
			}
			want := map[bool]string{false: "compareAndSwap /a=2", true: "101 [0 != 1]"}[written]
			e, err := d.Put(soon(t), "/a", Put{Value: "2", PrevValue: "0"})
			if got := (result{e, err}).String(); got != want {
				t.Errorf("the swap once more comes to %s, not %s", got, want)
			}
		})
	}
}
