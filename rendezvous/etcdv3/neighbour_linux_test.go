package etcdv3

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous"
)

// TestSilent: a port whose kernel answers nothing, here one whose queue is full, is given up by the kernel in seconds
// and not in minutes, and is a loss.
func TestSilent(t *testing.T) {
	t.Parallel()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(at.(*syscall.SockaddrInet4).Port))
	first, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	l := &link{addr: addr, greeting: greeting("a"), broken: time.Now()}
	l.reached.Store(true)
	if err := l.hold(within(t)); !l.gone(err) || !silent(err) {
		t.Errorf("%v", err)
	}
}

// deaf is a listener that can fall silent, as a machine does that is lost: its kernel answers no dial then.
type deaf struct {
	*doorbell
	t      *testing.T
	silent chan struct{}
}

// Accept does not return once the listener is silent.
func (d *deaf) Accept() (net.Conn, error) {
	conn, err := d.doorbell.Accept()
	select {
	case <-d.silent:
		if err == nil {
			_ = conn.Close()
		}
		<-d.t.Context().Done()
		return nil, net.ErrClosed
	default:
		return conn, err
	}
}

// fall makes it silent: nobody accepts, and a queue of one is full.
func (d *deaf) fall() {
	d.t.Helper()
	close(d.silent)
	raw, err := d.Listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		d.t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), 0) }); err != nil || failed != nil {
		d.t.Fatal(err, failed)
	}
	for unanswered := 0; unanswered < 2; { // who accepts just now may take the first one a little late
		conn, err := net.DialTimeout("tcp", d.Addr().String(), 100*time.Millisecond)
		if err != nil {
			unanswered++
			continue
		}
		unanswered = 0
		d.t.Cleanup(func() { _ = conn.Close() })
	}
}

// apart are agents that take themselves to be on these machines.
func apart(t *testing.T, c *clientv3.Client, s rendezvous.Settings, o Options, hosts ...string) ([]*peer, []*deaf) {
	t.Helper()
	var all []*peer
	var bells []*deaf
	for i, host := range hosts {
		bell := &deaf{listenAt(t, host), t, make(chan struct{})}
		t.Cleanup(func() { _ = bell.Close() })
		o.Listen = func() (net.Listener, error) { return bell, nil }
		p := newPeer(t, c, s, fmt.Sprintf("%s-%d", s.RunID, i), o)
		p.agent.Host = host
		all, bells = append(all, p), append(bells, bell)
	}
	return all, bells
}

// TestWitness: silence counts as a loss only where somebody else answers, so that an agent which has lost its own
// network and not its store takes nobody for gone. Two agents have nobody to ask.
func TestWitness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of, silent int
		left       int64
	}{"one of three": {3, 1, 2}, "three of three": {3, 3, 3}, "two of two": {2, 2, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := open(t)
			var log said
			o := near
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			all, bells := apart(t, client, settings(t, c.of, c.of), o, "127.0.0.2", "127.0.0.3", "127.0.0.4")
			all, bells = all[:c.of], bells[:c.of]
			together(all, join(t))
			connected(t, c.of-1, all...)
			for _, bell := range bells[:c.silent] {
				bell.fall()
			}
			for _, bell := range bells[:c.silent] {
				bell.shake()
			}
			if c.left < int64(c.of) {
				waitKeys(t, client, runKeys(t)+"agents/", c.left)
				return
			}
			eventually(t, "that all have found all others silent", func() bool {
				return log.count("nobody else has answered") == c.of*(c.of-1)
			})
			waitKeys(t, client, runKeys(t)+"agents/", c.left)
		})
	}
}

