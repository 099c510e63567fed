package proxystore

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// TestAway: while the etcd is away requests wait, and what a client has a limit of time for is answered from what was
// seen. Afterwards all is done, once and in order.
func TestAway(t *testing.T) { ways(t, awayWay) }

func awayWay(t *testing.T, at string) {
	r := newRelay(t, at)
	o := Options{Run: newRun(), Patience: 10 * time.Millisecond, Attempt: time.Second}
	away := newPod(t, r.address, o)
	a, second := away.dial(t), away.dial(t)
	there := newPod(t, at, o).dial(t)
	equal(t, "before", a.add("/n", 1), 1)
	r.cut()
	a.wait("/n")
	a.status(0)
	a.say(tcpstore.Set, "/s", "v")
	a.write(number(text([]byte{byte(tcpstore.Add)}, "/n"), 1))
	second.say(tcpstore.Get, "/s") // behind the SET of the other connection
	equal(t, "elsewhere", there.add("/n", 10), 11)
	r.open()
	equal(t, "afterwards", a.number(), 12)
	equal(t, "behind", second.value(), "v")
	equal(t, "elsewhere", there.get("/s"), "v")
}

// TestGivesUp: who waits for what nobody has seen can give up while the etcd is away, and leave.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	r := newRelay(t, etcd(t))
	p := newPod(t, r.address, Options{Run: newRun(), Attempt: time.Second})
	a, b := p.dial(t), p.dial(t)
	r.cut()
	a.wait("/never")
	a.write([]byte{byte(tcpstore.CancelWait)})
	a.status(1)
	b.say(tcpstore.Set, "/last", "word")
	_ = b.Close() // which takes nothing back
	r.open()
	equal(t, "of one who has left", a.get("/last"), "word")
}

// TestClose: a proxy whose etcd is away ends nevertheless, and says what it has lost.
func TestClose(t *testing.T) {
	t.Parallel()
	r := newRelay(t, etcd(t))
	e, err := New(client(t, r.address), Options{Run: newRun()})
	if err != nil {
		t.Fatal(err)
	}
	r.cut()
	q := tcpstore.Request{Op: tcpstore.Set, Keys: []string{"/k"}, Values: [][]byte{nil}}
	if err := e.Do(nobody{}, q); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err = e.Close(ctx)
	const want = "1 requests of this pod are not in the etcd: context deadline exceeded"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

type nobody struct{}

func (nobody) Dialect() tcpstore.Dialect { return tcpstore.Recent }
func (nobody) Send(tcpstore.Reply)       {}
func (nobody) Refuse(*tcpstore.Refusal)  {}

// input is an operation of the history that is checked.
type input struct {
	op            tcpstore.Op
	key           string
	expected, new string
	by            int64
}

// output is its reply: a number, or a value.
type output struct {
	number int64
	value  string
}

// gone is what a key is that is not there, to the model.
const gone = "\x00"

// model is one TCPStore in one memory.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		at := map[string]int{}
		for _, o := range history {
			key := o.Input.(input).key
			i, ok := at[key]
			if !ok {
				i = len(parts)
				at[key], parts = i, append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() any { return gone },
	Step: func(state, in, out any) (bool, any) {
		now, i, o := state.(string), in.(input), out.(output)
		switch i.op {
		case tcpstore.Set:
			return true, i.new
		case tcpstore.Append:
			if now == gone {
				now = ""
			}
			return true, now + i.new
		case tcpstore.Get:
			return o.value == now, now
		case tcpstore.DeleteKey:
			if now == gone {
				return o.number == 0, now
			}
			return o.number == 1, gone
		case tcpstore.CompareSet:
			switch {
			case now != gone && now != i.expected:
				return o.value == now, now
			case now == gone && i.expected != "":
				return o.value == i.expected, now
			}
			return o.value == i.new, i.new
		}
		n, _ := strconv.ParseInt(now, 10, 64) // 0 where it is gone
		n += i.by
		return o.number == n, strconv.FormatInt(n, 10)
	},
}

// history is of one client, which does one thing after the other.
type history struct {
	peer
	id    int
	dice  *rand.Rand
	began time.Time
	all   []porcupine.Operation
	owed  []int // those without a reply, which are done by the time the next reply comes
}

func (h *history) do(i input) {
	o := porcupine.Operation{ClientId: h.id, Input: i, Call: time.Since(h.began).Nanoseconds()}
	var out output
	switch i.op {
	case tcpstore.Set, tcpstore.Append:
		h.say(i.op, i.key, i.new)
		h.owed = append(h.owed, len(h.all))
		o.Output = out
		h.all = append(h.all, o)
		return
	case tcpstore.Get:
		out.value = h.get(i.key)
	case tcpstore.DeleteKey:
		out.number = h.remove(i.key)
	case tcpstore.CompareSet:
		out.value = h.swap(i.key, i.expected, i.new)
	default:
		out.number = h.add(i.key, i.by)
	}
	o.Output, o.Return = out, time.Since(h.began).Nanoseconds()
	for _, at := range h.owed {
		h.all[at].Return = o.Return
	}
	h.owed = nil
	h.all = append(h.all, o)
}

// random does something to one of three keys. One of them always has a value, so that GET does not wait; another holds
// text.
func (h *history) random() {
	v := strconv.Itoa(h.dice.IntN(5))
	switch key := []string{"/always", "/number", "/text"}[h.dice.IntN(3)]; h.dice.IntN(6) {
	case 0:
		h.do(input{op: tcpstore.Set, key: key, new: v})
	case 1:
		if key == "/text" {
			h.do(input{op: tcpstore.Append, key: key, new: v})
		} else {
			h.do(input{op: tcpstore.Add, key: key, by: int64(1 + h.dice.IntN(3))})
		}
	case 2:
		if key != "/always" {
			h.do(input{op: tcpstore.DeleteKey, key: key})
		}
	case 3:
		if key == "/always" {
			h.do(input{op: tcpstore.Get, key: key})
		}
	case 4: // to read is to compare with what is never there
		h.do(input{op: tcpstore.CompareSet, key: key, expected: "never", new: "never"})
	case 5:
		h.do(input{op: tcpstore.CompareSet, key: key, expected: strconv.Itoa(h.dice.IntN(5)), new: v})
	}
}

// TestExactlyOnce: pods whose connections to the etcd are cut, often after it has carried out what they asked for and
// before they hear of it, and whose etcd is stopped and started, see one store in one memory. TEGEN_SEED replays the
// choices, TEGEN_STEPS sets how many each client makes.
func TestExactlyOnce(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*testing.T, string) string{
		"etcd": func(_ *testing.T, at string) string { return at }, "gate": gated,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exactlyOnce(t, before)
		})
	}
}

