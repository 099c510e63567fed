package torchetcd

import (
	"container/heap"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// model is a store, agents that use it, and a clock that advances when nothing is left to do at a time.
type model struct {
	rand    *rand.Rand
	store   *v2
	now     time.Duration
	due     schedule
	seq     int
	watches []*watching
	seen    uint64 // of the store, by the watches
	actors  []*actor

	min, max int
	lastCall time.Duration
	loss     float64 // of requests
	foreign  int     // of six agents that come
	calm     bool

	finals  map[int]State
	worlds  map[string]int // their versions, by the text of the state
	claims  map[[2]int]string
	sum     tally
	err     error
	history *strings.Builder
}

// actor is an agent, ours or torch's.
type actor struct {
	model   *model
	name    string
	dead    bool
	frozen  time.Duration // it is stopped until then
	machine *Machine
	alarm   int          // of the alarms, the one that holds
	watches map[int]bool // of those under way

	torch *torch
	next  func() (want, bool)
	stop  func()

	working bool
	world   Membership
	latest  int // version of the latest world that it has been shown
	leaving bool
	ended   bool
}

type watching struct {
	Action
	of      *actor
	dropped bool
	show    func(Reply)
}

// thing is what happens at a time; at one time, in the order in which it was scheduled.
type thing struct {
	at  time.Duration
	seq int
	do  func()
}

type schedule []thing

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].seq < s[j].seq
}
func (s schedule) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(x any)   { *s = append(*s, x.(thing)) }
func (s *schedule) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

func (m *model) later(d time.Duration, do func()) {
	m.seq++
	heap.Push(&m.due, thing{m.now + max(d, 0), m.seq, do})
}

func (m *model) some(d time.Duration) time.Duration { return time.Duration(m.rand.Int64N(int64(d))) }

// travel is how long a request or an answer takes.
func (m *model) travel() time.Duration {
	if !m.calm && m.rand.IntN(100) == 0 {
		return m.some(8 * time.Second)
	}
	return m.some(8 * time.Millisecond)
}

// play lets things happen until a time.
func (m *model) play(until time.Duration) {
	for m.err == nil {
		next := until
		if len(m.due) > 0 {
			next = min(next, m.due[0].at)
		}
		if e := m.store.expires; e != 0 && e <= next {
			m.now = max(m.now, e)
			m.store.pass(m.now)
			m.show()
			continue
		}
		m.now = max(m.now, next)
		m.store.pass(m.now)
		if len(m.due) == 0 || m.due[0].at > until {
			return
		}
		heap.Pop(&m.due).(thing).do()
		m.show()
	}
}

// show shows the watches what they wait for.
func (m *model) show() {
	if m.store.index == m.seen {
		return
	}
	m.seen = m.store.index
	m.watches = slices.DeleteFunc(m.watches, func(w *watching) bool {
		if w.dropped || w.of.dead {
			return true
		}
		r, ok := m.store.watched(w.Action)
		if ok {
			m.later(m.travel(), func() { w.show(r) })
		}
		return ok
	})
}

func (m *model) watch(w *watching) {
	if r, ok := m.store.watched(w.Action); ok {
		m.later(m.travel(), func() { w.show(r) })
		return
	}
	m.watches = append(m.watches, w)
}

// step steps a machine, unless it is stopped, and checks the invariants.
func (m *model) step(a *actor, e Event) {
	if a.dead {
		return
	}
	if a.frozen > m.now {
		m.later(a.frozen-m.now, func() { m.step(a, e) })
		return
	}
	m.sum.steps++
	e.Now, e.Chance = m.now, m.rand.Float64()
	for _, action := range a.machine.Step(e) {
		a.act(action)
	}
	switch p := a.machine.phase; {
	case a.working && a.latest > a.world.Version:
		m.fail("%s works in version %d and has seen version %d", a.name, a.world.Version, a.latest)
	case p != idle && p != over && len(a.machine.asked) == 0 && a.machine.resume == nil:
		m.fail("%s waits for nothing while %s", a.name, p)
	case len(a.machine.asked) > 3:
		m.fail("%s has %d requests under way", a.name, len(a.machine.asked))
	}
}

func (a *actor) act(action Action) {
	m := a.model
	switch action.Kind {
	case Alarm:
		a.alarm++
		n := a.alarm
		if action.At != 0 {
			m.later(action.At-m.now, func() {
				if n == a.alarm {
					m.step(a, Event{Kind: EventTick})
				}
			})
		}
	case Drop:
		for _, w := range m.watches {
			if w.of == a && w.ID == action.ID {
				w.dropped = true
			}
		}
	case Formed:
		m.claim(a, action.World)
	case Changed:
		m.note("%s sees that version %d is over", a.name, a.world.Version)
		a.working = false
		m.later(m.some(3*time.Second), func() {
			if !a.dead && !a.leaving && !a.ended && a.world.Version != 0 {
				m.rejoin(a, "its world is over")
			}
		})
	case Ended:
		m.note("%s ends", a.name)
		a.ended = true
	case TimedOut, Withdrawn:
		m.withdrawn(a, action.Kind)
	default:
		a.request(action)
	}
}

