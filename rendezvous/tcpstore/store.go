package tcpstore

import (
	"slices"
	"strconv"
	"time"
)

// Bounds are what all connections together may keep in a store.
type Bounds struct {
	Runs        int
	Keys        int // of a run
	Bytes       int // of all keys and values
	MemberWaits int // of one connection at a time
	Waits       int // of all
}

// Store is the keys of all runs, and who waits for which. It knows neither clock nor connections; its methods are called
// by one goroutine at a time.
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

// slot is a key that is there, is waited for, or at which members met.
type slot struct {
	key     string
	run     *run
	there   bool // it has a value, perhaps an empty one
	value   []byte
	queue   [][]byte
	waits   map[*wait]struct{}
	barrier []*wait
	met     bool // a barrier was here, which torch counts as a key
}

func (s *slot) present() bool { return s.there || len(s.queue) > 0 }

// wait is a request whose reply is still owed: WAIT, BARRIER, or a GET of what is not there, which torch's clients never
// send, as they WAIT first.
type wait struct {
	member  *Member
	op      Op
	slots   []*slot // each once
	order   []*slot // as asked for
	missing int     // how many of slots are not there
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
	case Wait, Get, MultiGet, Barrier:
		err = s.wait(m, q, &out)
	case CancelWait:
		s.cancel(m)
		out.Reply = status(1)
	case Ping:
		out.Reply = nonce(q.Number)
	case Check:
		missing := slices.ContainsFunc(q.Keys, func(k string) bool { return !s.has(k) })
		out.Reply = status(map[bool]byte{true: 1}[missing])
	case GetNumKeys:
		out.Reply = number(int64(len(s.visible(m))))
	case ListKeys:
		keys := s.visible(m)
		out.Reply = number(int64(len(keys)))
		for _, k := range keys {
			out.Reply = out.Reply.value([]byte(k))
		}
	case QueueLen:
		n := 0
		if slot := s.slots[q.Keys[0]]; slot != nil {
			n = len(slot.queue)
		}
		out.Reply = number(int64(n))
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
			out.Reply = number(s.remove(t))
		case QueuePush:
			s.push(t, q.Values[0], out)
		case QueuePop:
			s.pop(t, out)
		}
		s.tidy(t)
		if err := s.full(); err != nil {
			return err
		}
	}
	return nil
}

// full refuses what is too much: of keys and values, and of names that are only waited for.
func (s *Store) full() error {
	if s.bytes > s.bounds.Bytes {
		return refuse("memory", "all keys and values take more than %d bytes", s.bounds.Bytes)
	}
	return nil
}

// put stores a value and wakes who waited for it.
func (s *Store) put(t *slot, v []byte, out *Result) {
	before := t.present()
	s.count(t, len(v)-len(t.value))
	t.there, t.value = true, v
	s.appeared(t, before, out)
}

// compare answers with what is stored then, except that an absent key is stored only where nothing was expected, and
// what was expected is said back where something was.
func (s *Store) compare(t *slot, expected, v []byte, out *Result) {
	switch {
	case t.there && string(t.value) != string(expected):
		out.Reply = Reply{}.value(t.value)
	case !t.there && len(expected) > 0:
		out.Reply = Reply{}.value(expected)
	default:
		s.put(t, v, out)
		out.Reply = Reply{}.value(v)
	}
}

func (s *Store) add(t *slot, by int64, out *Result) error {
	var n int64
	if t.there {
		var err error
		if n, err = strconv.ParseInt(string(t.value), 10, 64); err != nil {
			return refuse("value", "ADD to %q, which is no number", t.key)
		}
	}
	n += by
	s.put(t, strconv.AppendInt(nil, n, 10), out)
	out.Reply = number(n)
	return nil
}

// remove is 1 where there was something.
func (s *Store) remove(t *slot) int64 {
	if !t.present() && !t.met {
		return 0
	}
	before := t.present()
	s.count(t, -len(t.value))
	for _, v := range t.queue {
		s.count(t, -len(v)-overhead)
	}
	t.there, t.value, t.queue, t.met = false, nil, nil, len(t.barrier) > 0
	if before {
		for w := range t.waits {
			w.missing++
		}
	}
	return 1
}

func (s *Store) push(t *slot, v []byte, out *Result) {
	before := t.present()
	s.count(t, len(v)+overhead)
	t.queue = append(t.queue, v)
	s.appeared(t, before, out)
}

// pop answers with 1 and the oldest value, or with 0.
func (s *Store) pop(t *slot, out *Result) {
	if len(t.queue) == 0 {
		out.Reply = number(0)
		return
	}
	v := t.queue[0]
	t.queue[0], t.queue = nil, t.queue[1:]
	s.count(t, -len(v)-overhead)
	out.Reply = number(1).value(v)
	if !t.present() {
		for w := range t.waits {
			w.missing++
		}
	}
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
		if w.order = append(w.order, t); seen[t] {
			continue
		}
		seen[t] = true
		w.slots = append(w.slots, t)
		if !t.present() {
			w.missing++
		}
	}
	if q.Op == Barrier {
		return s.meet(w, q.Number, out)
	}
	if w.missing == 0 {
		out.Reply = w.reply()
		return nil
	}
	for _, t := range w.slots {
		t.waits[w] = struct{}{}
	}
	w.bytes = overhead * (len(w.order) + len(w.slots))
	s.bytes += w.bytes
	if err := s.owe(w); err != nil {
		return err
	}
	return s.full()
}

// meet lets all go on once as many as the last one names have come. The key can be met at again.
func (s *Store) meet(w *wait, size int64, out *Result) error {
	t := w.slots[0]
	t.met = true
	t.barrier = append(t.barrier, w)
	if err := s.owe(w); err != nil || int64(len(t.barrier)) < size {
		return err
	}
	for _, w := range slices.Clone(t.barrier) {
		s.answer(w, out)
	}
	return nil
}

func (s *Store) owe(w *wait) error {
	m := w.member
	m.waits = append(m.waits, w)
	if s.waits++; s.waits > s.bounds.Waits || len(m.waits) > s.bounds.MemberWaits {
		return refuse("waits", "%d requests of one connection wait, and %d in all", len(m.waits), s.waits)
	}
	return nil
}

// answer delivers what is owed.
func (s *Store) answer(w *wait, out *Result) {
	out.Wake = append(out.Wake, Delivery{w.member, w.reply()})
	s.forget(w)
}

func (w *wait) reply() Reply {
	if w.op == Wait || w.op == Barrier {
		return status(0)
	}
	var out Reply
	for _, t := range w.order {
		out = out.value(t.value)
	}
	return out
}

// appeared wakes those to whom t was the last key missing.
func (s *Store) appeared(t *slot, before bool, out *Result) {
	if before {
		return
	}
	for w := range t.waits {
		if w.missing--; w.missing == 0 {
			s.answer(w, out)
		}
	}
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
		delete(t.waits, w)
		t.barrier = slices.DeleteFunc(t.barrier, is)
		s.tidy(t)
	}
}

func (s *Store) has(key string) bool {
	t := s.slots[key]
	return t != nil && t.present()
}

// visible is the keys of the runs that a member belongs to, as if it had the store to itself. Who belongs to none sees
// those of all runs without a name.
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
			if t.present() || t.met {
				keys = append(keys, t.key)
			}
		}
	}
	return keys
}
