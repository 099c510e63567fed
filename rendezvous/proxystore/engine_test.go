package proxystore

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/gate"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// two are pods of one run, with a client each.
func two(t *testing.T, at string) (a, b peer) {
	t.Helper()
	o := Options{Run: newRun()}
	return newPod(t, at, o).dial(t), newPod(t, at, o).dial(t)
}

// TestPods: what one pod writes the others see, and in the order in which it wrote.
func TestPods(t *testing.T) { ways(t, podsWay) }

func podsWay(t *testing.T, at string) {
	a, b := two(t, at)
	for i := range 20 {
		key := fmt.Sprintf("/%d", i)
		a.say(tcpstore.Set, key, "41") // has no reply
		equal(t, "behind the SET", a.add(key, 1), 42)
		equal(t, "elsewhere", b.get(key), "42")
	}
	equal(t, "compared with something else", b.swap("/0", "41", "x"), "42")
	equal(t, "compared", b.swap("/0", "42", "x"), "x")
	equal(t, "what another has changed", a.swap("/0", "42", "y"), "x")
	equal(t, "absent", a.swap("/none", "42", "y"), "42")
	equal(t, "removed", a.remove("/0"), 1)
	equal(t, "removed again", b.remove("/0"), 0)
	b.say(tcpstore.Append, "/1", "0")
	equal(t, "appended", b.get("/1"), "420")
	a.write([]byte{byte(tcpstore.GetNumKeys)})
	equal(t, "keys", a.number(), 19)
}

// TestRuns: the keys of another run are other keys.
func TestRuns(t *testing.T) {
	t.Parallel()
	name := newRun()
	a, b := newPod(t, etcd(t), Options{Run: name}).dial(t), newPod(t, etcd(t), Options{Run: name + "/keys"}).dial(t)
	equal(t, "first", a.add("/n", 1), 1)
	equal(t, "of the other run", b.add("/n", 1), 1)
}

// TestMany: lists that are longer than an etcd's transactions.
func TestMany(t *testing.T) { ways(t, manyWay) }

func manyWay(t *testing.T, at string) {
	a, b := two(t, at)
	const many = 300
	var pairs, keys []string
	for i := range many {
		keys = append(keys, fmt.Sprintf("/%03d", i))
		pairs = append(pairs, keys[i], strings.Repeat("x", i))
	}
	b.wait(keys...)
	a.list(tcpstore.MultiSet, many, pairs...)
	b.status(0)
	b.list(tcpstore.MultiGet, many, keys...)
	for i := range many {
		equal(t, keys[i], b.value(), strings.Repeat("x", i))
	}
	b.write([]byte{byte(tcpstore.ListKeys)})
	equal(t, "keys", b.number(), many)
	for range many {
		b.value()
	}
	b.list(tcpstore.MultiGet, 3, "/002", "/001", "/002")
	for _, want := range []string{"xx", "x", "xx"} {
		equal(t, "named twice", b.value(), want)
	}
}

// TestManyLong: values of which a gate sends some at a time.
func TestManyLong(t *testing.T) {
	t.Parallel()
	g, at := gatedBy(t, etcd(t), gate.Options{Observer: gate.Observer{
		Refused: func(reason string) { t.Errorf("the gate counts as refused: %s", reason) },
	}})
	run := newRun()
	a, b := newPod(t, at, Options{Run: run}).dial(t), newPod(t, at, Options{Run: run}).dial(t)
	const many, long = 12, 1_000_000
	var keys, values []string
	for i := range many {
		keys = append(keys, fmt.Sprintf("/%02d", i))
		values = append(values, strings.Repeat(string(rune('a'+i)), long))
		a.say(tcpstore.Set, keys[i], values[i])
	}
	until(t, func() bool {
		return slices.ContainsFunc(g.Runs(), func(r gate.Run) bool { return r.ID == run && r.Keys > many })
	})
	b.list(tcpstore.MultiGet, many, keys...)
	for i := range many {
		if got := b.value(); got != values[i] {
			t.Fatalf("%s: got %d bytes, %.3q", keys[i], len(got), got)
		}
	}
}

// TestManyLongNames: names of keys of which a gate sends some at a time.
func TestManyLongNames(t *testing.T) {
	t.Parallel()
	g, at := gatedBy(t, etcd(t), gate.Options{})
	run := newRun()
	a := newPod(t, at, Options{Run: run}).dial(t)
	const many, long = 120, 60 << 10
	want := map[string]bool{}
	for i := range many {
		key := fmt.Sprintf("/%03d%s", i, strings.Repeat("k", long))
		want[key] = true
		a.say(tcpstore.Set, key, "v")
	}
	until(t, func() bool {
		return slices.ContainsFunc(g.Runs(), func(r gate.Run) bool { return r.ID == run && r.Keys > many })
	})
	a.write([]byte{byte(tcpstore.ListKeys)})
	equal(t, "keys", a.number(), many)
	for range many {
		delete(want, a.value())
	}
	equal(t, "keys that are not listed", len(want), 0)
}