// TestWitnesses: those who are asked are on other machines than the silent one and the one that asks, neighbours at the
// addresses where they were reached and others of the run as they say; only an agent's own words are an answer.
func TestWitnesses(t *testing.T) {
	t.Parallel()
	c, run := open(t), settings(t, 3, 3)
	all, bells := apart(t, c, run, near, "127.0.0.2", "localhost", "127.0.0.3", "127.0.0.4", "127.0.0.2")
	members, spares := all[:3], all[3:]
	together(members, join(t))
	connected(t, 2, members...)
	spares[0].agent.ID = "a spare" // which comes before the others by name
	waiting, stop := context.WithCancel(t.Context())
	var g sync.WaitGroup
	t.Cleanup(func() { stop(); g.Wait() })
	for _, p := range spares {
		g.Go(func() { _, _ = p.Join(waiting) })
	}
	waitKeys(t, c, runKeys(t)+"agents/", 5)

	at := func(host string, i int) string {
		return net.JoinHostPort(host, strconv.Itoa(bells[i].Addr().(*net.TCPAddr).Port))
	}
	spare := at("127.0.0.4", 3)
	for about, want := range map[string][]string{
		"127.0.0.3": {at("127.0.0.1", 1), spare, at("localhost", 1)},
		"localhost": {at("127.0.0.3", 2), at("127.0.0.3", 2), spare},
	} {
		targets, err := members[0].session.witnesses(within(t), neighbour{Addr: net.JoinHostPort(about, "1")})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range targets {
			got = append(got, one.addr)
			if !anyAnswers(within(t), []target{one}) {
				t.Errorf("%s does not answer", one.addr)
			}
			one.greeting = greeting("another's")
			if anyAnswers(within(t), []target{one}) {
				t.Errorf("%s is taken for another", one.addr)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("asked about %s (-want +got):\n%s", about, diff)
		}
	}
}

// lateKV answers transactions as late as a test says.
type lateKV struct {
	clientv3.KV
	late func()
}

func (k lateKV) Txn(ctx context.Context) clientv3.Txn {
	k.late()
	return k.KV.Txn(ctx)
}

// TestWitnessLate: a witness that answers only after the neighbour's second SYN has left, since the store named it
// late, does not show that this machine's network worked before that, and so nobody is lost.
func TestWitnessLate(t *testing.T) {
	t.Parallel()
	client := open(t)
	var log said
	o := near
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	all, bells := apart(t, client, settings(t, 3, 3), o, "127.0.0.2", "127.0.0.3", "127.0.0.4")
	var slow atomic.Bool
	for _, p := range all {
		p.client = openAt(t, shared.endpoint)
		p.client.KV = lateKV{p.client.KV, func() {
			if slow.Load() {
				time.Sleep(witnessLimit + 100*time.Millisecond)
			}
		}}
	}
	together(all, join(t))
	connected(t, 2, all...)
	slow.Store(true)
	bells[2].fall()
	bells[2].shake()
	eventually(t, "that both others have found it silent", func() bool {
		return log.count("nobody else has answered") == 2
	})
	waitKeys(t, client, runKeys(t)+"agents/", 3)
}

// TestWitnessFirst: where the network itself answers a dial, that no route leads there, it does so at once, and no
// second SYN follows. So the next dial waits for the witnesses: their answer counts only if it came before.
func TestWitnessFirst(t *testing.T) {
	t.Parallel()
	unreachable := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
	l := &link{log: slog.New(slog.DiscardHandler)} // broken long ago
	l.reached.Store(true)
	witnessed := make(chan bool, 1)
	if l.lost(unreachable, witnessed) || !l.early {
		t.Errorf("lost before anybody has answered, or the next dial does not wait: early %t", l.early)
	}
	witnessed <- false
	if l.lost(unreachable, witnessed) {
		t.Error("lost where nobody answers")
	}
	witnessed <- true
	if !l.lost(unreachable, witnessed) {
		t.Error("not lost where others answer")
	}
}

// TestDialLast: a link whose dials fail at once dials only once the witnesses have been asked.
func TestDialLast(t *testing.T) {
	t.Parallel()
	all, bells := apart(t, open(t), settings(t, 2, 2), near, "127.0.0.2", "127.0.0.3")
	var asked, dialled atomic.Bool
	known := make(chan int, 1)
	all[0].client = openAt(t, shared.endpoint)
	all[0].client.KV = lateKV{all[0].client.KV, func() {
		select {
		case before := <-known:
			time.Sleep(100 * time.Millisecond) // in which it would be dialled
			dialled.Store(bells[1].count() > before)
			asked.Store(true)
		default:
		}
	}}
	together(all, join(t))
	connected(t, 1, all...)
	for n, before := range links(t, all[0]) {
		l := &link{addr: before.addr, greeting: before.greeting, log: before.log, early: true}
		l.reached.Store(true)
		count := bells[1].count()
		known <- count
		ctx, cancel := context.WithCancel(within(t))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = all[0].session.try(ctx, n, l, true)
		}()
		eventually(t, "that it is dialled", func() bool { return bells[1].count() > count })
		cancel()
		<-ended
	}
	if !asked.Load() || dialled.Load() {
		t.Errorf("the witnesses were asked: %t, after the dial: %t", asked.Load(), dialled.Load())
	}
}

// TestWitnessesBeyond: those on other machines are found behind many on the two that are concerned, wherever they come
// by name; only where there are none has an agent nobody to ask.
func TestWitnessesBeyond(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		one  string // the name of the only agent elsewhere
		want []string
	}{
		"none": {"", nil}, "last": {"z", []string{"127.0.0.9:9"}}, "before": {"0y", []string{"127.0.0.9:9"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := open(t)
			all, _ := apart(t, client, settings(t, 2, 2), near, "127.0.0.2", "127.0.0.3")
			together(all, join(t))
			put := func(id, host string) {
				e := entry{Host: host, Listen: 9}
				if _, err := client.Put(within(t), all[0].keys.agent(id), encode(e)); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 2*mostListed + 1 { // on both sides of the agents' own names
				put(fmt.Sprintf("0x%03d", i), "127.0.0.2")
				put(fmt.Sprintf("x%03d", i), "127.0.0.3")
			}
			if c.one != "" {
				put(c.one, "127.0.0.9")
			}
			targets, err := all[0].session.witnesses(within(t), neighbour{Addr: "127.0.0.3:1"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range targets {
				got = append(got, one.addr)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}
