package tcpstore

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds are what all connections together may keep in a store.
type Bounds struct {
	Runs        int
	Keys        int // of a run
	RunBytes    int // of the keys and values of one run, so that one cannot take the others' room
	Bytes       int // of all
	MemberWaits int // of one connection at a time
	Waits       int // of all
}

// Store is the keys of all runs, and who waits for which. It knows neither clock nor connections; its methods are
// called by one goroutine at a time.
type Store struct {
	bounds  Bounds
	slots   map[string]*slot
	runs    map[string]*run // those with a name
	all     map[*run]struct{}
	waits   int
	bytes   int
	serials int
}

// Member is a connection, as the store sees it.
type Member struct {
	Owner   any // who carries its replies; the store does not look at it
	dialect Dialect
	runs    map[*run]struct{}
	unnamed *run // the one of them without a name
	waits   []*wait
}

// slot is a key that is there, has a queue, or is waited for.
type slot struct {
	key   string
	run   *run
	there bool // it has a value, perhaps an empty one
	value []byte
	queue [][]byte // beside the value, as in torch's server
	waits []*wait  // in the order in which they came
}

func (s *slot) present() bool { return s.there || len(s.queue) > 0 }

// wait is a request whose reply is still owed: WAIT, BARRIER, or a GET of what is not there, which torch's clients
// never send, as they WAIT first.
type wait struct {
	member  *Member
	op      Op
	slots   []*slot // each once, as far as the key was not there when it was asked for
	order   []*slot // as asked for
	missing int     // how many of slots have not been written since; it stays so where one is deleted again
	bytes   int     // about what it takes itself while it waits
}

// Delivery is a reply to a member that waited.
type Delivery struct {
	To    *Member
	Reply Reply
}

// Result is what an operation led to. The reply to who asked, if any, goes before the deliveries.
type Result struct {
	Reply Reply
	Wake  []Delivery
}

// NewStore is an empty one.
func NewStore(b Bounds) *Store {
	return &Store{bounds: b, slots: map[string]*slot{}, runs: map[string]*run{}, all: map[*run]struct{}{}}
}

// Join makes a connection known. It belongs to no run until it names a key.
func (s *Store) Join(d Dialect, owner any) *Member {
	return &Member{Owner: owner, dialect: d, runs: map[*run]struct{}{}}
}

// Leave takes a connection out, and with the last one of a run the run's keys. It returns the runs that are gone.
func (s *Store) Leave(m *Member) []Run {
	s.cancel(m)
	var gone []Run
	for r := range m.runs {
		delete(r.members, m)
		if len(r.members) == 0 {
			gone = append(gone, r.view())
			s.collect(r)
		}
	}
	m.runs, m.unnamed = nil, nil
	return gone
}

// Do carries out a request of a member at a time. An error is a *Refusal, after which the member must leave.
func (s *Store) Do(m *Member, q Request, now time.Time) (Result, error) {
	if m.dialect == Old && q.Op != CancelWait {
		s.cancel(m) // a client of old says nothing when it gives up waiting; it just goes on
	}
	for _, key := range q.Keys {
		if err := s.touch(m, key, q); err != nil {
			return Result{}, err
		}
	}
	var out Result
	var err error
	switch q.Op {
	case Set, CompareSet, Add, Append, MultiSet, QueuePush, DeleteKey, QueuePop:
		err = s.write(m, q, now, &out)
	case Wait, Get, MultiGet:
		err = s.wait(m, q, &out)
	case Barrier:
		err = s.meet(m, q, now, &out)
	case CancelWait:
		s.cancel(m)
		out.Reply = Status(1)
	case Ping:
		out.Reply = Nonce(q.Number)
	case Check:
		missing := slices.ContainsFunc(q.Keys, func(k string) bool { return !s.has(k) })
		out.Reply = Status(map[bool]byte{true: 1}[missing])
	case GetNumKeys:
		out.Reply = Number(int64(len(s.visible(m))))
	case ListKeys:
		keys := s.visible(m)
		out.Reply = Number(int64(len(keys)))
		for _, k := range keys {
			out.Reply = out.Reply.Value([]byte(k))
		}
	case QueueLen:
		n := 0
		if slot := s.slots[q.Keys[0]]; slot != nil {
			n = len(slot.queue)
		}
		out.Reply = Number(int64(n))
	case WatchKey:
		err = refuse("operation", "WATCH_KEY is not served: neither agents nor workers use it")
	}
	return out, err
}

