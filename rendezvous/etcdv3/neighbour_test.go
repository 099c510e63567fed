package etcdv3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous"
)

// near are options of agents that no lease misses in a test's time, so that only neighbours can.
var near = Options{Lease: time.Hour, Pause: time.Millisecond, Grace: 10 * time.Second}

// doorbell is an agent's listener whose connections a test can break.
type doorbell struct {
	net.Listener
	mu       sync.Mutex
	conns    []net.Conn
	accepted int
}

func (d *doorbell) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.conns, d.accepted = append(d.conns, c), d.accepted+1
	}
	return c, err
}

// shake breaks all connections, and returns how many there have ever been.
func (d *doorbell) shake() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		_ = c.Close()
	}
	d.conns = nil
	return d.accepted
}

func (d *doorbell) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.accepted
}

func ring(t testing.TB) *doorbell {
	t.Helper()
	return listenAt(t, "127.0.0.1")
}

func listenAt(t testing.TB, host string) *doorbell {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	return &doorbell{Listener: l}
}

// neighbours are agents that can reach each other, and a listener each.
func neighbours(t testing.TB, c *clientv3.Client, s rendezvous.Settings, n int, o Options) ([]*peer, []*doorbell) {
	t.Helper()
	var all []*peer
	var bells []*doorbell
	for i := range n {
		bell := ring(t)
		o.Listen = func() (net.Listener, error) { return bell, nil }
		p := newPeer(t, c, s, fmt.Sprintf("%s-%d", s.RunID, i), o)
		p.agent.Host = "127.0.0.1"
		all, bells = append(all, p), append(bells, bell)
	}
	return all, bells
}

// eventually waits for what comes without a sign.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for ctx := within(t); !ok(); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("waiting in vain: %s", what)
		}
	}
}

// links are those of an agent to its neighbours.
func links(t testing.TB, p *peer) map[neighbour]*link {
	t.Helper()
	got := make(chan map[neighbour]*link, 1)
	if !p.session.post(func() { got <- p.session.links }) {
		t.Fatal("the session has ended")
	}
	return <-got
}

// connected waits until each agent has reached so many others.
func connected(t testing.TB, want int, peers ...*peer) {
	t.Helper()
	for _, p := range peers {
		eventually(t, p.id+" reaches its neighbours", func() bool {
			n := 0
			for _, l := range links(t, p) {
				if l.reached.Load() {
					n++
				}
			}
			return n == want
		})
	}
}

// TestNeighbour: an agent that is gone is missed by its neighbours, whether it leads or not, and so are two at once.
func TestNeighbour(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string][]int{"leader": {0}, "follower": {2}, "both": {0, 2}, "last two": {2, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings(t, 1, 4)
			s.LastCall = time.Hour
			all, _ := neighbours(t, open(t), s, 4, near)
			together(all, join(t))
			checkSize(t, 4, all...)
			connected(t, 2, all...)
			byRank := make([]*peer, 4)
			for _, p := range all {
				byRank[p.world.Rank] = p
			}
			for _, rank := range gone {
				if err := byRank[rank].Close(); err != nil {
					t.Error(err)
				}
				byRank[rank] = nil
			}
			for _, p := range byRank {
				if p != nil {
					changed(t, p)
				}
			}
			waitKeys(t, open(t), runKeys(t)+"agents/", int64(4-len(gone)))
		})
	}
}

func checkSize(t testing.TB, want int, peers ...*peer) {
	t.Helper()
	for _, p := range peers {
		if p.world.Size != want {
			t.Fatalf("%s is in a world of %d", p.id, p.world.Size)
		}
	}
}

// TestNeighbourKept: broken connections are made anew, and an agent that its neighbours hear is kept, also where the
// store hears nothing of it.
func TestNeighbourKept(t *testing.T) {
	t.Parallel()
	r := newRestarted(t)
	away := newRelay(t, r.at.Listen)
	settings := settings(t, 3, 3)
	all, bells := neighbours(t, r.client(), settings, 3, near)
	all[0].client = openAt(t, away.listener.Addr().String())
	together(all, join(t))
	checkSize(t, 3, all...)
	connected(t, 2, all...)
	for try := range 4 { // what breaks again and again is no loss either
		if try == 3 {
			away.cut() // the first agent from the store
		}
		for i, bell := range bells {
			before := bell.shake()
			eventually(t, fmt.Sprintf("agent %d is reached again", i), func() bool { return bell.count() >= before+2 })
		}
	}
	waitKeys(t, r.client(), runKeys(t)+"agents/", 3)
	for _, p := range all {
		select {
		case <-p.world.Changed:
			t.Errorf("the world has ended for %s", p.id)
		default:
		}
	}
	away.open()
}

// said is a log that a test reads.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) has(text string) bool { return s.count(text) > 0 }

func (s *said) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), text)
}

