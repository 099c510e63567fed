package ledger

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
)

// Member is what the ledger knows of a pod.
type Member struct {
	UID             UID
	Namespace, Name string
	Created         time.Time
	Gang            Key
	Spec            Spec  // as the pod declares it
	Problem         error // why the pod's declaration holds nothing; the gang is not placed while it has such a pod
	State           State
}

// String is how users read it: namespace/name.
func (m *Member) String() string { return m.Namespace + "/" + m.Name }

// older orders members by age, and by name where they are of one second.
func older(a, b *Member) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// gang is one gang's page of the ledger.
type gang struct {
	key     Key
	spec    Spec  // of its oldest member, or of its PodGroup
	problem error // why it must not be placed
	ruled   bool  // the spec comes from a PodGroup, whatever its members say

	members  map[UID]*Member
	reserved map[UID]bool // placed in the scheduler's memory; true once allowed to bind
	oldest   *Member      // whose spec holds; nil where it must be looked for
	bad      int          // members with a problem
	pending  int          // that want a place and have none reserved
	bound    int

	leader    *Member   // the oldest candidate; nil where it must be looked for
	woken     UID       // the leader that was last told to try
	satisfied bool      // the minimum was reached once
	admitted  bool      // the minimum was reached under our eyes
	complete  time.Time // when the gang first had the pods it needs; zero before
	first     time.Time // when the first of the members that now wait got its place
	failures  int       // rounds called off since the minimum was last reached
	resting   bool      // it held places in vain and pauses, not being strict
	letting   bool      // its waiting members were told to let go
	round     *round
}

// round is one attempt to place a group of gangs, which found room for all of them.
type round struct {
	plan map[UID]string // members that the attempt places, and the node where it must be that one
}

func newGang(key Key) *gang {
	return &gang{key: key, members: map[UID]*Member{}, reserved: map[UID]bool{}}
}

// count moves a member into or out of the gang's sums.
func (g *gang) count(m *Member, by int) {
	if m.Problem != nil {
		g.bad += by
	}
	switch m.State {
	case Pending:
		if g.waits(m) {
			g.pending += by
		}
	case Bound:
		g.bound += by
	case Absent, Held, Failed:
	}
}

// put enters or replaces a member.
func (g *gang) put(m *Member) {
	if old := g.members[m.UID]; old != nil {
		g.take(old)
	}
	if m.State != Pending {
		delete(g.reserved, m.UID)
	}
	g.members[m.UID] = m
	g.count(m, 1)
	if len(g.members) == 1 || g.oldest != nil && older(m, g.oldest) < 0 {
		g.oldest = m
	}
	if g.waits(m) && (g.pending == 1 || g.leader != nil && older(m, g.leader) < 0) {
		g.leader = m
	}
	g.settle()
}

// waits says whether a member wants a place and has none.
func (g *gang) waits(m *Member) bool {
	_, placed := g.reserved[m.UID]
	return m.State == Pending && !placed
}

// take strikes a member out. What it had reserved stays in the books until put or the caller says otherwise.
func (g *gang) take(m *Member) {
	g.count(m, -1)
	delete(g.members, m.UID)
	if g.oldest == m {
		g.oldest = nil
	}
	if g.leader == m {
		g.leader = nil
	}
}

// settle brings what holds for the whole gang up to date after its members changed.
func (g *gang) settle() {
	if g.oldest == nil {
		for _, m := range g.members {
			if g.oldest == nil || older(m, g.oldest) < 0 {
				g.oldest = m
			}
		}
	}
	if !g.ruled && g.oldest != nil {
		g.spec = g.oldest.Spec
	}
	if g.spec.Min > 0 && g.bound >= g.spec.Min {
		g.satisfied = true
	}
}

// broken is why the gang must not be placed, nil where it may.
func (g *gang) broken() error {
	if g.problem != nil || g.bad == 0 {
		return g.problem
	}
	var first *Member
	for _, m := range g.members {
		if m.Problem != nil && (first == nil || older(m, first) < 0) {
			first = m
		}
	}
	return fmt.Errorf("pod %s: %w", first.Name, first.Problem)
}

// counted is how many pods count towards the minimum by now.
func (g *gang) counted() int {
	if g.spec.Policy == OnlyWaiting {
		return len(g.reserved)
	}
	return len(g.reserved) + g.bound
}

// reached says whether the gang's members may bind.
func (g *gang) reached() bool {
	if g.spec.Policy == OnceSatisfied && g.satisfied {
		return true
	}
	return g.counted() >= g.spec.Min
}

// alone says whether a pending member needs no other one: the gang stands without it.
func (g *gang) alone() bool {
	switch g.spec.Policy {
	case WaitingAndRunning:
		return g.bound >= g.spec.Min
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
	return g.spec.Min - g.counted()
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
func (g *gang) candidate() *Member {
	if g.leader == nil {
		for _, m := range g.members {
			if g.waits(m) && (g.leader == nil || older(m, g.leader) < 0) {
				g.leader = m
			}
		}
	}
	return g.leader
}