// withdrawn checks that an agent that left has left nothing that others wait for.
func (m *model) withdrawn(a *actor, kind string) {
	m.note("%s: %s", a.name, kind)
	s := m.active()
	if m.loss == 0 && (s.Status == Joinable || s.Status == Frozen) && slices.Contains(s.Agents, a.name) &&
		a.frozen == 0 && m.now < a.machine.until {
		m.fail("%s has left, and is still in %s", a.name, s.Raw)
	}
	if kind == TimedOut && (m.calm || m.rand.IntN(2) == 0) {
		m.later(m.some(5*time.Second), func() {
			if !a.dead && !a.leaving {
				m.rejoin(a, "again")
			}
		})
		return
	}
	a.kill()
}

// request sends a request on its way, which may end anywhere.
func (a *actor) request(action Action) {
	m := a.model
	answer := func(r Reply) {
		m.later(m.travel(), func() { a.answered(action, r) })
	}
	fate := 1.0
	if !m.calm && m.loss > 0 {
		fate = m.rand.Float64() / m.loss
	}
	m.later(m.travel(), func() {
		switch {
		case a.dead && m.rand.IntN(2) == 0:
		case action.Kind == Watch && fate >= 1:
			m.watch(&watching{Action: action, of: a, show: func(r Reply) { a.answered(action, r) }})
		case action.Kind == Watch || fate < 0.3:
			m.later(m.some(3*time.Second), func() { a.answered(action, Reply{Code: Lost}) })
		case fate < 0.6:
			m.store.do(action)
			m.later(m.some(3*time.Second), func() { a.answered(action, Reply{Code: Lost}) })
		case fate < 1:
			m.store.do(action)
			answer(m.store.do(action))
		default:
			answer(m.store.do(action))
		}
	})
}

func (a *actor) answered(action Action, r Reply) {
	if a.machine == nil {
		return
	}
	if (action.Kind == Get || action.Kind == Watch) && r.Value != "" {
		if version := a.model.final(r.Value); version > a.latest && a.machine.asked[action.ID] != nil {
			a.latest = version
		}
	}
	a.model.step(a, Event{Kind: EventAnswer, ID: action.ID, Reply: r})
}

func (a *actor) kill() {
	a.dead, a.working, a.world = true, false, Membership{}
	if a.stop != nil {
		a.stop()
	}
}

// start starts an agent of torch.
func (a *actor) start() {
	m := a.model
	a.torch = &torch{
		min: m.min, max: m.max, lastCall: m.lastCall, dir: "/r", rand: m.rand,
		now: func() time.Duration { return m.now },
	}
	a.next, a.stop = iter.Pull(a.torch.life())
	a.resume()
}

// resume lets an agent of torch run until it wants something.
func (a *actor) resume() {
	m := a.model
	if a.dead {
		return
	}
	left := a.world.Version
	a.working, a.world = false, Membership{}
	m.broken(left)
	w, ok := a.next()
	switch {
	case !ok:
		m.note("%s of torch ends", a.name)
		a.dead = true
	case w.ask != nil && w.ask.Kind == Watch:
		a.torchWatch(*w.ask, w.limit)
	case w.ask != nil:
		m.later(m.travel(), func() {
			r := m.store.do(*w.ask)
			m.later(m.travel(), func() { a.torchGot(r) })
		})
	case w.alive:
		m.later(0, func() { a.torchRenew(a.torch.key) })
		a.resume()
	case w.final:
		m.claim(a, Membership{Version: a.torch.version, Rank: a.torch.rank, Size: a.torch.size})
		m.later(5*time.Second, func() { a.torchLook(a.torch.version) })
	default:
		m.later(w.sleep, a.resume)
	}
}

func (a *actor) torchGot(r Reply) {
	if !a.dead {
		a.torch.got = r
		a.resume()
	}
}

func (a *actor) torchWatch(action Action, limit time.Duration) {
	m, done := a.model, false
	got := func(r Reply) {
		if !done {
			done = true
			a.torchGot(r)
		}
	}
	w := &watching{Action: action, of: a, show: got}
	m.watch(w)
	m.later(limit, func() {
		w.dropped = true
		got(Reply{})
	})
}

// torchRenew keeps a key of an agent of torch alive.
func (a *actor) torchRenew(key string) {
	if a.dead || a.torch.key != key {
		return
	}
	a.model.store.do(Action{Kind: Refresh, Key: key, TTL: 10 * time.Second})
	a.model.later(5*time.Second, func() { a.torchRenew(key) })
}

// torchLook polls, for a running agent of torch, whether any agent waits, whatever the version.
func (a *actor) torchLook(version int) {
	m := a.model
	if a.dead || !a.working || a.world.Version != version {
		return
	}
	if s := m.active(); s.Status == Final && s.Waiting > 0 {
		a.resume()
		return
	}
	m.later(5*time.Second, func() { a.torchLook(version) })
}
