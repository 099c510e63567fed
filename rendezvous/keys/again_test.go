package keys

import (
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestKeptPlans: what was decided before a write waited holds for its transaction, unless the tree has changed, was
// loaded again, or time has passed, which is in the plan of a node with a TTL.
func TestKeptPlans(t *testing.T) {
	t.Parallel()
	now := newTree()
	now.index = 7
	soon := time.Now().Add(time.Minute) // however long the test takes
	for name, c := range map[string]struct {
		by    basis
		again bool
	}{
		"the same":          {basis{now, 7, soon}, false},
		"the tree changed":  {basis{now, 6, soon}, true},
		"it was reloaded":   {basis{newTree(), 7, soon}, true},
		"time has passed":   {basis{now, 7, time.Now().Add(-time.Second)}, true},
		"it has no plan":    {basis{}, true},
		"it has an old one": {basis{newTree(), 6, time.Time{}}, true},
	} {
		k := &Keys{tree: now, o: Options{}.filled()}
		decided := 0
		decide := func(t *tree, at time.Time) (*plan, *Error) {
			decided++
			return Put{TTL: seconds(2)}.plan(t, "/k", at)
		}
		kept, refused := decide(now, c.by.time)
		if refused != nil {
			t.Fatal(refused)
		}
		p := &proposal{
			ctx: t.Context(), key: "/k", decide: decide, until: soon, plan: kept, decidedBy: c.by,
			done: make(chan verdict, 1),
		}
		k.queue.add(p)
		decided = 0
		b := k.gather(batchLimits{1, 1})
		if len(b.all) != 1 {
			t.Fatalf("%s: %d writes are taken", name, len(b.all))
		}
		if want := map[bool]int{true: 1}[c.again]; decided != want || (p.plan == kept) == c.again {
			t.Errorf("%s: it was decided upon %d times, not %d", name, decided, want)
		}
		k.queue.putBack(b.all) // its transaction has failed, as another process has changed what it was decided upon
		if before := decided; len(k.gather(batchLimits{1, 1}).all) != 1 || decided != before+1 {
			t.Errorf("%s: after it has failed it was decided upon %d times, not once", name, decided-before)
		}
	}
}

// TestChangedByAnother: a write whose key another program has changed in the store, which changes no index, is decided
// upon again.
func TestChangedByAnother(t *testing.T) {
	t.Parallel()
	d, g := gatedWith(t, Options{Timeout: 5 * time.Second})
	put(t, d.Keys, "/k", Put{Value: "0"})
	once := sync.OnceFunc(func() {
		if _, err := embedded(t).Put(soon(t), d.key("/k"), (&record{value: "theirs"}).encode()); err != nil {
			t.Error(err)
		}
	})
	g.disturb = func(_ int, commit commitCall) (*clientv3.TxnResponse, error) {
		once()
		return commit()
	}
	e, err := d.Put(soon(t), "/k", Put{Value: "1", PrevValue: "0"})
	if got, want := (result{e, err}).String(), "101 [0 != theirs]"; got != want {
		t.Errorf("it comes to %s, not %s", got, want)
	}
}

// TestGivenUp: a write whose time was over before its transaction began, so that it was answered as failed, is not done
// later.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	d, g := gatedWith(t, Options{Timeout: 500 * time.Millisecond})
	hold, held := make(chan struct{}), make(chan struct{})
	g.mu.Lock()
	g.hold, g.held = hold, held
	g.mu.Unlock()
	var first sync.WaitGroup
	first.Go(func() {
		_, err := d.Put(soon(t), "/first", Put{})
		t.Logf("the first write comes to %v", err)
	})
	<-held
	if _, err := d.Put(soon(t), "/late", Put{}); refused(err) != CodeStore {
		t.Errorf("a write that waits for too long comes to %v", err)
	}
	close(hold)
	first.Wait()
	until(t, "nothing is written any more", func() bool { // it would take along what still waits
		_, err := d.Put(soon(t), "/next", Put{})
		return err == nil
	})
	var err error
	until(t, "nothing is read any more", func() bool {
		_, err = d.Get(soon(t), "/late", false)
		return refused(err) != CodeStore
	})
	if refused(err) != CodeNotFound {
		t.Errorf("reading what was not to be written comes to %v", err)
	}
}
