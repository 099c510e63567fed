// Package torchetcd decides an agent's part in PyTorch's etcd rendezvous. A Machine forms worlds: it takes events, the
// answers of the store among them, and returns actions, the requests to the store among them. An Exchange is what the
// members of a world then tell each other. Neither has a clock, network or randomness of its own. Package etcd runs
// them.
package torchetcd

import (
	"path"
	"strconv"
	"time"
)

// Protocol configures a Machine.
type Protocol struct {
	Dir      string // the run's directory of rendezvous keys, torch's PREFIX/run_ID/rdzv
	Token    string // unique to this machine among all that ever joined the run
	Min, Max int
	LastCall time.Duration
	Timings  Timings
}

// Timings of the protocol. Those that are zero are as Defaults has them.
type Timings struct {
	SetupTTL     time.Duration // of a version in setup; torch has 5 s
	StateTTL     time.Duration // of a version that waits for certain agents; torch has 10 s
	KeepAliveTTL time.Duration // of a participant's keep-alive; torch has 10 s
	Renew        time.Duration // between refreshes of the keep-alive, and of a version in its last call; torch has 5 s
	// PeerPoll is the polling interval of torch's agents; ours do not poll. An agent that waits for them deletes a dead
	// version no earlier, as they would not notice a version of another number; 5 s by torch 1.13's default.
	PeerPoll time.Duration
	Retry    time.Duration // pause after an error of the store
	Backoff  time.Duration // the first random pause before a swap; it doubles with each that is lost
	Slot     time.Duration // how far apart agents confirm, and how long each in a world lets changes gather
	Watch    time.Duration // how long a watch without events lasts before the state is read
	Withdraw time.Duration // how long a machine tries to remove its entry
	Poll     time.Duration // between reads of the state, where it is not to be watched; 0 watches
}

// Defaults are torch's times where torch has them.
func Defaults() Timings {
	return Timings{
		SetupTTL: 5 * time.Second, StateTTL: 10 * time.Second, KeepAliveTTL: 10 * time.Second, Renew: 5 * time.Second,
		PeerPoll: 5 * time.Second, Retry: time.Second, Backoff: 50 * time.Millisecond, Slot: 4 * time.Millisecond,
		Watch: time.Minute, Withdraw: 5 * time.Second,
	}
}

func (t Timings) completed() Timings {
	d := Defaults()
	for _, f := range []struct{ field, value *time.Duration }{
		{&t.SetupTTL, &d.SetupTTL},
		{&t.StateTTL, &d.StateTTL},
		{&t.KeepAliveTTL, &d.KeepAliveTTL},
		{&t.Renew, &d.Renew},
		{&t.PeerPoll, &d.PeerPoll},
		{&t.Retry, &d.Retry},
		{&t.Backoff, &d.Backoff},
		{&t.Slot, &d.Slot},
		{&t.Watch, &d.Watch},
		{&t.Withdraw, &d.Withdraw},
	} {
		if *f.field == 0 {
			*f.field = *f.value
		}
	}
	return t
}

// Event is what happens to a machine.
type Event struct {
	Kind   string        // one of the kinds below
	Now    time.Duration // since any moment, the same for all events
	Chance float64       // 0 ≤ Chance < 1, at random: of it the machine makes its random pauses
	Until  time.Duration // of Join: its deadline
	ID     int           // of Answer: the request
	Reply  Reply         // of Answer
}

// Kinds of events.
const (
	EventTick   = "tick"   // an alarm is due
	EventAnswer = "answer" // the store answered, or the request is lost
	EventJoin   = "join"   // the agent wants a new world; not while it waits for one
	EventLeave  = "leave"  // the agent wants no world any more
	EventClose  = "close"  // the run has ended
)

// Reply is what the store answered.
type Reply struct {
	Code     int      // 0, a code of etcd's v2 API, or Lost
	Key      string   // of Watch: what changed
	Gone     bool     // of Watch: it was deleted, or expired
	Value    string   // of Get and Watch
	Modified uint64   // of Get, Watch and Swap: the index at which the key was written
	Index    uint64   // of Get: the store's, from which a watch misses nothing
	Names    []string // of List: the keys in the directory
	Values   []string // of List: their values
}

// Codes of etcd's v2 API that machines tell apart, Lost where the request may or may not have been carried out, and
// Expired where a watch has shown nothing in its time.
const (
	Lost           = -1
	Expired        = -2
	CodeNotFound   = 100
	CodeCompare    = 101
	CodeExists     = 105
	CodeEventsGone = 401
)