// TestNeighbourUnreached: an agent that no connection was ever made to, as behind a firewall that refuses it, is left
// to its lease.
func TestNeighbourUnreached(t *testing.T) {
	t.Parallel()
	c := open(t)
	var log said
	o := near
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	all, bells := neighbours(t, c, settings(t, 2, 2), 2, o)
	for _, bell := range bells {
		_ = bell.Close() // its port is told nevertheless, and refuses
	}
	together(all, join(t))
	eventually(t, "that it says so", func() bool { return log.has("is not reached") })
	waitKeys(t, c, runKeys(t)+"agents/", 2)
}

// TestSetApart: an agent that is set apart neither watches others, nor is watched.
func TestSetApart(t *testing.T) {
	t.Parallel()
	s := settings(t, 2, 2)
	all, bells := neighbours(t, open(t), s, 2, near)
	t.Cleanup(func() { _ = bells[0].Close() }) // which nobody opens
	all[0].options.Apart = true
	together(all, join(t))
	checkSize(t, 2, all...)
	for _, p := range all {
		if n := len(links(t, p)); n != 0 {
			t.Errorf("%s watches %d", p.id, n)
		}
	}
}

// TestNeighbourAnother: who takes an agent for gone that has come back under its name does nothing to that one.
func TestNeighbourAnother(t *testing.T) {
	t.Parallel()
	c := open(t)
	all, _ := neighbours(t, c, settings(t, 2, 2), 2, near)
	together(all, join(t))
	other := neighbour{ID: all[1].id, Created: all[1].session.machine.created - 1, Addr: "127.0.0.1:1"}
	l := &link{addr: other.Addr, mine: all[0].session.machine.created, log: slog.New(slog.DiscardHandler)}
	l.reached.Store(true)
	all[0].session.monitor(within(t), other, l) // returns as that very agent is not there
	waitKeys(t, c, runKeys(t)+"agents/", 2)
}

// TestNeighboursApart: of two agents that find each other gone at once, and are not, one is lost and one stays.
func TestNeighboursApart(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			c := open(t)
			all, bells := neighbours(t, c, settings(t, 2, 2), 2, near)
			together(all, join(t))
			connected(t, 1, all...)
			for _, bell := range bells {
				_ = bell.Close() // refuses from now on
			}
			for _, bell := range bells {
				bell.shake()
			}
			before := []*session{all[0].session, all[1].session}
			changed(t, all...)
			together(all, join(t)) // the one that was lost comes back as a new agent
			checkSize(t, 2, all...)
			if (all[0].session == before[0]) == (all[1].session == before[1]) {
				t.Errorf("both are lost, or none: %t", all[0].session != before[0])
			}
		})
	}
}

// TestNeighbourClaimed: an agent that has said whom it removes, and has ended before it did, keeps that one from
// removing others for a while only, and not in the next world.
func TestNeighbourClaimed(t *testing.T) {
	t.Parallel()
	c := open(t)
	o := near
	o.claimAge = 200 * time.Millisecond
	all, _ := neighbours(t, c, settings(t, 1, 2), 2, o)
	together(all, join(t))
	connected(t, 1, all...)
	claim := all[0].keys.goner(all[0].id)
	if _, err := c.Put(within(t), claim, all[1].id, clientv3.WithLease(all[0].session.lease)); err != nil {
		t.Fatal(err)
	}
	if err := all[1].Close(); err != nil { // refuses from now on
		t.Error(err)
	}
	waitKeys(t, c, runKeys(t)+"agents/", 1)
	waitKeys(t, c, claim, 0)
}

// TestNeighbourFaster: an agent that leaves while a neighbour takes it for gone has left.
func TestNeighbourFaster(t *testing.T) {
	t.Parallel()
	c := open(t)
	all := crowd(t, c, settings(t, 1, 1), 1, quick)
	together(all, join(t))
	if _, err := c.Revoke(within(t), all[0].session.lease); err != nil {
		t.Fatal(err)
	}
	if err := all[0].Leave(within(t)); err != nil {
		t.Error(err)
	}
}

// TestNeighbourAway: what a dial says counts only where the store has answered before it.
func TestNeighbourAway(t *testing.T) {
	t.Parallel()
	r := newRestarted(t)
	all, _ := neighbours(t, r.client(), settings(t, 2, 2), 2, near)
	together(all, join(t))
	connected(t, 1, all...)
	r.clients.cut()
	if err := all[1].Close(); err != nil { // refuses from now on
		t.Error(err)
	}
	lease, err := all[0].session.leaseOf(within(t), neighbour{ID: all[1].id})
	if err == nil || lease != 0 {
		t.Errorf("a store that is away has answered %v, %v", lease, err)
	}
	r.clients.open()
	changed(t, all[0])
}

