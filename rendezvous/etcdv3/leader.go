package etcdv3

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// What an agent, alive or not, is to the leader.
const (
	idle     = iota // nothing
	quits           // wants the run closed
	finished        // was in the latest version, and has succeeded
	busy            // is in the latest version, or has not reported yet that it has left it
	asks            // was in the latest version, and requests another
	waits           // was not in it, and requests one
	lost            // was in it, and is gone
	classes
)

// Timers of a leader.
const (
	timerLastCall = iota // waits for more than min
	timerPause           // lets newcomers gather
	timerGrace           // waits for agents of the version that is over
	timers
)

// lead is what an agent knows while it leads. Agents are distinguished by the create revision of their keys: a name may
// be used again. Agents are counted by class as they change: counting all of them at each join would cost n² in all.
type lead struct {
	rev             int64 // of the leader's key
	loaded, writing bool
	pause           time.Duration // before what was out of date is read again
	known           int64         // revision up to which agents is right
	names           map[string]int64
	agents          map[int64]entry
	members         map[int64]*member // of the latest version
	count           [classes]int

	tries   int
	pending doc               // what is being written
	next    map[int64]*member // of the version that is

	timer [timers]struct {
		seq     int // 0: not started
		elapsed bool
	}
}

type member struct {
	id   string
	done bool
}

func (m *machine) stepLeader(ev event) {
	l := m.lead
	if l == nil {
		return
	}
	switch ev := ev.(type) {
	case evReload:
		l.loaded = false
		m.reload()
	case evLoaded:
		m.loaded(ev)
	case evAgent:
		m.agent(ev)
	case evWritten:
		l.writing = false
		if ev.ok {
			m.see(&l.pending, ev.rev)
		} else {
			l.loaded = false
		}
		m.reload()
		m.decide()
	case evTimer:
		if t := &l.timer[ev.kind]; t.seq == ev.seq {
			t.elapsed = true
			m.decide()
		}
	}
}

// reload reads all that the leader decides by, once no write of its own is under way.
func (m *machine) reload() {
	if l := m.lead; l != nil && !l.loaded && !l.writing {
		m.do(actLoad{l.pause})
	}
}

func (m *machine) loaded(ev evLoaded) {
	l := m.lead
	switch {
	case ev.leader != l.rev:
		m.stepDown()
		return
	case ev.rev < m.worldSeen:
		// Read before the version that there is, and overtaken by it. A store that was restored from a backup may
		// answer so for long.
		l.loaded, l.pause = false, min(max(leastPause, 2*l.pause), mostPause)
		m.reload()
		return
	}
	l.loaded, l.pause, l.known = true, 0, ev.rev
	l.names, l.agents, l.members = map[string]int64{}, map[int64]entry{}, map[int64]*member{}
	for id, a := range ev.agents {
		l.names[id], l.agents[a.created] = a.created, a.entry
	}
	for id, a := range ev.members {
		l.members[a.Created] = &member{id, a.Done}
	}
	for c, e := range l.agents {
		if p := l.members[c]; p != nil && e.Intent == done {
			p.done = true
		}
	}
	if ev.world == nil {
		m.see(nil, ev.rev)
	} else {
		m.see(ev.world, ev.worldRev)
	}
	if m.lead != nil {
		m.recount()
		m.decide()
	}
}

// agent takes a change of one agent's key.
func (m *machine) agent(ev evAgent) {
	l := m.lead
	l.known = ev.rev
	if ev.entry == nil {
		c := l.names[ev.id]
		l.count[m.class(c)]--
		delete(l.names, ev.id)
		delete(l.agents, c)
		l.count[m.class(c)]++
		m.decide()
		return
	}
	c := ev.created
	l.count[m.class(c)]--
	l.names[ev.id], l.agents[c] = c, *ev.entry
	if p := l.members[c]; p != nil && ev.entry.Intent == done {
		p.done = true
	}
	l.count[m.class(c)]++
	m.decide()
}

func (m *machine) class(created int64) int {
	e, alive := m.lead.agents[created]
	p := m.lead.members[created]
	switch {
	case alive && e.Intent == failing:
		return quits
	case p != nil && p.done:
		return finished
	case p != nil && !alive:
		return lost
	case !alive || e.Intent == done:
		return idle
	case p == nil:
		return waits
	case e.After >= m.world.Version:
		return asks
	}
	return busy
}

func (m *machine) recount() {
	l := m.lead
	l.count = [classes]int{}
	for c := range l.agents {
		l.count[m.class(c)]++
	}
	for c := range l.members {
		if _, alive := l.agents[c]; !alive {
			l.count[m.class(c)]++
		}
	}
}

// follow is what a leader does when the run's state has changed: by its own write, or by a late one of an earlier
// leader.
func (m *machine) follow() {
	l := m.lead
	if l == nil {
		return
	}
	for kind := range l.timer {
		m.stop(kind)
	}
	if m.world.State == final && m.world.Dir == l.pending.Dir {
		l.members = l.next
	}
	m.recount()
	m.decide()
}

func (m *machine) stepDown() {
	if m.lead != nil {
		m.lead = nil
		m.do(actStepDown{})
	}
}