// Action is what a machine wants done.
type Action struct {
	Kind     string
	ID       int           // of requests, whose answer is to have the same
	Key      string        // of requests
	Value    string        // of Create, Swap, SwapAt and Set
	Previous string        // of Swap and Delete: the value that must be there
	Index    uint64        // of SwapAt: at which the key must have been written; of Watch: the first event to be shown
	TTL      time.Duration // of Create, Swap, Set and Refresh; 0 is for ever
	At       time.Duration // of Alarm: when to tick, instead of any time said before; 0 is never
	For      time.Duration // of Pause, and of Watch in an Exchange: how long
	World    Membership    // of Formed
}

// Kinds of actions. The first part are requests, each of which is answered once unless it is dropped.
const (
	Get     = "get"
	List    = "list"
	Create  = "create" // only where there is none
	Mkdir   = "mkdir"  // likewise
	Set     = "set"
	Swap    = "swap"    // by value
	SwapAt  = "swap-at" // by index
	Refresh = "refresh" // the TTL, which wakes no watch
	Delete  = "delete"  // by value
	Watch   = "watch"   // the first event of a key, or of all below a directory

	Drop  = "drop" // a watch: its answer is not wanted any more
	Alarm = "alarm"
	Pause = "pause" // only in an Exchange: reply after a time

	Formed    = "formed"    // a world; answers join
	Changed   = "changed"   // the world is over
	Ended     = "ended"     // the run is closed; answers join and close
	TimedOut  = "timed-out" // too few came; answers join
	Withdrawn = "withdrawn" // answers leave
)

// Membership is a world as the protocol knows it.
type Membership struct {
	Version, Rank, Size int
	Agents              []string // tokens by rank, "" for agents of torch
}

// Known says whether all agents of the world are ours.
func (m Membership) Known() bool { return State{Participants: m.Size, Agents: m.Agents}.Known() }

// Machine is one agent's part in torch's etcd rendezvous. Step takes an event and returns actions; the replies to its
// requests are events again. Requests are made one at a time, except for those that keep the agent's key alive.
type Machine struct {
	Protocol
	now    time.Duration
	chance float64
	out    []Action

	phase   phase
	outcome string        // of withdrawing: the reply to the caller
	until   time.Duration // deadline of joining and withdrawing

	state State  // as last seen; Status "" where there is none
	index uint64 // of the store, when it was read
	fresh bool   // it was read, and does not come from a watch

	id      int // of the last request
	asked   map[int]func(Reply)
	watch   int // the request that is a watch, or 0
	pauseAt time.Duration
	resume  func()
	alarm   time.Duration // announced

	alive   string // key that is kept alive, or ""
	renewAt time.Duration
	renewal bool // a refresh is under way

	version, rank int           // of the version that this agent entered
	checkAt       time.Duration // when the member of the next rank is looked at
	missed        bool          // its keep-alive was missing
	announced     int           // version in which it announced that it waits
	announcedAt   time.Duration
	dead          int    // version of which a member is dead
	readied       string // what the last pause was for
	losses        int    // swaps lost since one was won
	called        int    // version whose last call has begun
	callUntil     time.Duration
	callAgainAt   time.Duration // when its TTL is to be renewed
}

type phase string

const (
	idle        phase = "idle"
	joining     phase = "joining"
	member      phase = "member" // and the world stands
	over        phase = "over"   // a member still, whose world is over
	withdrawing phase = "withdrawing"
	closing     phase = "closing"
)

// New returns a machine that has not joined.
func New(p Protocol) *Machine {
	p.Timings = p.Timings.completed()
	return &Machine{Protocol: p, phase: idle, asked: map[int]func(Reply){}}
}

// Step is what follows from an event.
func (m *Machine) Step(e Event) []Action {
	m.now, m.chance, m.out = e.Now, e.Chance, nil
	switch e.Kind {
	case EventAnswer:
		if then, ok := m.asked[e.ID]; ok {
			delete(m.asked, e.ID)
			then(e.Reply)
		}
	case EventJoin: // in a world, too: the end of its keep-alive says that this agent has left it
		m.keepAlive("")
		m.enter(joining, e.Until)
	case EventLeave:
		m.keepAlive("")
		m.withdrawWith(Withdrawn)
	case EventClose:
		m.enter(closing, 0)
	case EventTick:
		m.tick()
	}
	if next := m.next(); next != m.alarm {
		m.alarm = next
		m.out = append(m.out, Action{Kind: Alarm, At: next})
	}
	return m.out
}

