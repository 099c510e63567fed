package tcpstore

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"
)

// TestUnsent: replies that nobody reads have a limit over all connections, and who lets most come together is cut off,
// while all others are served.
func TestUnsent(t *testing.T) {
	const value, clients, limit = 8 << 20, 20, 24 << 20
	s, address, refused := counting(t, func(l *Limits) { l.Unsent = limit })
	setter := connect(t, address)
	setter.send(greeting)
	for i := range clients {
		setter.say(Set, "/k", strings.Repeat(string(rune('a'+i)), value))
		setter.send(`04 "/n" #1`)
		setter.want(fmt.Sprintf("#%d", i+1))
		deaf := connect(t, address)
		deaf.send(greeting + `03 "/k"`)
		until(t, func() bool { return s.Stats().Unsent <= limit })
	}
	until(t, func() bool { return refused("memory") >= clients/2 })
	reads := connect(t, address)
	reads.send(greeting)
	reads.say(Set, "/less", strings.Repeat("z", value/8)) // of two that keep as much either may be cut off
	reads.say(Get, "/less")
	if n, err := io.CopyN(io.Discard, reads, 8+value/8); err != nil {
		t.Errorf("who reads has %d bytes, %v", n, err)
	}
}

// TestUnsentList: so has one reply of many values.
func TestUnsentList(t *testing.T) {
	const value, limit = 1 << 20, 8 << 20
	s, address, refused := counting(t, func(l *Limits) { l.Unsent = limit })
	c, deaf := connect(t, address), connect(t, address)
	c.send(greeting)
	deaf.send(greeting)
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("/%03d", i)
		c.say(Set, many[i], strings.Repeat("x", value))
	}
	c.send(`04 "/n" #1`)
	c.want("#1")
	ask := append([]byte{byte(MultiGet)}, bytes.Join(Number(int64(len(many))), nil)...)
	for _, key := range many {
		ask = append(ask, bytes.Join(Reply{}.Value([]byte(key)), nil)...)
	}
	if _, err := deaf.Write(ask); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return refused("memory") == 1 && s.Stats().Unsent <= limit })
	c.say(Get, many[0])
	if n, err := io.CopyN(io.Discard, c, 8+value); err != nil {
		t.Errorf("the other has %d bytes, %v", n, err)
	}
}

