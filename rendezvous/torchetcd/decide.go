package torchetcd

import (
	"slices"
	"strconv"
	"time"
)

// read asks for the state, and goes on from it.
func (m *Machine) read() {
	m.ask(Action{Kind: Get, Key: m.active()}, func(r Reply) {
		switch r.Code {
		case 0:
			if !m.parse(r.Value) { // whoever wrote it may mend it
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

func (m *Machine) retry() { m.pause(m.spread(m.Timings.Retry), m.read) }

// spread is a random time around d.
func (m *Machine) spread(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + m.chance))
}

// decide goes on from the state that was seen last. All that is to be done follows from it and from what this agent
// knows of itself, so that a lost answer or a change that came first need nothing but another look.
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

// wait lets the next change of a key, or below a directory, lead to another decision. A state that a watch has shown is
// not the newest where many change it: they are let gather, and read at once.
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
			m.shown(r)
		}
	})
	m.watch = m.id
}

// gather is how long changes are let gather, the longer the more agents may make one.
func (m *Machine) gather() time.Duration {
	t := m.Timings
	return m.spread(min(max(2, time.Duration(m.state.Participants))*t.Slot, t.Retry))
}

// shown goes on from what a watch has shown.
func (m *Machine) shown(r Reply) {
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

// attempt does something after a pause, and a look whether it is still to be done. Pauses of different lengths are what
// lets many agents swap one key.
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

// swap changes the state, and goes on from it. Where somebody else was first, or nobody knows, a look will tell.
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

// again looks at the state after a request that failed, at once where the store has answered.
func (m *Machine) again(r Reply) {
	switch r.Code {
	case 0, CodeNotFound, CodeCompare, CodeExists:
		m.read()
	default:
		m.retry()
	}
}

// place is this agent's rank in the version seen, -1 where it has none.
func (m *Machine) place() int {
	s := m.state
	if i := slices.Index(s.Agents, m.Token); i >= 0 {
		m.version, m.rank = s.Version, i
		return i
	}
	// Somebody may have dropped the field, and then nobody can move up.
	if m.version != 0 && m.version == s.Version && m.rank < s.Participants && s.marked() == 0 {
		return m.rank
	}
	return -1
}

// look is what a member does: it looks whether its world is over.
func (m *Machine) look() {
	s := m.state
	switch {
	case s.Status == Closed:
		m.wait(false, m.Timings.Watch)
	case s.Status == Final && s.Version == m.version && s.Waiting == 0:
		m.attend()
	default:
		m.phase = over
		m.out = append(m.out, Action{Kind: Changed})
	}
}

// attend waits for the end of the world, and looks now and then whether the member of the next rank lives: one that dies
// while nobody's workers fail is missed by no agent of torch. Where all members are of our kind, who take a version that
// is gone for the end of their world, the one before the dead deletes it. It does so only when it has missed the
// keep-alive twice, as all of them run out while the store stands still, and are then written again.
func (m *Machine) attend() {
	s := m.state
	left := m.attendAt - m.now
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
		m.missed, m.attendAt = gone, m.now+m.Timings.KeepAliveTTL
		m.wait(false, m.Timings.KeepAliveTTL)
	})
}

// withdraw takes this agent out of what others may wait for. Out of a joinable version it takes its entry, where those
// after it will notice that they moved up. Otherwise, and once the version is frozen, the version cannot become a world
// without it, and is deleted: all others read that as one that expired, and make the next. Out of a world it goes as one
// who wishes for another, so that the others make theirs.
func (m *Machine) withdraw() {
	s, rank := m.state, m.place()
	done := func(Reply) { m.end(m.outcome) }
	switch {
	case rank < 0 || s.Status == Closed || s.Status == Setup || s.Status == "":
		m.end(m.outcome)
	case s.Status == Joinable:
		if next, ok := s.without(rank); ok {
			m.version = 0 // if the answer is lost, whoever has this rank then is another, unless it has our token
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

// destroy deletes the version as it was seen.
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
