package etcdv3

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// sim is a store as far as the protocol can tell, the agents on it, and the time that messages take between them.
type sim struct {
	*rand.Rand
	rules rules
	now   time.Duration
	calm  time.Duration // when faults end
	queue todo
	seq   int
	steps int
	log   []string
	err   error

	rev      int64
	world    *doc
	worldRev int64
	era      int   // how often the run's lease has ended, and its state with it
	leader   int64 // create revision, 0: none
	leads    *node
	agents   map[string]*node // whose key is there
	entries  map[string]agent
	places   map[string]map[string]assignment // current
	written  map[string]map[string]assignment // all there ever were, by directory
	finals   map[int]doc
	versions int // formed in all
	evicted  int
	deleted  map[string]int64 // revision at which the key of that name was deleted last

	nodes []*node // all that live
}

// node is one incarnation of an agent: from its join to its end.
type node struct {
	s       *sim
	m       *machine
	id      string
	created int64
	dead    bool // its process is gone, or has noticed the end of its lease
	ended   bool // the run is over for it
	held    doc
	seen    int // latest final version that it has seen
	head    channel
	agents  channel
	pred    string // name watched
	predRev int64
	updates []actUpdate
	watches struct{ head, agents bool }
	near    []neighbour // watched by connections
	cutOff  bool        // from all other agents, and not from the store
}

// channel keeps the events of one watch in order.
type channel struct {
	last time.Duration
	gen  int // counts up when it breaks: what was under way is lost
}

type item struct {
	at  time.Duration
	seq int
	do  func()
}

type todo []item

func (t todo) Len() int { return len(t) }
func (t todo) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].seq < t[j].seq
}
func (t todo) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *todo) Push(x any)   { *t = append(*t, x.(item)) }
func (t *todo) Pop() any {
	old := *t
	x := old[len(old)-1]
	*t = old[:len(old)-1]
	return x
}

func newSim(seed uint64) *sim {
	r := rand.New(rand.NewPCG(seed, 0))
	lo := 1 + r.IntN(5)
	return &sim{
		Rand: r,
		rules: rules{
			lo, lo + r.IntN(5), time.Duration(r.IntN(2)) * time.Second, 500 * time.Millisecond,
			3 * time.Second,
		},
		agents: map[string]*node{}, entries: map[string]agent{}, places: map[string]map[string]assignment{},
		written: map[string]map[string]assignment{}, finals: map[int]doc{}, deleted: map[string]int64{},
	}
}

func (s *sim) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func (s *sim) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%8v %5d  ", s.now, s.rev)+fmt.Sprintf(format, args...))
	if len(s.log) > 400 {
		s.log = slices.Clone(s.log[200:])
	}
}

func (s *sim) after(d time.Duration, f func()) {
	s.seq++
	heap.Push(&s.queue, item{s.now + d, s.seq, f})
}

// lag is how long a message takes: mostly little, sometimes much.
func (s *sim) lag() time.Duration {
	if s.IntN(20) == 0 {
		return time.Duration(s.IntN(300)) * time.Millisecond
	}
	return time.Duration(s.IntN(10_000)) * time.Microsecond
}

// run lets time pass.
func (s *sim) run(d time.Duration) {
	for end := s.now + d; s.err == nil; {
		if len(s.queue) == 0 || s.queue[0].at > end {
			s.now = end
			return
		}
		it := heap.Pop(&s.queue).(item)
		s.now = it.at
		it.do()
	}
}

func (s *sim) start(id string) *node {
	self := entry{Host: id, Role: "r", Workers: 1 + s.IntN(3), Listen: min(1, s.IntN(5))} // or nobody can watch it
	n := &node{s: s, id: id, m: newMachine(id, s.rules, self)}
	s.nodes = append(s.nodes, n)
	s.after(s.lag(), func() { n.step(evJoin{1}) })
	return n
}

// step gives a machine an event, checks what must always hold of it, and does what it wants.
func (n *node) step(ev event) {
	s := n.s
	if n.dead || n.ended || s.err != nil {
		return
	}
	s.steps++
	if w, ok := ev.(evWorld); ok && w.doc == nil {
		n.seen = 0
	} else if ok && w.doc.State == final {
		n.seen = max(n.seen, w.doc.Version)
	}
	for _, a := range n.m.Step(ev) {
		n.perform(a)
	}
	if n.held.Version != 0 && n.seen > n.held.Version {
		s.fail("%s works in version %d and has seen %d", n.id, n.held.Version, n.seen)
	}
}

// request has the store do something, and reports the result. Some answers are lost, upon which it is repeated.
func (n *node) request(do func() event) {
	n.ask(do, func(ev event) {
		if ev != nil {
			n.step(ev)
		}
	})
}