// TestSharedValue: a value that many are sent at a time is in memory once, and nobody is cut off for it.
func TestSharedValue(t *testing.T) {
	const value, clients = 4 << 20, 12
	s, address, refused := counting(t, func(l *Limits) { l.Unsent = 2 * value })
	setter := connect(t, address)
	setter.send(greeting)
	setter.say(Set, "/k", strings.Repeat("x", value))
	setter.send(`04 "/n" #1`)
	setter.want("#1")
	var all []client
	for range clients {
		c := connect(t, address)
		c.send(greeting + `03 "/k" 03 "/k"`)
		all = append(all, c)
	}
	time.Sleep(200 * time.Millisecond)
	for _, c := range all {
		if n, err := io.CopyN(io.Discard, c, 2*(8+value)); err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	until(t, func() bool { return s.Stats().Unsent == 0 })
	if refused("memory") != 0 {
		t.Errorf("%d were cut off", refused("memory"))
	}
}

// TestDeaf: who reads nothing of a long reply for a while is cut off, and who reads slowly is not.
func TestDeaf(t *testing.T) {
	const value = 16 << 20
	_, address, refused := counting(t, func(l *Limits) { l.Unread = time.Second })
	deaf, slow := connect(t, address), connect(t, address)
	deaf.send(greeting)
	deaf.say(Set, "/k", strings.Repeat("x", value))
	deaf.send(`03 "/k"`)
	slow.send(greeting + `06 #1 "/k"`)
	slow.want("00")
	slow.send(`03 "/k"`)
	for left := int64(8 + value); left > 0; time.Sleep(30 * time.Millisecond) {
		n, err := io.CopyN(io.Discard, slow, min(left, value/100))
		if left -= n; err != nil {
			t.Fatalf("who reads slowly misses %d bytes: %v", left, err)
		}
	}
	if refused("slow") != 1 {
		t.Errorf("%d were cut off", refused("slow"))
	}
}

// plain is a connection that the system's order of arrival is not known of.
type plain struct{ net.Conn }

type plainListener struct{ net.Listener }

func (l plainListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return plain{c}, err
}

// TestNoOrder: where nobody knows in which order bytes came, who has read its replies at last keeps nobody waiting.
func TestNoOrder(t *testing.T) {
	s := New(DefaultLimits(), nil, Observer{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(plainListener{l}) }()
	t.Cleanup(func() { _ = s.Close() })
	stalls, other := connect(t, l.Addr().String()), connect(t, l.Addr().String())
	stalls.send(greeting)
	stalls.say(Set, "/big", strings.Repeat("x", 8<<20))
	for range 4 {
		stalls.send(`03 "/big"`)
	}
	time.Sleep(300 * time.Millisecond)
	if _, err := io.CopyN(io.Discard, stalls, 4*(8+8<<20)); err != nil {
		t.Fatal(err)
	}
	other.send(greeting)
	quickly(t, other)
}

// TestBusyNeighbour: who sends without a pause does not make each request of its host's other clients wait.
func TestBusyNeighbour(t *testing.T) {
	_, address := start(t, nil)
	busy, other := connect(t, address), connect(t, address)
	busy.send(greeting)
	go func() {
		many := bytes.Repeat(message(Set, "/k", "v"), 10_000)
		for _, err := busy.Write(many); err == nil; _, err = busy.Write(many) {
		}
	}()
	other.send(greeting)
	time.Sleep(100 * time.Millisecond)
	quickly(t, other)
}

// quickly counts to 40, each time after the reply.
func quickly(t *testing.T, c client) {
	t.Helper()
	begin := time.Now()
	for i := range 40 {
		c.send(`04 "/n" #1`)
		c.want(fmt.Sprintf("#%d", i+1))
	}
	if took := time.Since(begin); took > 20*patience {
		t.Errorf("40 requests took %s", took)
	}
}

// TestIdleClient: a value that was replaced is gone, though a client that was sent it asks for nothing more.
func TestIdleClient(t *testing.T) {
	const value = 4 << 20
	s, address := start(t, nil)
	reader := connect(t, address)
	reader.send(greeting + state("a"))
	reader.want(`"Y2FuaW1hZGFt"`)
	reader.say(Set, prefix+"a.0/k", strings.Repeat("x", value))
	reader.say(Get, prefix+"a.0/k")
	if n, err := io.CopyN(io.Discard, reader, 8+value); err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	old := stored(t, s, value)
	setter := connect(t, address)
	setter.send(greeting + `01 "/torch.rendezvous.a.0/k" "v" 03 "/torch.rendezvous.a.0/k"`)
	setter.want(`"v"`)
	until(t, func() bool {
		runtime.GC()
		return old.Value() == nil
	})
}

// stored points to the one value that long.
func stored(t *testing.T, s *Server, bytes int) weak.Pointer[byte] {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slot := range s.store.slots {
		if len(slot.value) == bytes {
			return weak.Make(&slot.value[0])
		}
	}
	t.Fatalf("no value has %d bytes", bytes)
	return weak.Pointer[byte]{}
}

// TestSharersAndHoarders: of those that do not read it is who keeps most for itself that is cut off: a value that ten
// are sent counts for each of them a tenth.
func TestSharersAndHoarders(t *testing.T) {
	const shared, own, sharers, hoarders = 8 << 20, 6 << 20, 10, 5
	s, address, refused := counting(t, func(l *Limits) { l.Unsent = shared + 2*own + 1<<20 })
	setter := connect(t, address)
	setter.send(greeting)
	setter.say(Set, "/k", strings.Repeat("x", shared))
	setter.send(`04 "/n" #1`)
	setter.want("#1")
	unread := func() client {
		c := connect(t, address)
		if err := c.Conn.(*net.TCPConn).SetReadBuffer(256 << 10); err != nil {
			t.Fatal(err)
		}
		c.send(greeting)
		return c
	}
	var all []client
	for range sharers {
		c := unread()
		c.say(Get, "/k")
		all = append(all, c)
	}
	until(t, func() bool {
		s.unsent.mu.Lock()
		defer s.unsent.mu.Unlock()
		for _, h := range s.unsent.values {
			return h.replies == sharers
		}
		return false
	})
	for i := range hoarders {
		c, key := unread(), fmt.Sprintf("/%d", i)
		c.say(Set, key, strings.Repeat("y", own))
		c.say(Get, key)
	}
	until(t, func() bool { return refused("memory") >= hoarders-2 })
	for i, c := range all {
		if n, err := io.CopyN(io.Discard, c, 8+shared); err != nil {
			t.Errorf("sharer %d has %d bytes, %v", i, n, err)
		}
	}
}

// TestSlowPart: who takes anything of a part in time is not cut off, however long all of the part takes; who then takes
// nothing is.
func TestSlowPart(t *testing.T) {
	const once, times = 8 << 10, part / 2 / (8 << 10)
	s, _, refused := counting(t, func(l *Limits) { l.Unread = 200 * time.Millisecond })
	theirs, ours := net.Pipe()
	s.open(ours)
	t.Cleanup(func() { _ = theirs.Close() })
	c := client{t, theirs}
	c.send(greeting)
	c.say(Set, "/k", strings.Repeat("x", part))
	c.send(`03 "/k"`)
	for i := range times {
		time.Sleep(50 * time.Millisecond)
		if n, err := io.CopyN(io.Discard, c, once); err != nil {
			t.Fatalf("after %d of %d readings it is sent %d bytes, %v", i, times, n, err)
		}
	}
	until(t, func() bool { return refused("slow") == 1 })
}