// write is the operations that change a key, or may.
func (s *Store) write(m *Member, q Request, now time.Time, out *Result) error {
	for i, key := range q.Keys {
		t, err := s.slot(m, key)
		if err != nil {
			return err
		}
		t.run.changed = now
		switch q.Op {
		case Set:
			s.put(t, q.Values[0], out)
		case MultiSet:
			s.put(t, q.Values[i], out)
		case Append:
			// In place where there is room: replies under way end before it.
			s.put(t, append(t.value, q.Values[0]...), out)
		case CompareSet:
			s.compare(t, q.Values[0], q.Values[1], out)
		case Add:
			if err := s.add(t, q.Number, out); err != nil {
				return err
			}
		case DeleteKey:
			out.Reply = Number(s.remove(t))
		case QueuePush:
			s.push(t, q.Values[0], out)
		case QueuePop:
			s.pop(t, out)
		}
		s.tidy(t)
		if err := s.full(t.run); err != nil {
			return err
		}
	}
	return nil
}

// full refuses what is too much: of keys and values, and of names that are only waited for.
func (s *Store) full(r *run) error {
	if r.bytes > s.bounds.RunBytes {
		return refuse("memory", "the keys and values of run %q take more than %d bytes", r.id, s.bounds.RunBytes)
	}
	if s.bytes > s.bounds.Bytes {
		return refuse("memory", "all keys and values take more than %d bytes", s.bounds.Bytes)
	}
	return nil
}

// put stores a value and wakes who waited for it.
func (s *Store) put(t *slot, v []byte, out *Result) {
	s.store(t, v)
	waits := t.waits
	t.waits = nil
	for _, w := range waits {
		s.written(w, out)
	}
}

func (s *Store) store(t *slot, v []byte) {
	s.count(t, len(v)-len(t.value))
	t.there, t.value = true, v
}

// compare answers with what is stored then, except that an absent key is stored only where nothing was expected, and
// what was expected is said back where something was.
func (s *Store) compare(t *slot, expected, v []byte, out *Result) {
	switch {
	case t.there && string(t.value) != string(expected):
		out.Reply = Reply{}.Value(t.value)
	case !t.there && len(expected) > 0:
		out.Reply = Reply{}.Value(expected)
	default:
		s.put(t, v, out)
		out.Reply = Reply{}.Value(v)
	}
}

func (s *Store) add(t *slot, by int64, out *Result) error {
	n, err := t.number()
	if err != nil {
		return err
	}
	n += by
	s.put(t, strconv.AppendInt(nil, n, 10), out)
	out.Reply = Number(n)
	return nil
}

func (t *slot) number() (int64, error) {
	if !t.there {
		return 0, nil
	}
	return CountFrom(t.key, t.value)
}

// CountFrom is what ADD and BARRIER count from: the value of a key up to where it stops to be a number, as C++'s
// std::stoll reads it. torch's server too cuts off who counts where there is something else.
func CountFrom(key string, value []byte) (int64, error) {
	text := strings.TrimLeft(string(value), " \t\n\v\f\r")
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[0] == '+' || text[0] == '-')) {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil {
		return 0, refuse("value", "counting in %q, whose value begins with no number", key)
	}
	return n, nil
}

// remove is 1 where there was a value. A queue of that name is another thing and stays.
func (s *Store) remove(t *slot) int64 {
	if !t.there {
		return 0
	}
	s.count(t, -len(t.value))
	t.there, t.value = false, nil
	return 1
}

// push wakes one that waits, the first: there is one value to pop.
func (s *Store) push(t *slot, v []byte, out *Result) {
	s.count(t, len(v)+overhead)
	t.queue = append(t.queue, v)
	for len(t.waits) > 0 {
		w := t.waits[0]
		t.waits = t.waits[1:]
		if s.written(w, out) {
			break
		}
	}
}