// TestVerdictAge: what a dial says about a neighbour counts only for a while, in which the store has to answer again: a
// process that is stopped behind its dial hears of it late.
func TestVerdictAge(t *testing.T) {
	t.Parallel()
	c := open(t)
	o := near
	o.verdictAge = time.Nanosecond // what every dial outlasts
	all, _ := neighbours(t, c, settings(t, 2, 2), 2, o)
	together(all, join(t))
	connected(t, 1, all...)
	if err := all[1].Close(); err != nil { // refuses from now on
		t.Error(err)
	}
	before := all[0].Stats().Requests
	eventually(t, "that it looks again and again", func() bool { return all[0].Stats().Requests > before+10 })
	waitKeys(t, c, runKeys(t)+"agents/", 2)
}

// TestGone: which errors of a dial prove that a neighbour is gone.
func TestGone(t *testing.T) {
	dial := func(err error) error {
		return fmt.Errorf("connecting: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)})
	}
	long, now := time.Now().Add(-time.Minute), time.Now()
	for name, c := range map[string]struct {
		err     error
		reached bool
		broken  time.Time
		want    bool
	}{
		"refused":               {dial(syscall.ECONNREFUSED), true, now, true},
		"refused, but ever":     {dial(syscall.ECONNREFUSED), false, long, false},
		"silent":                {dial(syscall.ETIMEDOUT), true, long, true},
		"silent, but ever":      {dial(syscall.ETIMEDOUT), false, long, false},
		"no route for long":     {dial(syscall.EHOSTUNREACH), true, long, true},
		"no route for a moment": {dial(syscall.EHOSTUNREACH), true, now, false},
		"no network here":       {dial(syscall.ENETUNREACH), true, long, false},
		"no file here":          {dial(syscall.EMFILE), true, long, false},
		"no port here":          {dial(syscall.EADDRNOTAVAIL), true, long, false},
		"reset":                 {dial(syscall.ECONNRESET), true, long, false},
		"a deadline of ours":    {dial(os.ErrDeadlineExceeded), true, long, false},
		"no greeting":           {errNotNeighbour, true, long, false},
		"a name server that refuses": {
			&net.OpError{Op: "dial", Err: &net.DNSError{UnwrapErr: syscall.ECONNREFUSED}}, true, long, false,
		},
		"cancelled": {context.Canceled, true, long, false},
	} {
		l := &link{broken: c.broken}
		l.reached.Store(c.reached)
		if got := l.gone(c.err); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestNotNeighbour: what answers at a neighbour's address and is another says nothing about it.
func TestNotNeighbour(t *testing.T) {
	t.Parallel()
	want := greeting("a")
	for name, answer := range map[string]string{
		"nothing": "", "a part": want[:len(want)-1], "another agent": greeting("b"),
		"no end":            strings.Repeat("x", 1<<20),
		"an answer of HTTP": "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := ring(t)
			defer func() { _ = l.Close() }()
			go func() {
				if conn, err := l.Accept(); err == nil {
					_, _ = io.WriteString(conn, answer)
					_ = conn.Close()
				}
			}()
			k := &link{addr: l.Addr().String(), greeting: want, log: slog.New(slog.DiscardHandler)}
			if err := k.hold(within(t)); !errors.Is(err, errNotNeighbour) || k.reached.Load() || k.gone(err) {
				t.Errorf("%v, reached: %t", err, k.reached.Load())
			}
		})
	}
}

// TestListener: whatever connects, the listener holds few, reads nothing, and goes on; it ends with its session.
func TestListener(t *testing.T) {
	t.Parallel()
	all, bells := neighbours(t, open(t), settings(t, 2, 2), 2, near)
	together(all, join(t))
	connected(t, 1, all...)
	bell := bells[0]
	want := greeting(all[0].keys.agent(all[0].id))
	greeted := func(write string) (net.Conn, bool) {
		conn, err := net.Dial("tcp", bell.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, write)
		text, _ := io.ReadAll(io.LimitReader(conn, int64(len(want))))
		return conn, string(text) == want
	}
	for _, text := range []string{"x", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("\x16\x03\x01", 1<<16)} {
		conn, _ := greeted(text) // a reset may overtake the greeting
		if n, _ := io.Copy(io.Discard, conn); n > int64(len(want)) {
			t.Errorf("%.10q was answered with %d bytes", text, n)
		}
	}
	held := []net.Conn{}
	eventually(t, "that it turns somebody away", func() bool {
		conn, ok := greeted("")
		held = append(held, conn)
		return !ok
	})
	if len(held) > mostClients {
		t.Errorf("it held %d", len(held))
	}
	for _, conn := range held {
		_ = conn.Close()
	}
	eventually(t, "that there is room again", func() bool { _, ok := greeted(""); return ok })
	conn, _ := greeted("")
	if err := all[0].Leave(within(t)); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives its session")
	}
	eventually(t, "that the listener ends with its session", func() bool {
		return errors.Is(bell.Listener.(*net.TCPListener).SetDeadline(time.Time{}), net.ErrClosed)
	})
}
