package gangcache

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// UID identifies a pod through its life, as the API does.
type UID string

// State is where a pod stands in the cluster.
type State int

const (
	// Absent pods are gone, or are leaving without ever having been placed.
	Absent State = iota
	// Held pods wait for something else than a place, such as a scheduling gate: they do not count.
	Held
	// Pending pods want a place.
	Pending
	// Bound pods have one: they run, or have succeeded.
	Bound
	// Failed pods had one and do not count any more.
	Failed
	// Leaving pods had one and are being deleted: they do not count either, and nobody comes in their stead but as a
	// new pod.
	Leaving
)

// Member is what the cache knows of a pod.
type Member struct {
	UID             UID
	Namespace, Name string
	Created         time.Time
	Gang            Key
	Spec            Spec  // as the pod declares it
	Problem         error // why the pod's declaration is invalid; the gang is not placed while it has such a pod
	State           State
	Slice           Slice  // with which members it gathers, where its gang does
	Node            string // where it runs, or which is reserved for it; "" where it has succeeded
}

// String is how users read it: namespace/name.
func (m *Member) String() string { return m.Namespace + "/" + m.Name }

// older orders members by age, and by name where they are of one second.
func older(a, b *Member) int {
	return cmp.Or(
		a.Created.Compare(b.Created), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
}

// gang is the state of one gang.
type gang struct {
	key          Key
	spec         Spec  // of its oldest member, or of its PodGroup
	problem      error // why it must not be placed
	fromPodGroup bool  // the spec comes from a PodGroup, whatever its members say

	members  map[UID]*Member
	reserved map[UID]hold // members placed in the scheduler's memory
	eldest   ranking      // the spec of the first is used
	mistaken ranking      // those with a problem
	waiters  ranking      // those that want a place and have none; the first leads
	bad      int          // members with a problem
	pending  int          // that want a place and have none reserved
	planned  int          // of those, how many the round is to place
	held     [leaving + 1]int
	bound    int
	failed   int
	spares   map[UID]bool             // bound members that the minimum does not need; nil where they must be looked for
	sites    map[Slice]map[string]int // how many members are on a node; nil where nobody has asked yet

	woken     UID       // the leader that was last woken, on behalf of the gang's group
	notified  bool      // the members that may be tried one by one were woken
	again     time.Time // until then newcomers are no reason to try the leader once more
	satisfied bool      // the minimum was reached once
	complete  time.Time // when the gang first had the pods it needs; zero before
	since     time.Time // its place in the queue: from then on it is its turn
	half      bool      // another scheduler left it with some of its members bound
	first     time.Time // when the first of the members that now wait got its place
	failures  int       // rounds called off since the minimum was last reached
	round     *round
}

// hold is how a member has its place in the scheduler's memory.
type hold int

const (
	unplaced hold = iota // it has none
	waiting              // for the others
	allowed              // to bind
	leaving              // it was rejected, and counts for nothing until it is unreserved
)

// round is one attempt to place a group of gangs, which found room for all of them.
type round struct {
	plan  map[UID]string // members that the attempt places, and the node where it must be that one
	gangs []*gang        // that it is to bring to their minimum
}

func newGang(key Key) *gang {
	g := &gang{key: key}
	g.reset()
	return g
}

// reset makes the gang an empty one.
func (g *gang) reset() {
	*g = gang{key: g.key, members: map[UID]*Member{}, reserved: map[UID]hold{}}
	current := func(m *Member) bool { return g.members[m.UID] == m }
	g.eldest = ranking{order: senior, current: current}
	g.mistaken = ranking{order: older, current: current}
	g.waiters = ranking{order: older, current: func(m *Member) bool { return current(m) && g.waits(m) }}
}

// count moves a member into or out of the gang's sums.
func (g *gang) count(m *Member, by int) {
	if m.Problem != nil {
		g.bad += by
	}
	switch m.State {
	case Pending:
		if h := g.reserved[m.UID]; h != unplaced {
			g.held[h] += by
			if h != leaving {
				g.seat(m, by)
			}
			break
		}
		g.pending += by
		if g.plans(m.UID) {
			g.planned += by
		}
	case Bound:
		g.bound += by
		g.spares = nil
		g.seat(m, by)
	case Failed:
		g.failed += by
	case Absent, Held, Leaving:
	}
}

// plans says whether the gang's round is to place a member.
func (g *gang) plans(uid UID) bool {
	if g.round == nil {
		return false
	}
	_, ok := g.round.plan[uid]
	return ok
}

// place records how a member now has its place.
func (g *gang) place(m *Member, h hold) {
	g.count(m, -1)
	if h == unplaced {
		delete(g.reserved, m.UID)
		m.Node = ""
	} else {
		g.reserved[m.UID] = h
	}
	g.count(m, 1)
	if g.waits(m) {
		g.waiters.add(m, len(g.members))
	}
	g.restart()
}

// restart stops the clock of those that wait where none does any more.
func (g *gang) restart() {
	if g.held[waiting] == 0 {
		g.first = time.Time{}
	}
}

// begin makes the gang a part of a round.
func (g *gang) begin(r *round) {
	g.round, g.planned = r, 0
	for uid := range r.plan {
		if m := g.members[uid]; m != nil && g.waits(m) {
			g.planned++
		}
	}
}

// end takes the gang out of its round.
func (g *gang) end() { g.round, g.planned = nil, 0 }

// short says whether the gang's round has lost so many of its pods that it cannot reach the minimum any more.
func (g *gang) short() bool {
	return g.round != nil && !g.reached() && g.counted()+g.planned < g.spec.Min
}

// put adds or replaces a member.
func (g *gang) put(m *Member) {
	if old := g.members[m.UID]; old != nil {
		if m.State == Pending && old.State == Pending {
			m.Node = old.Node // which is reserved for it
		}
		g.take(old)
	}
	if m.State != Pending {
		delete(g.reserved, m.UID)
	}
	g.members[m.UID] = m
	g.count(m, 1)
	g.eldest.add(m, len(g.members))
	if m.Problem != nil {
		g.mistaken.add(m, len(g.members))
	}
	if g.waits(m) {
		g.waiters.add(m, len(g.members))
	}
	g.restart()
}

// senior orders members by whose spec is used for the gang: those that declare something valid go first, so that a
// mistake in one pod does not change what the others count for.
func senior(a, b *Member) int {
	switch {
	case a.Problem == nil && b.Problem != nil:
		return -1
	case a.Problem != nil && b.Problem == nil:
		return 1
	}
	return older(a, b)
}

// waits says whether a member wants a place and has none.
func (g *gang) waits(m *Member) bool { return m.State == Pending && g.reserved[m.UID] == unplaced }

// take removes a member. What it had reserved is still counted until put or the caller says otherwise.
func (g *gang) take(m *Member) {
	g.count(m, -1)
	delete(g.members, m.UID)
}

// update recomputes the state of the whole gang after its members changed.
func (g *gang) update() {
	if m := g.eldest.first(); !g.fromPodGroup && m != nil && m.Problem == nil { // else what was asked for last
		g.setSpec(m.Spec)
	}
	switch {
	case g.runs():
		g.satisfied = true
	case g.satisfied && g.bound+g.failed+g.held[waiting]+g.held[allowed] == 0:
		// All that had places are being deleted: those that come are a new gang, though the old one is still there.
		g.satisfied, g.complete = false, time.Time{}
	}
}

// setSpec records what the gang asks for. Where that is something else than before, what was refused may fit now.
func (g *gang) setSpec(s Spec) {
	if g.spec.equal(s) {
		return
	}
	g.spec, g.woken, g.notified, g.spares = s, "", false, nil
}

// broken is why the gang must not be placed, nil where it may.
func (g *gang) broken() error {
	if g.problem != nil || g.bad == 0 {
		return g.problem
	}
	m := g.mistaken.first()
	return fmt.Errorf("pod %s: %w", m.Name, m.Problem)
}

// counted is how many pods count towards the minimum by now.
func (g *gang) counted() int {
	placed := g.held[waiting] + g.held[allowed]
	if g.spec.Policy == OnlyWaiting {
		return placed
	}
	return placed + g.bound
}

// reached says whether the gang's members may bind.
func (g *gang) reached() bool {
	if g.spec.Min < 1 { // nothing valid is declared
		return false
	}
	if g.spec.Policy == OnceSatisfied && g.satisfied {
		return true
	}
	return g.counted() >= g.spec.Min
}

// runs says whether the gang has its minimum without any pod that is still to be bound.
func (g *gang) runs() bool { return g.spec.Min > 0 && g.bound >= g.spec.Min }

// alone says whether a pending member needs no other one: the gang stands without it.
func (g *gang) alone() bool {
	switch g.spec.Policy {
	case WaitingAndRunning:
		return g.runs()
	case OnlyWaiting:
		return false
	default:
		return g.satisfied
	}
}

// needs is how many more pods must be placed together.
func (g *gang) needs() int {
	if g.reached() {
		return 0
	}
	return max(g.spec.Min-g.counted(), 0)
}

// gathered says whether the gang has the pods that it needs.
func (g *gang) gathered() bool { return g.pending >= g.needs() }

// candidates are the members that want a place, oldest first.
func (g *gang) candidates() []*Member {
	var out []*Member
	for _, m := range g.members {
		if g.waits(m) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, older)
	return out
}

// candidate is the oldest member that wants a place, nil where none does.
func (g *gang) candidate() *Member { return g.waiters.first() }
