package proxystore

import (
	"os"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// TestPartition: no proxy reaches the etcd, which runs, for 15 minutes. No key expires, a request in doubt is carried
// out once, and what waits goes on, whichever proxy is back first. Time and the lease are 100 times shorter, unless
// TEGEN_PARTITION sets how long the partition is; the lease is then the default.
func TestPartition(t *testing.T) {
	const scale = 100
	length, ttl := 15*time.Minute/scale, DefaultTTL/scale
	if text := os.Getenv("TEGEN_PARTITION"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		ttl = DefaultTTL
	}
	t.Parallel()
	for name, before := range map[string]func(*testing.T, string) (string, string){
		"etcd":     func(_ *testing.T, at string) (string, string) { return at, at },
		"gate":     func(t *testing.T, at string) (string, string) { g := gated(t, at); return g, g },
		"gateways": func(t *testing.T, at string) (string, string) { return gated(t, at), gated(t, at) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := before(t, etcd(t))
			partition(t, [2]*relay{newRelay(t, first), newRelay(t, second)}, ttl, length)
		})
	}
}

// partition cuts two pods off from the etcd.
func partition(t *testing.T, relays [2]*relay, ttl, length time.Duration) {
	log := &said{}
	o := Options{Run: newRun(), TTL: ttl, Patience: 10 * time.Millisecond, Attempt: time.Second, Log: log.logger()}
	p, q := newPod(t, relays[0].address, o), newPod(t, relays[1].address, o)
	a, b, waits := p.dial(t), q.dial(t), q.dial(t)
	equal(t, "before", a.add("/n", 1), 1)
	a.say(tcpstore.Set, "/k", "old")
	equal(t, "before", a.get("/k"), "old") // so that no answer is owed
	b.say(tcpstore.Set, "/only", "b has seen this")
	equal(t, "before", b.get("/k"), "old")
	equal(t, "before", b.get("/only"), "b has seen this")
	waits.wait("/late")
	until(t, q.waiting)
	watches := client(t, etcd(t))
	relays[0].deaf.Store(true)
	a.write(number(text([]byte{byte(tcpstore.Add)}, "/n"), 10))
	until(t, func() bool { // until it is carried out, of which nobody has heard
		r, err := watches.Get(within(t), p.keys.values+"/n")
		return err == nil && string(r.Kvs[0].Value) == "v11"
	})
	for _, r := range relays {
		r.cut()
	}
	relays[0].deaf.Store(false)
	a.say(tcpstore.Set, "/k", "new") // behind what is in doubt
	a.wait("/n")
	time.Sleep(length)
	relays[1].open()
	equal(t, "what the first to be back reads", b.swap("/k", "never", "never"), "old")
	if t.Failed() {
		t.FailNow() // or the rest waits for what is gone
	}
	equal(t, "what it adds", b.add("/n", 100), 111)
	relays[0].open()
	equal(t, "what was in doubt", a.number(), 11)
	a.status(0)
	equal(t, "what waited behind it", b.swap("/k", "new", "newer"), "newer")
	equal(t, "once", a.add("/n", 0), 111)
	equal(t, "what one of them alone had seen", a.get("/only"), "b has seen this")
	a.say(tcpstore.Set, "/late", "v")
	waits.status(0)
	equal(t, "words of lost keys", log.count(lostText), 0)
}