func (m *Machine) tick() {
	if m.until != 0 && m.until <= m.now {
		m.until = 0
		if m.phase == withdrawing { // what is left expires
			m.stopWaiting()
			m.end(m.outcome)
			return
		}
		m.keepAlive("")
		m.withdrawWith(TimedOut)
	}
	if m.alive != "" && !m.renewal && m.renewAt <= m.now {
		m.renew()
	}
	if m.resume != nil && m.pauseAt <= m.now {
		then := m.resume
		m.stopWaiting()
		then()
	}
}

// next is when the machine wants to be ticked, 0 for never.
func (m *Machine) next() time.Duration {
	var next time.Duration
	sooner := func(t time.Duration) {
		if next == 0 || t < next {
			next = max(t, 1)
		}
	}
	if m.until != 0 {
		sooner(m.until)
	}
	if m.alive != "" && !m.renewal {
		sooner(m.renewAt)
	}
	if m.resume != nil {
		sooner(m.pauseAt)
	}
	return next
}

// enter begins a phase. It ends a pause and a watch; a request under way is still answered, as it may change the next
// read.
func (m *Machine) enter(p phase, until time.Duration) {
	m.phase, m.until, m.readied, m.losses = p, until, "", 0
	m.stopWaiting()
	if !m.busy() {
		m.read()
	}
}

// withdrawWith begins to remove what others would wait for.
func (m *Machine) withdrawWith(outcome string) {
	if m.phase == idle {
		m.end(outcome)
		return
	}
	m.outcome = outcome
	m.enter(withdrawing, m.now+m.Timings.Withdraw)
}

// end replies to the caller of this phase.
func (m *Machine) end(outcome string) {
	m.keepAlive("")
	m.phase, m.until, m.version = idle, 0, 0
	m.out = append(m.out, Action{Kind: outcome})
}

// busy says whether a request is under way that is neither a watch nor a renewal.
func (m *Machine) busy() bool {
	n := len(m.asked)
	if m.renewal {
		n--
	}
	if m.watch != 0 {
		n--
	}
	return n > 0
}

// stopWaiting ends a pause and a watch.
func (m *Machine) stopWaiting() {
	m.resume = nil
	if m.watch != 0 {
		delete(m.asked, m.watch)
		m.out = append(m.out, Action{Kind: Drop, ID: m.watch})
		m.watch = 0
	}
}

// ask makes a request. A phase that began before the reply starts by reading the state.
func (m *Machine) ask(a Action, then func(Reply)) {
	asked := m.phase
	m.send(a, func(r Reply) {
		switch {
		case m.phase == idle:
		case m.phase != asked:
			m.read()
		default:
			then(r)
		}
	})
}

func (m *Machine) send(a Action, then func(Reply)) {
	m.id++
	a.ID = m.id
	m.asked[m.id] = then
	m.out = append(m.out, a)
}

func (m *Machine) pause(d time.Duration, then func()) {
	m.pauseAt, m.resume = m.now+d, then
}

// keepAlive keeps a key alive that has just been written, or none.
func (m *Machine) keepAlive(key string) {
	m.alive, m.renewAt = key, m.now+m.Timings.Renew
}

// renew refreshes the keep-alive. One that expired, because the store or this process stood still, is written again:
// the state shows what others concluded.
func (m *Machine) renew() {
	key := m.alive
	m.renewal = true
	m.send(Action{Kind: Refresh, Key: key, TTL: m.Timings.KeepAliveTTL}, func(r Reply) {
		m.renewed(key, r, m.Timings.Renew)
	})
}

func (m *Machine) renewed(key string, r Reply, after time.Duration) {
	m.renewal = false
	switch {
	case m.alive != key:
	case r.Code == 0:
		m.renewAt = m.now + after
	case r.Code == CodeNotFound:
		m.renewal = true
		m.send(Action{Kind: Set, Key: key, TTL: m.Timings.KeepAliveTTL}, func(r Reply) { m.renewed(key, r, after) })
	default:
		m.renewAt = m.now + min(m.Timings.Retry, after)
	}
}

func (m *Machine) active() string  { return path.Join(m.Dir, "active_version") }
func (m *Machine) counter() string { return path.Join(m.Dir, "version_counter") }

// VersionDir is the directory of a version, which holds the keep-alives and the keys of its Exchange.
func (p Protocol) VersionDir(version int) string {
	return path.Join(p.Dir, "v_"+strconv.Itoa(version))
}

func (m *Machine) keepAliveKey(version, rank int) string {
	return path.Join(m.VersionDir(version), "rank_"+strconv.Itoa(rank))
}