// TestLongAnswer: who reads more at once than an answer may have is cut off; whether the keys are there he may ask.
func TestLongAnswer(t *testing.T) { ways(t, longAnswerWay) }

func longAnswerWay(t *testing.T, at string) {
	p := newPod(t, at, Options{Run: newRun(), Answer: 2500})
	a, b := p.dial(t), p.dial(t)
	keys := []string{"/1", "/2", "/3"}
	for _, key := range keys {
		a.say(tcpstore.Set, key, strings.Repeat("x", 1000))
	}
	a.list(tcpstore.MultiGet, 2, keys[:2]...)
	for range 2 {
		equal(t, "value", len(a.value()), 1000)
	}
	b.wait(keys...)
	b.status(0)
	b.list(tcpstore.MultiGet, 3, keys...)
	b.cut()
	for name, again := range map[string][]string{"one": {"/1", "/1", "/1"}, "two": {"/1", "/2", "/1"}} {
		c := p.dial(t)
		c.list(tcpstore.MultiGet, 2, again[:2]...)
		for range 2 {
			equal(t, name+" and another", len(c.value()), 1000)
		}
		c.list(tcpstore.MultiGet, 3, again...)
		c.cut()
	}
	equal(t, "others", len(a.get("/3")), 1000)
}

// TestWait: a wait ends with the writes of others, though one is gone again by then, or by its client's word.
func TestWait(t *testing.T) { ways(t, waitWay) }

func waitWay(t *testing.T, at string) {
	p := newPod(t, at, Options{Run: newRun()})
	a, b := p.dial(t), newPod(t, at, Options{Run: p.options.Run}).dial(t)
	a.wait("/1", "/2")
	until(t, p.waiting) // what comes and goes before it has looked it cannot know
	equal(t, "beside the wait", b.add("/other", 1), 1)
	b.say(tcpstore.Set, "/1", "x")
	equal(t, "removed", b.remove("/1"), 1)
	b.say(tcpstore.Set, "/2", "x")
	a.status(0)
	a.wait("/1")
	a.write([]byte{byte(tcpstore.CancelWait)})
	a.status(1)
	b.say(tcpstore.Set, "/1", "x")
	equal(t, "nothing is left of the wait", a.get("/1"), "x")
	a.say(tcpstore.Get, "/late")
	b.say(tcpstore.Set, "/late", "v")
	equal(t, "waited for", a.value(), "v")
}

// TestBarrier: all go on with the last, and one that has given up stays counted, as with torch's server.
func TestBarrier(t *testing.T) { ways(t, barrierWay) }

func barrierWay(t *testing.T, at string) {
	a, b := two(t, at)
	a.barrier("/b", 3)
	until(t, func() bool { // a count that is not complete ends no wait
		b.write([]byte{byte(tcpstore.GetNumKeys)})
		return b.number() == 1
	})
	b.wait("/b")
	b.status(0)
	b.barrier("/b", 3)
	b.write([]byte{byte(tcpstore.CancelWait)})
	b.status(1)
	b.barrier("/b", 3)
	b.status(0)
	a.status(0)
	equal(t, "counted", a.get("/b"), "3")
	a.barrier("/b", 2) // has been met
	a.status(0)
}

// TestRefused: what is not served, or is too much, ends its connection and nobody else's.
func TestRefused(t *testing.T) { ways(t, refusedWay) }

func refusedWay(t *testing.T, at string) {
	p := newPod(t, at, Options{Run: newRun(), Pending: 3 << 20})
	good := p.dial(t)
	good.say(tcpstore.Set, "/text", "x")
	for name, bad := range map[string]func(peer){
		"queue":       func(a peer) { a.say(tcpstore.QueuePush, "/q", "v") },
		"queue read":  func(a peer) { a.say(tcpstore.QueuePop, "/q") },
		"queue count": func(a peer) { a.say(tcpstore.QueueLen, "/q") },
		"value":       func(a peer) { a.say(tcpstore.Set, "/v", strings.Repeat("x", mostValue+1)) },
		"number":      func(a peer) { a.write(number(text([]byte{byte(tcpstore.Add)}, "/text"), 1)) },
		"barrier":     func(a peer) { a.barrier("/text", 1) },
		"growth": func(a peer) {
			for range 2 {
				a.say(tcpstore.Append, "/grown", strings.Repeat("x", mostValue-100))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := p.dial(t)
			a.t = t
			bad(a)
			a.cut()
			equal(t, "others", good.get("/text"), "x")
		})
	}
}