// decide writes the next state, if any is due.
func (m *machine) decide() {
	l := m.lead
	if l == nil || !l.loaded || l.writing || m.world.State.over() {
		return
	}
	switch {
	case l.count[quits] > 0:
		m.announce(failed)
	case m.world.State == final:
		m.keep()
	default:
		m.form()
	}
}

// keep checks whether the running version can go on. A loss is announced at once, newcomers after a pause. A version
// whose first agents have finished is not stopped for newcomers.
func (m *machine) keep() {
	n := &m.lead.count
	switch {
	case n[finished] == m.world.Size:
		m.announce(succeeded)
	case n[lost]+n[asks] > 0:
		m.announce(forming)
	case n[waits] == 0 || m.world.Size == m.rules.max || n[finished] > 0:
		m.stop(timerPause)
	case m.after(timerPause):
		m.announce(forming)
	}
}

// form checks whether the next version can be formed: at once by the maximum, after the last call by fewer. For agents
// that still stop their workers it waits longer than that, but not for ever.
func (m *machine) form() {
	n := &m.lead.count
	patient := n[busy] > 0 && !m.after(timerGrace)
	if n[busy] > 0 && !patient && m.worldRev == 0 {
		// The run's state is forgotten: who has missed the version in it never reports that it has left that.
		clear(m.lead.members)
		m.recount()
	}
	ready := n[asks] + n[waits]
	switch {
	case ready >= m.rules.max:
		m.write()
	case ready < m.rules.min:
		m.stop(timerLastCall)
	case m.after(timerLastCall) && !patient:
		m.write()
	}
}

// after says whether a time has passed, and starts it if it has not begun.
func (m *machine) after(kind int) bool {
	l := m.lead
	t := &l.timer[kind]
	d := [timers]time.Duration{m.rules.lastCall, m.rules.pause, m.rules.grace}[kind]
	if t.seq == 0 {
		m.seq++
		t.seq, t.elapsed = m.seq, d <= 0
		if d > 0 {
			m.do(actTimer{kind, t.seq, d})
		}
	}
	return t.elapsed
}

func (m *machine) stop(kind int) { m.lead.timer[kind].seq, m.lead.timer[kind].elapsed = 0, false }

// announce writes a new state of the version that there is.
func (m *machine) announce(s state) {
	l := m.lead
	l.pending, l.writing = doc{Version: m.world.Version, State: s, Dir: m.world.Dir}, true
	m.do(actWrite{leads: l.rev, worldRev: m.worldRev, doc: l.pending})
}

// chosen are the agents of the next version, oldest first. Those of the last one have priority over those that wait.
func (m *machine) chosen() []int64 {
	var ready []int64
	for c := range m.lead.agents {
		if k := m.class(c); k == asks || k == waits {
			ready = append(ready, c)
		}
	}
	slices.SortFunc(ready, func(a, b int64) int {
		return cmp.Or(cmp.Compare(m.class(a), m.class(b)), cmp.Compare(a,
			b))
	})
	ready = ready[:min(len(ready), m.rules.max)]
	slices.Sort(ready)
	return ready
}

// write gives every agent of the next version its assignment. The oldest is rank 0, so that an agent always watches an
// older one, whichever versions the two are in: among any agents there is one that watches no live agent.
func (m *machine) write() {
	l := m.lead
	l.tries++
	d := doc{Version: m.world.Version, State: final, Dir: fmt.Sprintf("%d-%d", l.rev, l.tries), Known: l.known}
	roles := map[string]int{}
	ids := map[int64]string{}
	for id, c := range l.names {
		ids[c] = id
	}
	chosen := m.chosen()
	for _, c := range chosen {
		d.Version = max(d.Version, l.agents[c].After) // agents know more where the run's state was deleted
		roles[l.agents[c].Role] += l.agents[c].Workers
	}
	d.Version++
	d.Size, d.Addr, d.Port = len(chosen), l.agents[chosen[0]].Host, l.agents[chosen[0]].Port
	places, pred, bases := make(map[string]assignment, len(chosen)), "", map[string]int{}
	l.next = make(map[int64]*member, len(chosen))
	for rank, c := range chosen {
		e := l.agents[c]
		places[ids[c]] = assignment{
			Rank: rank, Base: d.Total, RoleBase: bases[e.Role], RoleTotal: roles[e.Role],
			Pred: pred, Created: c, Neighbours: l.neighbours(rank, chosen, ids),
		}
		l.next[c] = &member{id: ids[c]}
		d.Total += e.Workers
		bases[e.Role] += e.Workers
		pred = ids[c]
	}
	l.pending, l.writing = d, true
	m.do(actWrite{l.rev, m.worldRev, d, places})
}

// neighbours are the agents that the one of this rank watches: that of the rank below, in a ring, and the one across
// it. So each is watched by two, who connect to few, and of half of a world that is lost at once, as with a rack, every
// agent is missed.
func (l *lead) neighbours(rank int, chosen []int64, ids map[int64]string) []neighbour {
	var all []neighbour
	n := len(chosen)
	for _, below := range []int{1, (n + 1) / 2} {
		c := chosen[(rank+n-below)%n]
		e := l.agents[c]
		next := neighbour{ids[c], c, e.address()}
		if c != chosen[rank] && next.Addr != "" && !slices.Contains(all, next) {
			all = append(all, next)
		}
	}
	return all
}
