package proxystore

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// TestPolls: while the etcd is away for long, an agent of torch 1.13 that trains reads the state and writes its
// heartbeat, as it does all the time. What changes the round waits for the etcd, and what was answered meanwhile
// changes nothing.
func TestPolls(t *testing.T) {
	for name, silence := range map[string]time.Duration{"eviction": time.Hour, "no eviction": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			polls(t, silence)
		})
	}
}

func polls(t *testing.T, silence time.Duration) {
	log := &said{}
	a, b := world(t, etcd(t), Options{
		Silence: silence, MinNodes: 1, Patience: 10 * time.Millisecond, Attempt: 100 * time.Millisecond,
		Absence: 300 * time.Millisecond, Log: log.logger(),
	})
	key := stateKey(a.run)
	a.peer = peer{t, oldConn{a.dialOld(t)}}
	a.change(func(m *membership) { m.addToWaitList(m.placeholder(m.participants.keys[0]), time.Now()) })
	a.relay.cut()
	write := func(change func(m *membership)) {
		was := a.get(key)
		m, err := parseMembership([]byte(was))
		if err != nil {
			t.Fatal(err)
		}
		change(m)
		text, err := m.text()
		if err != nil {
			t.Fatal(err)
		}
		a.say(tcpstore.CompareSet, key, was, string(text))
	}
	for range 3 {
		write(func(m *membership) {
			m.setHeartbeat(m.heartbeats.keys[slices.IndexFunc(m.heartbeats.keys, a.id)], time.Now())
		})
		m := a.answeredState()
		equal(t, "participants while the etcd is away", len(m.participants.keys), 2)
		equal(t, "nodes that wait, for which the agent would stop its workers", len(m.waiting.items), 0)
		for _, name := range []string{nodeA, nodeB} {
			if _, stale := m.stale(name, time.Now().Add(heartbeatLifetime/2)); stale {
				t.Errorf("%s will be stale for the agent", name)
			}
		}
	}
	equal(t, "messages that the agent is answered", log.count("answered from the latest state"), 1)
	write(func(m *membership) { m.remove(a.id) })
	time.Sleep(2 * a.options.Absence)
	b.change(func(*membership) {})
	a.relay.open()
	m := a.answeredState()
	equal(t, "participants afterwards, as the etcd has them", len(m.participants.keys), 2)
	equal(t, "nodes that wait afterwards", len(m.waiting.items), 1)
	equal(t, "participants for the other", len(b.state().participants.keys), 2)
	equal(t, "something else", a.add("/n", 1), 1)
	until(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.queue) == 0 && a.pod.bytes == 0
	})
}

// TestDoubtfulHeartbeat: the state is known after a heartbeat whose answer was lost, so that the next absence of the
// etcd finds it.
func TestDoubtfulHeartbeat(t *testing.T) {
	t.Parallel()
	a, _ := world(t, etcd(t), Options{
		Silence: time.Hour, MinNodes: 1, Patience: 10 * time.Millisecond, Attempt: 100 * time.Millisecond,
	})
	was := a.get(stateKey(a.run))
	m := a.state()
	m.setHeartbeat(m.participants.keys[0], time.Now())
	now := string(textOf(t, m))
	a.relay.deaf.Store(true)
	a.say(tcpstore.CompareSet, stateKey(a.run), was, now)
	c := client(t, etcd(t))
	until(t, func() bool {
		r, err := c.Get(within(t), a.keys.values+stateKey(a.run))
		return err == nil && string(fromKVs(r.Kvs).data) == now
	})
	a.relay.cut()
	a.relay.deaf.Store(false)
	a.relay.open()
	equal(t, "the answer", a.value(), now)
	if seen := a.seen.state.Load(); seen == nil || string(*seen) != now {
		t.Error("the state is not known")
	}
}

// TestRefusesOnce: a client that was answered already is not cut off by what becomes of its request.
func TestRefusesOnce(t *testing.T) {
	for _, over := range []bool{false, true} {
		e, clients := awayEngine(nodeA)
		o := ask(clients[0], tcpstore.Get, stateKey("r"))
		if err := e.enqueue(o); err != nil {
			t.Fatal(err)
		}
		o.over = over
		e.fail(o, refuse(limit, "of the test"))
		equal(t, "cut off", clients[0].refused == 0, over)
	}
}