func (n *node) ask(do func() event, then func(event)) {
	s := n.s
	s.after(s.lag(), func() {
		if n.dead {
			return
		}
		ev := do()
		if s.IntN(30) == 0 {
			n.ask(do, then)
			return
		}
		s.after(s.lag(), func() {
			if !n.dead {
				then(ev)
			}
		})
	})
}

// tell sends an event of a watch.
func (n *node) tell(c *channel, ev event) {
	at := max(c.last, n.s.now+n.s.lag())
	c.last = at
	gen := c.gen
	n.s.after(at-n.s.now, func() {
		if c.gen == gen {
			n.step(ev)
		}
	})
}

func (n *node) perform(a action) {
	s := n.s
	switch a := a.(type) {
	case actJoin:
		n.request(func() event { return s.join(n, a.entry) })
	case actCampaign:
		n.request(func() event {
			if s.leader == 0 && s.agents[n.id] == n {
				s.rev++
				s.lead(n)
			}
			if s.leads == n && s.leader != 0 {
				return evElected{s.leader}
			}
			return evElected{}
		})
	case actUpdate:
		if n.updates = append(n.updates, a); len(n.updates) == 1 {
			n.update()
		}
	case actFetch:
		n.request(func() event { return s.fetch(n, a) })
	case actWatch:
		n.pred = a.id
		s.after(s.lag(), func() { n.watch(a) })
	case actUnwatch:
		n.pred = ""
	case actNeighbours:
		n.near = a.all
	case actLoad:
		n.watches.agents = false
		n.agents.gen++
		s.after(a.after, func() { n.request(func() event { s.load(n); return nil }) })
	case actWrite:
		n.write(a, slices.Sorted(maps.Keys(a.places)), s.era)
	case actStepDown:
		n.watches.agents = false
		n.agents.gen++
	case actTimer:
		s.after(a.after, func() { n.step(evTimer{a.kind, a.seq}) })
	case actWorld:
		n.enter(a)
	case actChanged:
		n.held = doc{}
		if n.m.call == nil { // its workers are stopped first, which takes longer than others wait for at times only
			stop := time.Duration(s.IntN(int(s.rules.grace * 3 / 4)))
			if s.now < s.calm && s.IntN(10) == 0 {
				stop *= 3
			}
			s.after(stop, func() { n.call(evJoin{1}) })
		}
	case actEnd:
		n.ended, n.held = true, doc{}
		s.after(s.lag(), func() { s.remove(n) })
	}
}

// call is a call of the user, who makes one at a time.
func (n *node) call(ev event) {
	if n.m.call == nil {
		n.step(ev)
	}
}

func (n *node) enter(a actWorld) {
	s := n.s
	s.note("%s works in %d as %d", n.id, a.doc.Version, a.mine.Rank)
	n.held = a.doc
	if p, ok := s.written[a.doc.Dir][n.id]; !ok || p.Rank != a.mine.Rank || p.Created != n.created {
		s.fail("%s was given rank %d of %+v", n.id, a.mine.Rank, a.doc)
	}
}

func (s *sim) join(n *node, e entry) event {
	if there := s.agents[n.id]; there != nil && there != n {
		return evTaken{s.rev}
	} else if n.created != 0 {
		return nil // done before
	}
	s.rev++
	n.created = s.rev
	s.agents[n.id], s.entries[n.id] = n, agent{s.rev, e}
	s.note("%s joins", n.id)
	ev := evJoined{created: s.rev, world: s.world, worldRev: s.worldRev}
	n.watches.head = true
	for _, o := range s.nodes {
		if o.watches.agents {
			o.tell(&o.agents, evAgent{n.id, s.rev, &e, s.rev})
		}
	}
	if s.leader == 0 {
		n.watches.head = false
		s.lead(n)
		n.watches.head = true
		ev.leads = s.leader
	}
	ev.leader = s.leader
	n.tell(&n.head, ev)
	return nil
}

func (s *sim) lead(n *node) {
	s.leader, s.leads = s.rev, n
	s.note("%s leads", n.id)
	for _, o := range s.nodes {
		if o.watches.head {
			o.tell(&o.head, evLeader{s.rev, s.rev})
		}
	}
}

func (n *node) update() {
	s, a := n.s, n.updates[0]
	n.ask(func() event {
		if s.agents[n.id] != n {
			return false
		}
		s.rev++
		s.entries[n.id] = agent{n.created, a.entry}
		s.note("%s wants %s after %d", n.id, a.entry.Intent, a.entry.After)
		if a.mark != nil {
			s.place(a.dir, n.id, *a.mark)
		}
		for _, o := range s.nodes {
			if o.watches.agents {
				o.tell(&o.agents, evAgent{n.id, n.created, &a.entry, s.rev})
			}
		}
		return true
	}, func(ok event) {
		if ok == false {
			s.lose(n)
		} else if n.updates = n.updates[1:]; len(n.updates) > 0 {
			n.update()
		}
	})
}

