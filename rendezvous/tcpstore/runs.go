package tcpstore

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What torch's agents name their keys, as recorded from 1.13, 2.6 and 2.14.
const (
	prefix = "/torch.rendezvous." // then the run's id, and for all but the state a dot, the round and a slash
	// empty is what the first agent stores as the state, and each tries to: base64 of "canimadam".
	empty    = "Y2FuaW1hZGFt"
	roleInfo = "torchelastic/role_info" // one of each agent of a round
	terminal = "torchelastic/agent/terminal_state"
)

// State is what the names of a run's keys say of it. The state itself is a Python pickle, which is not read.
type State string

// States of a run.
const (
	Joining  State = "joining"  // no world yet
	Running  State = "running"  // a world was formed, or is being formed anew
	Ending   State = "ending"   // workers of the last world have succeeded
	Nameless State = "nameless" // the keys are of no rendezvous: workers use the store by themselves
)

// run is the keys and the members that belong together.
type run struct {
	id      string // empty for clients that use the store without a rendezvous
	serial  int
	members map[*Member]struct{}
	slots   map[string]*slot
	changed time.Time
	bytes   int
	round   int // the newest whose keys are there; -1 before the first
	agents  int // of that round, as far as they have said who they are
	state   State
}

// Run is a run as its connections show it.
type Run struct {
	ID          string // of the rendezvous; empty for clients that use the store without one
	Serial      int    // tells runs of one id apart, and orders them by age
	State       State
	Round       int // of the newest world, -1 before the first
	Agents      int // that have named their role in that round
	Connections int
	Waiting     int // connections that wait for a key
	Keys        int // that are there or waited for
	Bytes       int
	Changed     time.Time // the last request that could change a key; zero before the first
}

func (r *run) view() Run {
	v := Run{
		ID: r.id, Serial: r.serial, State: r.state, Round: r.round, Agents: r.agents,
		Connections: len(r.members), Keys: len(r.slots), Bytes: r.bytes, Changed: r.changed,
	}
	for m := range r.members {
		if len(m.waits) > 0 {
			v.Waiting++
		}
	}
	return v
}

// Runs is all of them, the oldest first.
func (s *Store) Runs() []Run {
	out := make([]Run, 0, len(s.all))
	for r := range s.all {
		out = append(out, r.view())
	}
	slices.SortFunc(out, func(a, b Run) int { return cmp.Compare(a.Serial, b.Serial) })
	return out
}

// Sums are what a store holds.
type Sums struct{ Runs, Keys, Bytes, Waits int }

// Sums counts.
func (s *Store) Sums() Sums { return Sums{len(s.all), len(s.slots), s.bytes, s.waits} }

// named finds the run of a key among those that a member belongs to, then among all, then by the key's shape. An id may
// hold dots, digits and slashes, and be the beginning of another: what follows it in a key is nothing, or a dot, digits
// and a slash. Only ids with a slash leave a doubt, which known resolves in favour of an id that is in use.
func named(key string, known func(id string) bool) (id string, round int, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return "", 0, false
	}
	if known(rest) {
		return rest, -1, true
	}
	id, round = rest, -1
	for i := 0; i < len(rest); i++ {
		if rest[i] != '/' {
			continue
		}
		dot := strings.LastIndexByte(rest[:i], '.')
		if dot < 0 {
			continue
		}
		n, err := strconv.ParseUint(rest[dot+1:i], 10, 31)
		switch {
		case err != nil:
		case known(rest[:dot]):
			return rest[:dot], int(n), true
		case id == rest:
			id, round = rest[:dot], int(n)
		}
	}
	return id, round, true
}

// touch makes the member one of the key's run.
func (s *Store) touch(m *Member, key string, q Request) error {
	if t := s.slots[key]; t != nil {
		switch {
		case t.run.id == "" && m.unnamed != nil:
			s.merge(m.unnamed, t.run)
		default:
			s.enter(m, t.run)
		}
		return nil
	}
	// What only an agent does, with its first message, and only to the state: so the id is known whatever it looks
	// like.
	if q.Op == CompareSet && len(q.Values[0]) == 0 && string(q.Values[1]) == empty && strings.HasPrefix(key, prefix) &&
		key != prefix {
		_, err := s.open(m, key[len(prefix):])
		return err
	}
	_, _, err := s.runOf(m, key)
	return err
}