// TestUnwatched: of one proxy's waits only the first is let through, which hears of its key at once, and the other
// looks from time to time.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	var refused atomic.Int64
	g, at := gatedBy(t, etcd(t), gate.Options{
		MaxWaits: 1, Observer: gate.Observer{Refused: func(string) { refused.Add(1) }},
	})
	run := newRun()
	p := newPod(t, at, Options{Run: run})
	a, b := p.dial(t), p.dial(t)
	a.wait("/first")
	until(t, func() bool { return g.Stats().Waits == 1 })
	b.wait("/second")
	until(t, func() bool { return refused.Load() > 0 })
	c := newPod(t, etcd(t), Options{Run: run}).dial(t)
	c.say(tcpstore.Set, "/second", "v")
	b.status(0)
	if g.Stats().Waits != 1 {
		t.Error("the wait that was let through has ended")
	}
	c.say(tcpstore.Set, "/first", "v")
	a.status(0)
}

// TestPauses: who is refused again and again looks ever more seldom, and at once where a watch has lasted.
func TestPauses(t *testing.T) {
	pause, sum := leastPause, time.Duration(0)
	for range 9 {
		pause = unwatched(pause, time.Millisecond)
		sum += pause
	}
	equal(t, "pause", pause, mostUnwatched)
	equal(t, "pauses", sum, 5080*time.Millisecond+2*mostUnwatched)
	equal(t, "after a watch", unwatched(pause, time.Minute), leastPause)
}

// TestInvalid: what no run can be.
func TestInvalid(t *testing.T) {
	for name, o := range map[string]Options{
		"no run": {}, "short": {Run: "a", TTL: time.Second}, "negative": {Run: "a", TTL: -time.Second},
	} {
		if _, err := New(nil, o); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// TestLease: a run is kept while a pod lives, and gone afterwards.
func TestLease(t *testing.T) {
	t.Parallel()
	c, name := client(t, etcd(t)), newRun()
	o := Options{Run: name, TTL: 30 * time.Second}
	a, b := newPod(t, etcd(t), o), newPod(t, etcd(t), o)
	a.dial(t).add("/n", 1)
	b.dial(t).add("/n", 1)
	all, err := c.Get(within(t), "/tegen/c10d/"+name+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	lease := clientv3.LeaseID(all.Kvs[0].Lease)
	for _, kv := range all.Kvs {
		equal(t, "lease of "+string(kv.Key), clientv3.LeaseID(kv.Lease), lease)
	}
	equal(t, "keys: one of torch, two of pods, the lease", len(all.Kvs), 4)
	last := int64(1 << 32)
	until(t, func() bool { // until it is renewed
		left, err := c.TimeToLive(within(t), lease)
		if err != nil {
			t.Fatal(err)
		}
		renewed := left.TTL > last
		last = left.TTL
		return renewed
	})
}

// TestLeave: what a run has written goes with its last pod, so that its next attempt begins anew.
func TestLeave(t *testing.T) {
	t.Parallel()
	o := Options{Run: newRun()}
	a, b := newPod(t, etcd(t), o), newPod(t, etcd(t), o)
	equal(t, "of one", a.dial(t).add("/n", 1), 1)
	equal(t, "of both", b.dial(t).add("/n", 1), 2)
	end := func(p pod) {
		if err := p.Close(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	end(a)
	equal(t, "of the one that is left", newPod(t, etcd(t), o).dial(t).get("/n"), "2") // and never writes
	end(b)
	equal(t, "of the next attempt", newPod(t, etcd(t), o).dial(t).add("/n", 1), 1)
}

// TestLeaseGranted: a run is renewed as whoever began it has granted it, whatever another pod is told.
func TestLeaseGranted(t *testing.T) {
	t.Parallel()
	c, name := client(t, etcd(t)), newRun()
	first := newPod(t, etcd(t), Options{Run: name, TTL: 4 * time.Second})
	first.dial(t).add("/n", 1)
	newPod(t, etcd(t), Options{Run: name}).dial(t).add("/n", 1)
	kv, err := c.Get(within(t), "/tegen/c10d/"+name+"/lease")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	for range 8 { // it would have ended meanwhile
		time.Sleep(time.Second)
		left, err := c.TimeToLive(within(t), clientv3.LeaseID(kv.Kvs[0].Lease))
		if err != nil || left.TTL < 0 {
			t.Fatal(left, err)
		}
	}
}

// TestLeaseEnds: keys that have expired are a store that is empty, to pods that go on as well.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	c, name := client(t, etcd(t)), newRun()
	a := newPod(t, etcd(t), Options{Run: name}).dial(t)
	equal(t, "first", a.add("/n", 5), 5)
	kv, err := c.Get(within(t), "/tegen/c10d/"+name+"/lease")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Revoke(within(t), clientv3.LeaseID(kv.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	equal(t, "afterwards", a.add("/n", 1), 1)
	equal(t, "again", a.add("/n", 1), 2)
	equal(t, "absent", a.swap("/other", "x", "y"), "x")
}
