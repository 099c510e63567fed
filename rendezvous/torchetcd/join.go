package torchetcd

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// join leads from the state to a world.
func (m *Machine) join() {
	s := m.state
	if s.Status == "" || s.Status == Joinable { // what was confirmed has expired
		m.keepAlive("")
	}
	switch s.Status {
	case "":
		m.create()
	case Closed:
		m.end(Ended)
	case Setup: // its TTL ends it if its creator died
		m.wait(false, m.Timings.Watch)
	case Joinable:
		m.joinable(m.ownRank())
	case Frozen:
		m.freeze(m.ownRank())
	case Final:
		m.final(m.ownRank())
	}
}

// create creates a version and enters it. Its text is unique: torch's are all the same, so that a creator whose own
// expired would continue another's, with a stale number.
func (m *Machine) create() {
	maker := json.RawMessage(quote(m.Token + "-" + strconv.Itoa(m.id)))
	s := State{Status: Setup, others: map[string]json.RawMessage{"maker": maker}}
	s.Raw = s.String()
	m.ask(Action{Kind: Create, Key: m.active(), Value: s.Raw, TTL: m.Timings.SetupTTL}, func(r Reply) {
		if r.Code != 0 {
			m.again(r)
			return
		}
		m.state, m.fresh = s, false
		m.count()
	})
}

// count takes the next number. A number whose reply was lost is never used, which does no harm.
func (m *Machine) count() {
	m.ask(Action{Kind: Get, Key: m.counter()}, func(r Reply) {
		if r.Code == CodeNotFound {
			m.ask(Action{Kind: Create, Key: m.counter(), Value: "0"}, func(r Reply) {
				if r.Code == 0 || r.Code == CodeExists {
					m.count()
					return
				}
				m.retry()
			})
			return
		}
		n, err := strconv.Atoi(r.Value)
		if r.Code != 0 || err != nil || n < 0 {
			m.retry()
			return
		}
		m.ask(Action{Kind: SwapAt, Key: m.counter(), Value: strconv.Itoa(n + 1), Index: r.Modified}, func(r Reply) {
			switch r.Code {
			case 0:
				m.open(n + 1)
			case CodeCompare:
				m.count()
			default:
				m.retry()
			}
		})
	})
}

// open makes the version joinable, with this agent as the first to enter.
func (m *Machine) open(version int) {
	m.ask(Action{Kind: Mkdir, Key: m.VersionDir(version)}, func(r Reply) {
		if r.Code != 0 && r.Code != CodeExists {
			m.retry()
			return
		}
		next := State{Status: Joinable, Version: version}.with(m.Token, m.Max)
		m.swap(next, m.joinableTTL(next), nil)
	})
}

// joinableTTL is the TTL of a version that is joinable, or frozen by its last participant. It has none while any agent
// may still come.
func (m *Machine) joinableTTL(s State) time.Duration {
	if s.Status == Joinable && s.Participants < m.Min {
		return 0
	}
	return m.Timings.StateTTL
}

// joinable enters this agent, or waits until all have come.
func (m *Machine) joinable(rank int) {
	s := m.state
	switch {
	case rank < 0 && s.Participants >= m.Max: // its participants freeze it
		m.wait(false, m.Timings.Watch)
	case rank < 0:
		m.attempt("join", m.backoff(), func() {
			next := m.state.with(m.Token, m.Max)
			m.swap(next, m.joinableTTL(next), nil)
		})
	case s.Participants >= m.Min:
		m.lastCall(rank)
	default:
		m.wait(false, m.Timings.Watch)
	}
}

// lastCall lets more agents than the minimum join. The agent of rank min-1 keeps the version from expiring, and ends
// the call; every other measures the time as well, as it may get that rank.
func (m *Machine) lastCall(rank int) {
	s := m.state
	if m.called != s.Version {
		m.called, m.callUntil, m.callAgainAt = s.Version, m.now+m.LastCall, m.now+m.Timings.Renew
	}
	left := m.callUntil - m.now
	switch {
	case rank != m.Min-1:
		m.wait(false, m.Timings.Watch)
	case left <= 0:
		m.attempt("freeze", 0, func() { m.swap(m.state.frozen(), m.Timings.StateTTL, nil) })
	case m.callAgainAt <= m.now:
		m.attempt("call", 0, func() {
			m.callAgainAt = m.now + m.Timings.Renew
			m.swap(m.state, m.Timings.StateTTL, nil)
		})
	default:
		m.wait(false, min(left, m.callAgainAt-m.now))
	}
}

