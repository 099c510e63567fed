package torchetcd

import (
	"slices"
	"strconv"
	"time"
)

// read reads the state and decides on it.
func (m *Machine) read() {
	m.ask(Action{Kind: Get, Key: m.active()}, func(r Reply) {
		switch r.Code {
		case 0:
			if !m.parse(r.Value) { // its writer may repair it
				m.retry()
				return
			}
			m.index, m.fresh = r.Index, true
			m.decide()
		case CodeNotFound:
			m.state, m.index, m.fresh = State{}, r.Index, true
			m.decide()
		default:
			m.retry()
		}
	})
}

func (m *Machine) retry() { m.pause(m.jitter(m.Timings.Retry), m.read) }

// jitter is a random time around d.
func (m *Machine) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + m.chance))
}

// decide acts on the state as last seen. Everything follows from it and from what this agent knows of itself, so that a
// lost answer or a concurrent change needs nothing but another read.
func (m *Machine) decide() {
	switch m.phase {
	case joining:
		m.join()
	case member:
		m.look()
	case withdrawing:
		m.withdraw()
	case closing:
		m.close()
	case idle, over:
	}
}

// wait decides again at the next change of a key, or below a directory. A state that comes from a watch is not the
// newest where many change it: after a pause, all their changes are read at once.
func (m *Machine) wait(recursive bool, atMost time.Duration) {
	switch {
	case m.Timings.Poll > 0:
		m.pause(min(m.Timings.Poll, atMost), m.read)
		return
	case !m.fresh:
		m.pause(min(m.gather(), atMost), m.read)
		return
	}
	key := m.active()
	if recursive {
		key = m.Dir
	}
	m.pause(min(atMost, m.Timings.Watch), func() { m.read() })
	asked := m.phase
	m.send(Action{Kind: Watch, Key: key, Index: m.index + 1}, func(r Reply) {
		m.watch, m.resume = 0, nil
		if m.phase == asked {
			m.observed(r)
		}
	})
	m.watch = m.id
}

// gather is how long changes may gather; the longer, the more agents may make one.
func (m *Machine) gather() time.Duration {
	t := m.Timings
	return m.jitter(min(max(2, time.Duration(m.state.Participants))*t.Slot, t.Retry))
}

// observed decides on an event of a watch.
func (m *Machine) observed(r Reply) {
	switch {
	case r.Code == CodeEventsGone:
		m.read()
	case r.Code != 0:
		m.retry()
	case r.Key != m.active():
		m.fresh = false
		m.pause(m.gather(), m.read)
	case r.Gone:
		m.fresh, m.state = false, State{}
		m.decide()
	default:
		if !m.parse(r.Value) {
			m.retry()
			return
		}
		m.fresh, m.index = m.state.Status == Final, r.Modified // a world is not changed often
		m.decide()
	}
}

// parse takes a state for the present one; false where it is none.
func (m *Machine) parse(raw string) bool {
	if m.state.Status != "" && m.state.Raw == raw {
		return true
	}
	s, err := ParseState(raw)
	if err == nil {
		m.state = s
	}
	return err == nil
}

// attempt does something after a pause, if a read shows that it is still needed. Pauses of different lengths let many
// agents swap one key.
func (m *Machine) attempt(what string, pause time.Duration, do func()) {
	if m.fresh && m.readied == what+strconv.Itoa(m.state.Version) {
		m.readied = ""
		do()
		return
	}
	m.ready(what)
	m.pause(pause, m.read)
}

// ready lets the next attempt be made as soon as the state has been read.
func (m *Machine) ready(what string) { m.readied = what + strconv.Itoa(m.state.Version) }

// backoff is a random pause, from a time that doubles with each swap that was lost.
func (m *Machine) backoff() time.Duration {
	return time.Duration(m.chance * float64(m.Timings.Backoff<<min(m.losses, 6)))
}

// swap changes the state and decides on it. Where another agent was first, or the reply is lost, it reads the state.
func (m *Machine) swap(next State, ttl time.Duration, won func()) {
	text := next.String()
	m.ask(Action{Kind: Swap, Key: m.active(), Previous: m.state.Raw, Value: text, TTL: ttl}, func(r Reply) {
		if r.Code != 0 {
			m.losses++
			m.again(r)
			return
		}
		m.losses = 0
		if won != nil {
			won()
			return
		}
		next.Raw = text
		m.state, m.fresh, m.index = next, true, r.Modified
		m.decide()
	})
}