func (s *sim) place(dir, id string, a assignment) {
	for _, m := range []map[string]map[string]assignment{s.places, s.written} {
		if m[dir] == nil {
			m[dir] = map[string]assignment{}
		}
		m[dir][id] = a
	}
}

func (s *sim) fetch(n *node, a actFetch) event {
	from := s.places // by a plain read, or as of the revision asked for
	if s.IntN(2) == 0 {
		from = s.written
	}
	if p, ok := from[a.dir][n.id]; ok {
		return evAssigned{a.dir, &p}
	}
	return evAssigned{a.dir, nil}
}

func (n *node) watch(a actWatch) {
	switch {
	case n.dead || n.pred != a.id:
	case n.s.deleted[a.id] > a.rev:
		n.s.after(n.s.lag(), func() { n.step(evGone{a.id}) })
		n.pred = ""
	default:
		n.predRev = a.rev + 1
	}
}

func (s *sim) load(n *node) {
	ev := evLoaded{
		agents: maps.Clone(s.entries), members: map[string]assignment{}, world: s.world, worldRev: s.worldRev,
		leader: s.leader, rev: s.rev,
	}
	if s.world != nil {
		ev.members = maps.Clone(s.places[s.world.Dir])
	}
	n.agents.gen++
	n.watches.agents = true
	n.tell(&n.agents, ev)
}

// write puts some places, and the rest later: the leader may die in between. All are on the run's lease of the era in
// which it began.
func (n *node) write(a actWrite, ids []string, era int) {
	s := n.s
	n.ask(func() event {
		if s.era != era {
			return evWritten{}
		}
		if s.leader != a.leads || s.worldRev != a.worldRev {
			if s.world != nil && *s.world == a.doc && a.doc.State == final {
				return evWritten{true, s.worldRev}
			}
			return evWritten{}
		}
		if len(ids) > 0 {
			s.rev++
			k := min(len(ids), 2)
			for _, id := range ids[:k] {
				s.place(a.doc.Dir, id, a.places[id])
			}
			return nil // more to write
		}
		s.rev++
		d := a.doc
		s.setWorld(&d)
		if d.State == final {
			s.check(d)
			maps.DeleteFunc(s.places, func(dir string, _ map[string]assignment) bool { return dir != d.Dir })
		}
		return evWritten{true, s.rev}
	}, func(ev event) {
		if ev == nil {
			n.write(a, ids[min(len(ids), 2):], era)
		} else {
			n.step(ev)
		}
	})
}

func (s *sim) setWorld(d *doc) {
	s.note("world %+v", d)
	s.world, s.worldRev = d, s.rev
	if d == nil { // the next version follows the latest that a live agent knows
		s.worldRev = 0
		s.era++
		clear(s.finals)
		clear(s.places)
	}
	for _, o := range s.nodes {
		if o.watches.head {
			o.tell(&o.head, evWorld{d, s.rev})
		}
	}
}

// remove ends a lease: it deletes an agent's key, and the leader's with it.
func (s *sim) remove(n *node) {
	if s.agents[n.id] != n {
		return
	}
	s.rev++
	s.note("%s is gone", n.id)
	delete(s.agents, n.id)
	delete(s.entries, n.id)
	s.deleted[n.id] = s.rev
	led := s.leads == n && s.leader != 0
	if led {
		s.leader, s.leads = 0, nil
	}
	for _, o := range s.nodes {
		if o.watches.agents {
			o.tell(&o.agents, evAgent{n.id, 0, nil, s.rev})
		}
		if o.watches.head && led {
			o.tell(&o.head, evLeader{0, s.rev})
		}
		if o.pred == n.id && o.predRev != 0 {
			o.pred, o.predRev = "", 0
			s.after(s.lag(), func() { o.step(evGone{n.id}) })
		}
	}
}

// lose is what an agent does that has learnt that its lease is over: it is another from then on.
func (s *sim) lose(n *node) {
	if !n.dead {
		s.kill(n)
		s.remove(n) // if it has joined only now
		if !n.ended {
			s.start(n.id)
		}
	}
}

// kill ends a process without a word.
func (s *sim) kill(n *node) {
	s.note("%s is killed", n.id)
	n.dead = true
	if s.IntN(3) == 0 { // with its machine
		s.silent(n, 3*time.Second)
	} else {
		s.missed(n.id, n.created, time.Second)
	}
	s.nodes = slices.DeleteFunc(s.nodes, func(o *node) bool { return o == n })
}