// TestAbsence: a negative absence is an error, and no panic of a timer.
func TestAbsence(t *testing.T) {
	if _, err := New(nil, Options{Run: "r", Absence: -time.Second}); err == nil {
		t.Error("it was taken")
	}
}

// TestWrittenBy: a request whose answer was lost tells what it has written, or nothing.
func TestWrittenBy(t *testing.T) {
	for op, want := range map[tcpstore.Op]string{tcpstore.Set: "b", tcpstore.CompareSet: "b", tcpstore.Append: ""} {
		v := writtenBy(tcpstore.Request{Op: op, Values: [][]byte{[]byte("a"), []byte("b")}}, 3)
		equal(t, op.String(), string(v.data), want)
		equal(t, op.String()+": is known", v.there(), want != "")
	}
}

// dialOld connects as torch 1.13 does.
func (p pod) dialOld(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// oldConn sends the numbers of torch 1.13, which has no VALIDATE, for operations in messages of one write each.
type oldConn struct{ net.Conn }

func (c oldConn) Write(b []byte) (int, error) {
	return c.Conn.Write(append([]byte{b[0] - 1}, b[1:]...))
}

// answeredState reads an answer that is a state.
func (n *node) answeredState() *membership {
	n.t.Helper()
	m, err := parseMembership([]byte(n.value()))
	if err != nil {
		n.t.Fatal(err)
	}
	return m
}

// TestHeartbeatsOnly: a change of anything else is no heartbeat, nor is one of another round.
func TestHeartbeatsOnly(t *testing.T) {
	toWaitList := func(m *membership, node any) { m.waiting.items = append(m.waiting.items, node) }
	for _, version := range []string{"1.13", "2.6"} {
		for name, test := range map[string]struct {
			before, change func(m *membership)
			only           bool
		}{
			"a heartbeat": {only: true},
			"in a round with a node that waits": {before: func(m *membership) {
				toWaitList(m, m.placeholder(m.participants.keys[0]))
			}, only: true},
			"in another round": {before: func(m *membership) { m.fields.set("round", m.round()+7) }},
			"in a round of other nodes": {before: func(m *membership) {
				m.remove(func(v any) bool { return v == m.participants.keys[1] })
			}},
			"in a round with a node without a place": {before: func(m *membership) {
				m.redundant.items = append(m.redundant.items, m.placeholder(m.participants.keys[0]))
			}},
			"a node leaves": {change: func(m *membership) {
				m.remove(func(v any) bool { return v == m.participants.keys[0] })
			}},
			"a node waits": {change: func(m *membership) { toWaitList(m, m.placeholder(m.participants.keys[0])) }},
			"a participant waits": {change: func(m *membership) {
				toWaitList(m, m.participants.keys[0])
			}},
			"closed":    {change: func(m *membership) { m.fields.set("closed", true) }},
			"no longer": {change: func(m *membership) { m.fields.set("complete", false) }},
			"the next":  {change: func(m *membership) { m.fields.set("round", m.round()+1) }},
		} {
			if version == "1.13" && strings.HasSuffix(name, "without a place") { // which has no list for it
				continue
			}
			m := training(t, version)
			if test.before != nil {
				test.before(m)
			}
			before := textOf(t, m)
			m.setHeartbeat(m.participants.keys[0], time.Now())
			if test.change != nil {
				test.change(m)
			}
			equal(t, version+": "+name, training(t, version).changesHeartbeatsOnly(before, textOf(t, m)), test.only)
		}
	}
	m := training(t, "2.6")
	equal(t, "no state", m.changesHeartbeatsOnly([]byte(noState), []byte(noState)), false)
	m.fields.set("complete", false)
	equal(t, "of no round", m.changesHeartbeatsOnly(textOf(t, m), textOf(t, m)), false)
}

// training is the state of a complete round in which no node waits.
func training(t *testing.T, version string) *membership {
	t.Helper()
	m := state(t, version)
	m.waiting.items = nil
	return m
}

func textOf(t *testing.T, m *membership) []byte {
	t.Helper()
	text, err := m.text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestStateOfTraining: agents are answered while they train, and by a state that they can train on with.
func TestStateOfTraining(t *testing.T) {
	known := textOf(t, state(t, "1.13"))
	m, text, err := stateOfTraining(&known)
	if err != nil {
		t.Fatal(err)
	}
	read, err := parseMembership(text)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the text", summary(read), summary(m))
	equal(t, "the state", summary(read), summary(again(t, training(t, "1.13"))))
	for name, c := range map[string]struct {
		change func(m *membership)
		fails  bool
	}{
		"closed":        {func(m *membership) { m.fields.set("closed", true) }, false},
		"incomplete":    {func(m *membership) { m.fields.set("complete", false) }, false},
		"no heartbeats": {func(m *membership) { m.heartbeats.remove(func(any) bool { return true }) }, true},
	} {
		m := state(t, "1.13")
		c.change(m)
		text := textOf(t, m)
		m, _, err := stateOfTraining(&text)
		if m != nil || (err != nil) != c.fails {
			t.Errorf("%s: got %v, %v", name, m, err)
		}
	}
	for text, fails := range map[string]bool{noState: false, "unknown": true} {
		state := []byte(text)
		if m, _, err := stateOfTraining(&state); m != nil || (err != nil) != fails {
			t.Errorf("%s: got %v, %v", text, m, err)
		}
	}
	if m, _, err := stateOfTraining(nil); m != nil || err == nil {
		t.Errorf("a state that was not seen: got %v, %v", m, err)
	}
}

// fakeClient records what it is sent.
type fakeClient struct {
	dialect tcpstore.Dialect
	replies []string
	refused int
}

func (c *fakeClient) Dialect() tcpstore.Dialect { return c.dialect }
func (c *fakeClient) Send(r tcpstore.Reply)     { c.replies = append(c.replies, joined(r)) }
func (c *fakeClient) Refuse(*tcpstore.Refusal)  { c.refused++ }

func joined(r tcpstore.Reply) string { return string(bytes.Join(r, nil)) }

// awayEngine is an engine without an etcd, which carries out nothing, and whose clients are the agents of the nodes.
func awayEngine(nodes ...string) (e *Engine, clients []*fakeClient) {
	e = &Engine{
		options: Options{Run: "r", Absence: time.Minute, Log: slog.New(slog.DiscardHandler), Pending: 1 << 20},
		clients: map[tcpstore.Client][]*operation{}, ctx: context.Background(),
	}
	e.changed.L = &e.mu
	e.watcher = newWatcher(e, "/r/")
	for _, name := range nodes {
		c := &fakeClient{dialect: tcpstore.Old}
		e.watcher.own[c] = &ownNode{name: name}
		clients = append(clients, c)
	}
	return e, clients
}

// ask is a request that has waited for longer than Absence.
func ask(c tcpstore.Client, op tcpstore.Op, key string, values ...string) *operation {
	q := tcpstore.Request{Op: op, Keys: []string{key}}
	for _, v := range values {
		q.Values = append(q.Values, []byte(v))
	}
	return &operation{client: c, q: q, came: time.Now().Add(-2 * time.Minute), queued: true}
}

// TestAnswerTo: only reads of the state and heartbeats are answered, and only to agents of the old dialect that take
// part in the round and have waited.
func TestAnswerTo(t *testing.T) {
	e, clients := awayEngine(nodeA, nodeC)
	w, a, c := e.watcher, clients[0], clients[1]
	m, key := training(t, "1.13"), stateKey("r")
	was := string(textOf(t, m))
	m.setHeartbeat(m.participants.keys[0], time.Now())
	beat := string(textOf(t, m))
	m.remove(func(v any) bool { return nodeName(v) == nodeA })
	left := string(textOf(t, m))
	recent, stranger := &fakeClient{dialect: tcpstore.Recent}, &fakeClient{dialect: tcpstore.Old}
	w.own[recent] = &ownNode{name: nodeA}
	young := ask(a, tcpstore.Get, key)
	young.came = time.Now().Add(-59 * time.Second)
	both := ask(a, tcpstore.Wait, key)
	both.q.Keys = append(both.q.Keys, "/other")
	const answer = "the state"
	state := joined(tcpstore.Reply{}.Value([]byte(answer)))
	for name, test := range map[string]struct {
		o    *operation
		want string
	}{
		"GET":                  {ask(a, tcpstore.Get, key), state},
		"WAIT":                 {ask(a, tcpstore.Wait, key), joined(tcpstore.Status(0))},
		"a heartbeat":          {ask(a, tcpstore.CompareSet, key, was, beat), state},
		"the node leaves":      {ask(a, tcpstore.CompareSet, key, was, left), ""},
		"SET":                  {ask(a, tcpstore.Set, key, was), ""},
		"ADD":                  {ask(a, tcpstore.Add, key), ""},
		"CHECK":                {ask(a, tcpstore.Check, key), ""},
		"another key":          {ask(a, tcpstore.Get, "/other"), ""},
		"two keys":             {both, ""},
		"has waited too short": {young, ""},
		"the recent dialect":   {ask(recent, tcpstore.Get, key), ""},
		"no participant":       {ask(c, tcpstore.Get, key), ""},
		"no agent":             {ask(stranger, tcpstore.Get, key), ""},
	} {
		equal(t, name, joined(w.answerTo(test.o, training(t, "1.13"), []byte(answer))), test.want)
		e.queue = []*operation{test.o}
		if test.want != "" {
			equal(t, name+": polled", w.polled(), true)
		}
	}
}

// TestAnswerQueued: what is answered leaves the queue and its bytes, but for the first request, and overtakes no other
// of its client.
func TestAnswerQueued(t *testing.T) {
	key := stateKey("r")
	get := func(c tcpstore.Client) *operation { return ask(c, tcpstore.Get, key) }
	other := func(c tcpstore.Client) *operation { return ask(c, tcpstore.Get, "/other") }
	for name, test := range map[string]struct {
		queue        func(a, b tcpstore.Client) []*operation
		left         []int // by their places
		answersA     int
		answersB     int
		answersFirst bool
	}{
		"empty": {queue: func(_, _ tcpstore.Client) []*operation { return nil }},
		"all": {
			func(a, b tcpstore.Client) []*operation { return []*operation{get(a), get(b), get(a), get(b)} },
			[]int{0},
			2, 2, true,
		},
		"none of a client before its first": {
			func(a, b tcpstore.Client) []*operation { return []*operation{other(a), get(b), get(a)} },
			[]int{0, 2},
			0, 1, false,
		},
		"none behind another": {
			func(a, b tcpstore.Client) []*operation { return []*operation{get(a), other(b), get(b), get(a), get(b)} },
			[]int{0, 1, 2, 4},
			2, 0, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, clients := awayEngine(nodeA, nodeB)
			a, b := clients[0], clients[1]
			all := test.queue(a, b)
			for _, o := range all {
				came := o.came
				if err := e.enqueue(o); err != nil {
					t.Fatal(err)
				}
				o.came = came
			}
			m := training(t, "1.13")
			equal(t, "answers", e.watcher.answerQueued(m, []byte("x")), test.answersA+test.answersB > 0)
			left, taken := []int(nil), 0
			for i, o := range all {
				if slices.Contains(e.queue, o) {
					left = append(left, i)
					taken += size(o.q)
				}
				equal(t, "queued", o.queued, slices.Contains(e.queue, o))
			}
			if !slices.Equal(left, test.left) {
				t.Errorf("%v are left, want %v", left, test.left)
			}
			equal(t, "bytes", e.bytes, taken)
			equal(t, "answers to a", len(a.replies), test.answersA)
			equal(t, "answers to b", len(b.replies), test.answersB)
			for range 2 { // nothing is answered twice
				equal(t, "answers again", e.watcher.answerQueued(m, []byte("x")), false)
			}
			if len(all) > 0 {
				equal(t, "the first is over", all[0].over, test.answersFirst)
			}
		})
	}
}
