package tcpstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous/test/wiretest"
)

// client is a connection whose messages are written as in a transcript.
type client struct {
	t *testing.T
	net.Conn
}

func connect(t *testing.T, address string) client {
	t.Helper()
	return client{t, wiretest.Dial(t, address)}
}

func (c client) send(line string) {
	c.t.Helper()
	b, err := wiretest.Tokens(line)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// say sends one message of the recent dialect with a key and values.
func (c client) say(o Op, key string, values ...string) {
	c.t.Helper()
	if _, err := c.Write(message(o, key, values...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c client) want(line string) {
	c.t.Helper()
	want, err := wiretest.Tokens(line)
	if err != nil {
		c.t.Fatal(err)
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil {
		c.t.Fatalf("got %x, %v, want %s", got[:n], err, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Fatalf("%s (-want +got):\n%s", line, diff)
	}
}

// cut waits until the server has closed the connection.
func (c client) cut() {
	c.t.Helper()
	got, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("it is still open, after %x", got)
	}
}

const greeting = "00 ce f7 85 3c "

func state(id string) string { return `02 "/torch.rendezvous.` + id + `" "" "Y2FuaW1hZGFt"` }

// counting serves with small limits and counts refusals.
func counting(t *testing.T, change func(*Limits)) (*Server, string, func(reason string) int) {
	var mu sync.Mutex
	counts := map[string]int{}
	s, address := observed(t, change, Observer{Refused: func(reason string) {
		mu.Lock()
		defer mu.Unlock()
		counts[reason]++
	}})
	return s, address, func(reason string) int {
		mu.Lock()
		defer mu.Unlock()
		return counts[reason]
	}
}

// TestRefused: what no client sends, or what is too much, ends its connection and nobody else's.
func TestRefused(t *testing.T) {
	const huge = "ff ff ff ff ff ff ff ff"
	for _, c := range []struct{ name, reason, sent string }{
		{"key", "length", greeting + "01 " + huge},
		{"key of more than the limit", "length", greeting + "01 #101"},
		{"value", "length", greeting + `01 "/k" ` + huge},
		{"value of the other sign", "length", greeting + `01 "/k" 00 00 00 00 00 00 00 80`},
		{"list", "length", greeting + "06 " + huge},
		{"pairs", "length", greeting + "0b " + huge},
		{"old key", "length", "01 " + huge},
		{"old key that begins with a zero", "length", "00 " + huge},
		{"message", "length", greeting + `0b #4 "1" #900 ` + strings.TrimSpace(strings.Repeat("00 ", 900)) +
			` "2" #900`},
		{"operation", "operation", greeting + "13"},
		{"old operation", "operation", "0d"},
		{"watch", "operation", `07 "/k"`},
		{"magic", "greeting", greeting + "00 01 02 03 04"},
		{"number", "value", greeting + `01 "/k" "one" 04 "/k" #1`},
		{"runs", "runs", greeting + state("1") + " " + state("2") + " " + state("3") + " " + state("4")},
		{"keys", "keys", greeting + `01 "/1" "" 01 "/2" "" 01 "/3" "" 01 "/4" "" 01 "/5" ""`},
		{"keys at once", "keys", greeting + `0b #5 "/1" "" "/2" "" "/3" "" "/4" "" "/5" ""`},
		{"awaited keys", "keys", greeting + `06 #5 "/1" "/2" "/3" "/4" "/5"`},
		{"waits", "waits", greeting + `06 #1 "/1" 06 #1 "/1" 06 #1 "/1"`},
		{"barriers", "waits", greeting + `12 "/1" #9 12 "/1" #9 12 "/1" #9`},
		{"awaited list", "memory", greeting + "06 #100" + strings.Repeat(` "/1"`, 100)},
		{"memory of a run", "memory", greeting + strings.TrimSpace(strings.Repeat(`09 "/1" #900 `+strings.Repeat("61 ",
			900), 4))},
		{"memory of all", "memory", greeting + state("a") + " " + state("b") + " " + strings.TrimSpace(
			strings.Repeat(`09 "/torch.rendezvous.a.0/x" #900 `+strings.Repeat("61 ", 900), 2)+
				strings.Repeat(`09 "/torch.rendezvous.b.0/x" #900 `+strings.Repeat("61 ", 900), 2))},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, address, refused := counting(t, func(l *Limits) {
				l.Lengths = Lengths{Key: 100, Value: 1000, List: 100, Message: 1500}
				l.Bounds = Bounds{Runs: 3, Keys: 4, RunBytes: 3000, Bytes: 3500, MemberWaits: 2, Waits: 100}
			})
			other := connect(t, address)
			other.send(greeting + `06 #1 "/mine"`)
			until(t, func() bool { return s.Stats().Waits == 1 })
			bad := connect(t, address)
			bad.send(c.sent)
			bad.cut()
			// and what it kept has gone
			until(t, func() bool { return refused(c.reason) == 1 && s.Stats().Connections == 1 })
			other.send(`0c 01 "/mine" "v" 03 "/mine"`)
			other.want(`01 "v"`)
			_ = other.Close()
			gone(t, s)
		})
	}
}

// TestConnections: those beyond the limit are closed, and there is room again once one has gone.
func TestConnections(t *testing.T) {
	s, address, refused := counting(t, func(l *Limits) { l.Connections = 2 })
	a, b := connect(t, address), connect(t, address)
	a.send(greeting + "0d 01 02 03 04")
	a.want("01 02 03 04")
	b.send(greeting + "0d 01 02 03 04")
	b.want("01 02 03 04")
	connect(t, address).cut()
	if refused("connections") != 1 {
		t.Error("it was not counted")
	}
	_ = a.Close()
	until(t, func() bool { return s.Stats().Connections == 1 })
	a = connect(t, address)
	a.send(greeting + "0d 01 02 03 04")
	a.want("01 02 03 04")
}

// TestSlow: a client has a time for its first message, and none after it.
func TestSlow(t *testing.T) {
	const first = 400 * time.Millisecond
	s, address, refused := counting(t, func(l *Limits) { l.First = first })
	silent, half, loris := connect(t, address), connect(t, address), connect(t, address)
	half.send("00 ce f7")
	loris.send("00 00 10 00 00 00 00 00 00") // a key of 4,096 bytes, and then one at a time
	go func() {
		for range 1000 {
			if _, err := loris.Write([]byte{1}); err != nil {
				return
			}
			time.Sleep(first / 10)
		}
	}()
	silent.cut()
	half.cut()
	loris.cut()
	until(t, func() bool { return refused("silent") == 1 && refused("slow") == 2 })

	// torch 1.13 opens two connections and is silent on one of them.
	second, speaks := connect(t, address), connect(t, address)
	speaks.send(`03 "/n" #1`)
	speaks.want("#1")
	late := connect(t, address)
	late.send(greeting + "01 #4") // the first message is whole, the next is not
	time.Sleep(3 * first)
	late.send(`2f 6b 65 79 "v" 03 "/key"`)
	late.want(`"v"`)
	second.send(`02 "/n"`)
	second.want(`"1"`)
	if refused("silent") != 1 || refused("slow") != 2 {
		t.Error("more were cut")
	}
	for _, c := range []client{second, speaks, late} {
		_ = c.Close()
	}
	gone(t, s)
}

// TestPartial: messages that do not come to an end have a bound over all connections, and take no more than was sent.
func TestPartial(t *testing.T) {
	s, address, refused := counting(t, func(l *Limits) { l.Partial = 300 << 10 })
	var clients []client
	for range 4 {
		c := connect(t, address)
		c.send(greeting + `01 "/k" #16777216`)
		clients = append(clients, c)
	}
	until(t, func() bool { return s.Stats().Connections == 4 })
	until(t, func() bool { return s.Stats().Partial <= 4*(piece+1000) })
	_, _ = clients[0].Write(make([]byte, 1<<20)) // perhaps it is cut meanwhile
	clients[0].cut()
	until(t, func() bool { return refused("memory") >= 1 })
	for _, c := range clients {
		_ = c.Close()
	}
	gone(t, s)
}

// TestCollect: a run's keys live as long as one of its connections, and an id that is used again starts afresh.
func TestCollect(t *testing.T) {
	for _, id := range []string{"a", "a.0", "a.0.1", "team/a", "x.1/y", "0", "a b", ".", "/"} {
		t.Run(id, func(t *testing.T) {
			s, address := start(t, nil)
			other, one, two := connect(t, address), connect(t, address), connect(t, address)
			for _, c := range []client{other, one, two} {
				c.send(greeting + "0d 00 00 00 00")
				c.want("00 00 00 00")
			}
			for _, name := range []string{"a", "a.0", "x", "team", "b"} { // those that could take its keys
				if name != id {
					other.send(state(name))
					other.want(`"Y2FuaW1hZGFt"`)
				}
			}
			kept := s.Stats().Keys
			one.say(CompareSet, prefix+id, "", empty)
			one.want(`"Y2FuaW1hZGFt"`)
			one.say(CompareSet, prefix+id, empty, "closed")
			one.want(`"closed"`)
			one.say(Set, prefix+id+".0/MASTER_ADDR", "h")
			two.say(Get, prefix+id)
			two.want(`"closed"`)
			two.say(Set, prefix+id+".12/torchelastic/role_info/0", "h")
			two.say(Get, prefix+id)
			two.want(`"closed"`)
			_ = one.Close()
			until(t, func() bool { return s.Stats().Connections == 2 })
			runs := s.Runs()
			got := runs[len(runs)-1]
			got.Serial, got.Bytes, got.Changed = 0, 0, time.Time{}
			want := Run{ID: id, State: Running, Round: 12, Agents: 1, Connections: 1, Keys: 3}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			_ = two.Close()
			until(t, func() bool { return s.Stats().Keys == kept })
			one = connect(t, address)
			one.send(greeting + "0d 00 00 00 00")
			one.say(CompareSet, prefix+id, "", empty)
			one.want(`00 00 00 00 "Y2FuaW1hZGFt"`)
		})
	}
}

func message(o Op, key string, values ...string) []byte {
	out := append([]byte{byte(o)}, bytes.Join(Reply{}.Value([]byte(key)), nil)...)
	for _, v := range values {
		out = append(out, bytes.Join(Reply{}.Value([]byte(v)), nil)...)
	}
	return out
}

// TestNameless: clients without a rendezvous belong together when they name the same key, and only then.
func TestNameless(t *testing.T) {
	s, address := start(t, nil)
	a, b, c := connect(t, address), connect(t, address), connect(t, address)
	a.send(greeting + `04 "/a" #1`)
	a.want("#1")
	b.send(greeting + `04 "/b" #1`)
	b.want("#1")
	if n := len(s.Runs()); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
	c.send(greeting + `05 #2 "/a" "/b"`)
	c.want("00")
	if n := len(s.Runs()); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
	_, _ = a.Close(), b.Close()
	c.send(`07`)
	c.want("#2")
	_ = c.Close()
	gone(t, s)
}

// TestSlowReader: who does not read its replies is read no further, and holds nobody up.
func TestSlowReader(t *testing.T) {
	s, address := start(t, nil)
	c, other := connect(t, address), connect(t, address)
	c.send(greeting)
	c.say(Set, "/big", strings.Repeat("x", 1<<20))
	const times = 200
	wrote := make(chan error, 1)
	go func() {
		_, err := c.Write(bytes.Repeat(message(Get, "/big"), times))
		wrote <- err
	}()
	other.send(greeting + `06 #1 "/big"`)
	other.want("00")
	other.send(`01 "/k" "v" 03 "/k"`)
	other.want(`"v"`)
	if n, err := io.CopyN(io.Discard, c, times*(8+1<<20)); err != nil {
		t.Errorf("%d bytes: %v", n, err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	_, _ = c.Close(), other.Close()
	gone(t, s)
}

// TestShutdown: it waits for runs, lets nobody in meanwhile, and has an end.
func TestShutdown(t *testing.T) {
	t.Run("drained", func(t *testing.T) {
		s, address := start(t, nil)
		c, idle := connect(t, address), connect(t, address)
		idle.send(greeting + "0d 00 00 00 00") // belongs to no run
		idle.want("00 00 00 00")
		c.send(greeting + state("a"))
		c.want(`"Y2FuaW1hZGFt"`)
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(t.Context()) }()
		until(func() (*testing.T, func() bool) {
			return t, func() bool {
				n, err := net.Dial("tcp", address)
				if err == nil {
					_ = n.Close()
				}
				return err != nil
			}
		}())
		c.send(`03 "/torch.rendezvous.a"`)
		c.want(`"Y2FuaW1hZGFt"`)
		select {
		case err := <-ended:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		_ = c.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		idle.cut()
	})
	t.Run("cut", func(t *testing.T) {
		s, address := start(t, nil)
		c := connect(t, address)
		c.send(greeting + state("a"))
		c.want(`"Y2FuaW1hZGFt"`)
		ctx, stop := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("the time is over"))
		defer stop()
		err := s.Shutdown(ctx)
		if want := "waiting for 1 runs to end: the time is over"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		c.cut()
	})
}

// TestTogether lets many clients count, wait and meet at once.
func TestTogether(t *testing.T) {
	s, address := start(t, nil)
	const clients, rounds = 40, 10
	var all sync.WaitGroup
	for i := range clients {
		c := connect(t, address)
		all.Go(func() {
			c.send(greeting + state("a"))
			c.want(`"Y2FuaW1hZGFt"`)
			for r := range rounds {
				c.say(Append, fmt.Sprintf("%sa.%d/all", prefix, r), ".")
				c.send(fmt.Sprintf(`01 "/torch.rendezvous.a.%d/%d" "v" 12 "/torch.rendezvous.a.%d/meet" #%d`, r, i, r,
					clients))
				c.want("00")
				c.send(fmt.Sprintf(`06 #2 "/torch.rendezvous.a.%[1]d/0" "/torch.rendezvous.a.%[1]d/%[2]d" `+
					`03 "/torch.rendezvous.a.%[1]d/all"`, r, clients-1))
				c.want(fmt.Sprintf(`00 "%s"`, strings.Repeat(".", clients)))
			}
			_ = c.Close()
		})
	}
	all.Wait()
	gone(t, s)
}