// runOf finds or begins the run of a key that is not there.
func (s *Store) runOf(m *Member, key string) (r *run, round int, err error) {
	id, round, _ := named(key, func(id string) bool {
		for r := range m.runs {
			if r.id == id {
				return true
			}
		}
		return false
	})
	if id != "" && s.runs[id] == nil {
		id, round, _ = named(key, func(id string) bool { return s.runs[id] != nil })
	}
	if id == "" && m.unnamed != nil {
		return m.unnamed, -1, nil
	}
	r, err = s.open(m, id)
	return r, round, err
}

// open makes the member one of the run with an id, which may be new. Runs without a name are always new.
func (s *Store) open(m *Member, id string) (*run, error) {
	r := s.runs[id]
	if r == nil {
		if len(s.all) >= s.bounds.Runs {
			return nil, refuse("runs", "there are %d runs; run %q is one too many", len(s.all), id)
		}
		s.serials++
		r = &run{
			id: id, serial: s.serials, members: map[*Member]struct{}{}, slots: map[string]*slot{}, round: -1,
			state: Joining,
		}
		s.all[r] = struct{}{}
		if id == "" {
			r.state = Nameless
		} else {
			s.runs[id] = r
		}
	}
	s.enter(m, r)
	return r, nil
}

func (s *Store) enter(m *Member, r *run) {
	r.members[m], m.runs[r] = struct{}{}, struct{}{}
	if r.id == "" {
		m.unnamed = r
	}
}

// merge makes two runs without a name one: a connection uses keys of both.
func (s *Store) merge(into, from *run) {
	if into == from {
		return
	}
	for m := range from.members {
		delete(m.runs, from)
		s.enter(m, into)
	}
	for key, t := range from.slots {
		t.run, into.slots[key] = into, t
	}
	into.bytes += from.bytes
	into.serial = min(into.serial, from.serial)
	if from.changed.After(into.changed) {
		into.changed = from.changed
	}
	delete(s.all, from)
}

// slot finds a key's, or makes one in the run it belongs to. A member has touched the key before.
func (s *Store) slot(m *Member, key string) (*slot, error) {
	if t := s.slots[key]; t != nil {
		return t, nil
	}
	r, round, err := s.runOf(m, key)
	if err != nil {
		return nil, err
	}
	if len(r.slots) >= s.bounds.Keys {
		return nil, refuse("keys", "run %q has %d keys; one more is too many", r.id, len(r.slots))
	}
	t := &slot{key: key, run: r}
	s.slots[key], r.slots[key] = t, t
	s.count(t, len(key)+overhead)
	r.tell(key, round)
	return t, nil
}

// tell learns from the name of a new key how far the run has come.
func (r *run) tell(key string, round int) {
	if r.id == "" || round < r.round || round < 0 {
		return
	}
	if round > r.round {
		r.round, r.agents, r.state = round, 0, Running
	}
	rest := key[len(prefix)+len(r.id):]
	name := rest[strings.IndexByte(rest, '/')+1:]
	switch {
	case strings.HasPrefix(name, roleInfo) && !strings.HasSuffix(name, ".FIN"):
		r.agents++
	case strings.HasPrefix(name, terminal):
		r.state = Ending
	}
}

func (s *Store) count(t *slot, bytes int) {
	s.bytes += bytes
	t.run.bytes += bytes
}

// tidy drops a slot that nothing needs.
func (s *Store) tidy(t *slot) {
	if t.present() || len(t.waits) > 0 || s.slots[t.key] != t {
		return
	}
	s.count(t, -len(t.key)-overhead)
	delete(s.slots, t.key)
	delete(t.run.slots, t.key)
}

// collect drops a run. Nobody is left who could wait.
func (s *Store) collect(r *run) {
	for key := range r.slots {
		delete(s.slots, key)
	}
	s.bytes -= r.bytes
	delete(s.all, r)
	if r.id != "" {
		delete(s.runs, r.id)
	}
}