// pop answers with how many values there are, and with the oldest where there is one.
func (s *Store) pop(t *slot, out *Result) {
	out.Reply = Number(int64(len(t.queue)))
	if len(t.queue) == 0 {
		return
	}
	v := t.queue[0]
	t.queue[0], t.queue = nil, t.queue[1:]
	s.count(t, -len(v)-overhead)
	out.Reply = out.Reply.Value(v)
}

// wait answers at once, or owes the reply.
func (s *Store) wait(m *Member, q Request, out *Result) error {
	w := &wait{member: m, op: q.Op}
	seen := map[*slot]bool{}
	for _, key := range q.Keys {
		t, err := s.slot(m, key)
		if err != nil {
			for _, t := range w.slots { // those made for nothing
				s.tidy(t)
			}
			return err
		}
		if w.order = append(w.order, t); !t.present() && !seen[t] {
			seen[t] = true
			w.slots = append(w.slots, t)
		}
	}
	if len(w.slots) == 0 {
		out.Reply = w.reply()
		return nil
	}
	return s.owe(w)
}

// meet counts who has come in the value of the key, as torch's server does: nobody who gives up is taken off it, and
// once it has reached what somebody names, that one goes on at once, and so do all who wait.
func (s *Store) meet(m *Member, q Request, now time.Time, out *Result) error {
	t, err := s.slot(m, q.Keys[0])
	if err != nil {
		return err
	}
	n, err := t.number()
	if err != nil {
		return err
	}
	t.run.changed = now
	value := strconv.AppendInt(nil, n+1, 10)
	if n+1 >= q.Number {
		out.Reply = Status(0)
		s.put(t, value, out)
		return s.full(t.run)
	}
	s.store(t, value)
	return s.owe(&wait{member: m, op: q.Op, slots: []*slot{t}, order: []*slot{t}})
}

// owe lets w wait for the next write to each of its slots.
func (s *Store) owe(w *wait) error {
	m := w.member
	for _, t := range w.slots {
		t.waits = append(t.waits, w)
	}
	w.missing = len(w.slots)
	w.bytes = overhead * (len(w.order) + len(w.slots))
	s.bytes += w.bytes
	m.waits = append(m.waits, w)
	if s.waits++; s.waits > s.bounds.Waits || len(m.waits) > s.bounds.MemberWaits {
		return refuse("waits", "%d requests of one connection wait, and %d in all", len(m.waits), s.waits)
	}
	return s.full(w.order[0].run)
}

// answer delivers what is owed.
func (s *Store) answer(w *wait, out *Result) {
	out.Wake = append(out.Wake, Delivery{w.member, w.reply()})
	s.forget(w)
}

func (w *wait) reply() Reply {
	if w.op == Wait || w.op == Barrier {
		return Status(0)
	}
	var out Reply
	for _, t := range w.order {
		out = out.Value(t.value)
	}
	return out
}

// written tells w that one of its slots was, from which it has been taken; it is true where that was the last one and w
// has its answer.
func (s *Store) written(w *wait, out *Result) bool {
	if w.missing--; w.missing > 0 {
		return false
	}
	s.answer(w, out)
	return true
}

// cancel forgets what is owed to a member.
func (s *Store) cancel(m *Member) {
	for len(m.waits) > 0 {
		s.forget(m.waits[0])
	}
}

func (s *Store) forget(w *wait) {
	s.waits--
	s.bytes -= w.bytes
	is := func(other *wait) bool { return other == w }
	w.member.waits = slices.DeleteFunc(w.member.waits, is)
	for _, t := range w.slots {
		t.waits = slices.DeleteFunc(t.waits, is)
		s.tidy(t)
	}
}

func (s *Store) has(key string) bool {
	t := s.slots[key]
	return t != nil && t.present()
}

// visible is the keys with a value of the runs that a member belongs to, as if it had the store to itself. Who belongs
// to none sees those of all runs without a name.
func (s *Store) visible(m *Member) []string {
	runs := m.runs
	if len(runs) == 0 {
		runs = s.all
	}
	var keys []string
	for r := range runs {
		if len(m.runs) == 0 && r.id != "" {
			continue
		}
		for _, t := range r.slots {
			if t.there {
				keys = append(keys, t.key)
			}
		}
	}
	return keys
}