// exactlyOnce has the pods reach the etcd by what stands before it.
func exactlyOnce(t *testing.T, before func(*testing.T, string) string) {
	at := store.Embedded{Dir: t.TempDir(), Listen: ports.Address(t)}
	s, err := at.Open(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // after the pods
	reached := before(t, at.Listen)
	relays := make([]*relay, pods)
	endpoints := make([][]string, pods)
	for i := range relays {
		relays[i] = newRelay(t, reached)
		endpoints[i] = []string{relays[i].address}
	}
	exercise(t, endpoints, 150, func(half, stop chan struct{}, dice func() *rand.Rand) {
		var faults sync.WaitGroup
		for _, r := range relays {
			faults.Go(func() { r.misbehave(dice(), stop) })
		}
		<-half
		for _, r := range relays {
			r.cut() // or etcd waits for their watches to end
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if s, err = at.Open(within(t)); err != nil {
			t.Error(err)
		}
		faults.Wait()
	})
}

// pods is how many take part in an exercise.
const pods = 4

// exercise has pods, each with endpoints of its own, do random things, and checks that they saw one store in one
// memory. Meanwhile faults happen, until stop is closed; half is closed once a pod has done half of it.
func exercise(
	t *testing.T, endpoints [][]string, steps int, faults func(half, stop chan struct{}, dice func() *rand.Rand),
) {
	seed := uint64(setting(t, "TEGEN_SEED", time.Now().UnixNano()))
	steps = int(setting(t, "TEGEN_STEPS", int64(steps)))
	dice := sync.Mutex{}
	stream := uint64(0)
	next := func() *rand.Rand {
		dice.Lock()
		defer dice.Unlock()
		stream++
		return rand.New(rand.NewPCG(seed, stream))
	}
	o := Options{Run: newRun(), Attempt: time.Second}
	histories := make([]*history, len(endpoints))
	began := time.Now()
	for i, all := range endpoints {
		histories[i] = &history{
			peer: newPodWith(t, client(t, all...), o).dial(t), id: i, began: began, dice: next(),
		}
	}
	histories[0].do(input{op: tcpstore.CompareSet, key: "/always", new: "0"})
	var clients, others sync.WaitGroup
	half, stop := make(chan struct{}), make(chan struct{})
	others.Go(func() { faults(half, stop, next) })
	var once sync.Once
	for _, h := range histories {
		clients.Go(func() {
			for step := range steps {
				if h.random(); step >= steps/2 {
					once.Do(func() { close(half) })
				}
			}
			h.do(input{op: tcpstore.Add, key: "/number", by: 1}) // so that nothing is owed
		})
	}
	clients.Wait()
	close(stop)
	others.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h.all...)
	}
	t.Logf("TEGEN_SEED=%d: %d operations of %d pods in %s", seed, len(all), len(histories),
		time.Since(began).Round(time.Second))
	if !porcupine.CheckOperations(model, all) {
		t.Error("they are not those of one store")
	}
}

func setting(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// misbehave swallows answers, cuts connections and lets new ones through.
func (r *relay) misbehave(dice *rand.Rand, stop chan struct{}) {
	pause := func(least, most int) bool {
		select {
		case <-time.After(time.Duration(least+dice.IntN(most-least)) * time.Millisecond):
			return true
		case <-stop:
			return false
		}
	}
	defer func() {
		r.deaf.Store(false)
		r.open()
	}()
	for pause(20, 200) {
		r.deaf.Store(true)
		more := pause(5, 50)
		r.cut()
		r.deaf.Store(false)
		if r.open(); !more {
			return
		}
	}
}