// again reads the state after a request that failed, at once where the store has answered.
func (m *Machine) again(r Reply) {
	switch r.Code {
	case 0, CodeNotFound, CodeCompare, CodeExists:
		m.read()
	default:
		m.retry()
	}
}

// ownRank is this agent's rank in the version seen, -1 where it has none.
func (m *Machine) ownRank() int {
	s := m.state
	if i := slices.Index(s.Agents, m.Token); i >= 0 {
		m.version, m.rank = s.Version, i
		return i
	}
	// An agent may have dropped the field; then no rank can change.
	if m.version != 0 && m.version == s.Version && m.rank < s.Participants && s.tokens() == 0 {
		return m.rank
	}
	return -1
}

// look is what a member does: it checks whether its world is over.
func (m *Machine) look() {
	s := m.state
	switch {
	case s.Status == Closed:
		m.wait(false, m.Timings.Watch)
	case s.Status == Final && s.Version == m.version && s.Waiting == 0:
		m.checkNext()
	default:
		m.phase = over
		m.out = append(m.out, Action{Kind: Changed})
	}
}

// checkNext waits for the end of the world, and checks now and then whether the member of the next rank is alive: no
// agent of torch notices one that dies while no worker fails. Where all members are ours, to whom a deleted version
// ends the world, the one before the dead deletes it. It does so only when it has missed the keep-alive twice, as all
// of them expire while the store stands still, and are then written again.
func (m *Machine) checkNext() {
	s := m.state
	left := m.checkAt - m.now
	switch {
	case s.Participants == 1 || !s.Known():
		m.wait(false, m.Timings.Watch)
		return
	case left > 0:
		m.wait(false, left)
		return
	}
	m.ask(Action{Kind: Get, Key: m.keepAliveKey(m.version, (m.rank+1)%s.Participants)}, func(r Reply) {
		gone := r.Code == CodeNotFound
		if gone && m.missed {
			m.destroy(func(Reply) { m.read() })
			return
		}
		m.missed, m.checkAt = gone, m.now+m.Timings.KeepAliveTTL
		m.wait(false, m.Timings.KeepAliveTTL)
	})
}

// withdraw removes this agent from what others may wait for. It removes its entry from a joinable version, if those
// after it will notice their new ranks. Otherwise, and once the version is frozen, the version cannot become a world
// without it, and is deleted: all others read that as one that expired, and create the next. From a world it withdraws
// by announcing that it waits, so that the others form theirs.
func (m *Machine) withdraw() {
	s, rank := m.state, m.ownRank()
	done := func(Reply) { m.end(m.outcome) }
	switch {
	case rank < 0 || s.Status == Closed || s.Status == Setup || s.Status == "":
		m.end(m.outcome)
	case s.Status == Joinable:
		if next, ok := s.without(rank); ok {
			m.version = 0 // if the answer is lost, the rank may be another agent's, unless it has our token
			m.swap(next, m.joinableTTL(next), func() { m.end(m.outcome) })
			return
		}
		m.destroy(done)
	case s.Status == Frozen, s.Known():
		m.destroy(done)
	case m.announced == s.Version:
		m.end(m.outcome)
	default:
		m.swap(s.announced(), 0, func() { m.end(m.outcome) })
	}
}

// destroy deletes the version as last seen.
func (m *Machine) destroy(then func(Reply)) {
	m.ask(Action{Kind: Delete, Key: m.active(), Previous: m.state.Raw}, func(r Reply) {
		if r.Code == 0 {
			then(r)
			return
		}
		m.again(r)
	})
}

// close ends the run, from whatever state it is in.
func (m *Machine) close() {
	s := m.state
	switch s.Status {
	case Closed:
		m.end(Ended)
	case "":
		m.ask(Action{Kind: Create, Key: m.active(), Value: s.closed().String()}, func(r Reply) {
			if r.Code == 0 {
				m.end(Ended)
				return
			}
			m.again(r)
		})
	default:
		m.swap(s.closed(), 0, func() { m.end(Ended) })
	}
}