// freeze confirms that this agent is alive. Agents do so in the order of their ranks, each in a time slot, so that
// their swaps do not collide.
func (m *Machine) freeze(rank int) {
	s := m.state
	if rank < 0 {
		m.wait(false, m.Timings.Watch)
		return
	}
	key, left := m.keepAliveKey(s.Version, rank), s.Participants-len(s.KeepAlives)
	confirmed := slices.Contains(s.KeepAlives, key)
	switch {
	case m.alive != key:
		m.pause(m.slot(rank-len(s.KeepAlives)), func() { m.confirm(key) })
	case confirmed && left > 0:
		m.wait(false, m.Timings.Watch)
	case confirmed: // by the last, which should have made it final
		m.attempt("finish", 0, func() { m.swap(m.state.confirmed(""), 0, nil) })
	default:
		m.attempt("confirm", m.slot(int(2*m.chance*float64(left))), func() {
			next := s.confirmed(key)
			if next.Status == Final {
				m.swap(next, 0, nil)
				return
			}
			m.swap(next, m.Timings.StateTTL, nil)
		})
	}
}

// confirm writes the keep-alive, and then the state as soon as it has been read again.
func (m *Machine) confirm(key string) {
	m.ask(Action{Kind: Set, Key: key, TTL: m.Timings.KeepAliveTTL}, func(r Reply) {
		if r.Code != 0 {
			m.retry()
			return
		}
		m.keepAlive(key)
		m.ready("confirm")
		m.read()
	})
}

func (m *Machine) slot(n int) time.Duration {
	return time.Duration((float64(max(n, 0)) + m.chance) * float64(m.Timings.Slot))
}

// final ends joining where this agent is a live member of the world. All others wait for the next.
func (m *Machine) final(rank int) {
	s := m.state
	if key := m.keepAliveKey(s.Version, rank); rank < 0 || m.alive != key || !slices.Contains(s.KeepAlives, key) {
		m.waiting(rank >= 0)
		return
	}
	m.phase, m.until, m.losses = member, 0, 0
	m.checkAt, m.missed = m.now+m.Timings.KeepAliveTTL, false
	m.out = append(m.out, Action{Kind: Formed, World: Membership{
		Version: s.Version, Rank: rank, Size: s.Participants, Agents: s.Agents,
	}})
	m.look()
}

// waiting is for an agent that is not, or no longer, a member of the world. It announces itself, so that the members
// form another, unless the world is full: then it waits until one of them is dead.
func (m *Machine) waiting(returning bool) {
	s := m.state
	room := returning || s.Participants < m.Max || m.dead == s.Version
	switch {
	case returning && s.Known(): // to all others a deleted version ends their world
		m.destroy(func(Reply) { m.read() })
	case room && m.announced != s.Version:
		m.attempt("announce", m.backoff(), func() {
			m.swap(m.state.announced(), 0, func() {
				m.announced, m.announcedAt = s.Version, m.now
				m.read()
			})
		})
	default:
		m.ask(Action{Kind: List, Key: m.VersionDir(s.Version)}, func(r Reply) {
			if r.Code != 0 && r.Code != CodeNotFound {
				m.retry()
				return
			}
			m.inspect(r.Names)
		})
	}
}

// inspect deletes a version of which a member is dead, so that the next can be created; but where agents of torch are
// members, only once they have polled the announcement: they ignore a version of another number.
func (m *Machine) inspect(alive []string) {
	s := m.state
	there := make(map[string]bool, len(alive))
	for _, key := range alive {
		there[key] = true
	}
	dead := slices.ContainsFunc(s.KeepAlives, func(key string) bool { return !there[key] })
	wait := m.announcedAt + m.Timings.PeerPoll - m.now
	switch {
	case !dead:
		m.wait(true, m.Timings.Watch)
	case s.Known():
		m.destroy(func(Reply) { m.read() })
	case m.announced != s.Version:
		m.dead = s.Version
		m.waiting(false)
	case wait > 0:
		m.pause(min(wait, m.Timings.Retry), m.read)
	default:
		m.destroy(func(Reply) { m.read() })
	}
}
