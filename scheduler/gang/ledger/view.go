package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Order is a gang's place in the queue.
type Order struct {
	// Since is when the gang had the pods it needs, or last held places in vain; long ago where it was left half placed.
	Since time.Time
	Gang  Key
	// Rank is the age of the pod itself: within a gang the oldest goes first.
	Rank time.Time
	Pod  string
}

// Order is where a pod's gang stands in the queue; ok is false for a pod without a gang.
func (l *Ledger) Order(uid UID) (o Order, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil {
		return Order{}, false
	}
	m, since := g.members[uid], g.since
	if g.half {
		since = time.Unix(0, 0)
	}
	return Order{Since: since, Gang: g.key, Rank: m.Created, Pod: m.Name}, true
}

// Compare orders pods of gangs: all of one gang before the first of the next.
func (o Order) Compare(other Order) int {
	return cmp.Or(o.Since.Compare(other.Since), compare(o.Gang, other.Gang), o.Rank.Compare(other.Rank),
		cmp.Compare(len(o.Pod), len(other.Pod)), strings.Compare(o.Pod, other.Pod))
}

// GangOf is the gang of a pod.
func (l *Ledger) GangOf(uid UID) (Key, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.of[uid]; g != nil {
		return g.key, true
	}
	return Key{}, false
}

// Answer is what a pod that waits in the scheduler's memory is to be told: that it may bind, that it must let go, or
// nothing yet.
func (l *Ledger) Answer(uid UID) (bind, letGo bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil {
		return false, true
	}
	how := g.reserved[uid]
	return how == allowed, how == leaving || how == unplaced
}

// AnyOf is one of a gang's pods; ok is false where it has none.
func (l *Ledger) AnyOf(key Key) (uid UID, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.gangs[key]; g != nil {
		for uid := range g.members {
			return uid, true
		}
	}
	return "", false
}

// Hurdle is why the pod's gang cannot be tried at all, "" where it can or where the pod has none; mistaken says that what
// the gang declares must be mended.
func (l *Ledger) Hurdle(uid UID) (reason string, mistaken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil || g.round != nil {
		return "", false
	}
	group, _ := l.group(g)
	mistaken = broken(group)
	if !mistaken && g.alone() && reached(group) {
		return "", false
	}
	return l.hurdle(g), mistaken
}

// Tie is what binds a placed pod to others when it is to be evicted.
type Tie struct {
	// Group names the pods that must go together, "" for a pod that goes alone.
	Group string
	// Spare pods may go alone although they have a gang: it keeps its minimum without them.
	Spare bool
}

// Tied says what binds a placed pod to others.
func (l *Ledger) Tied(uid UID) Tie {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil {
		return Tie{}
	}
	if g.members[uid].State == Failed { // it goes in any case, and the others stay
		return Tie{}
	}
	t := Tie{Group: g.key.String()}
	if len(g.spec.Groups) > 0 {
		t.Group = g.spec.Groups[0].String()
	}
	if g.key.Native { // it is not tied to a gang that only has the same name
		t.Group = "PodGroup " + t.Group
	}
	t.Spare = g.spare(uid)
	return t
}

// spare says whether a bound member is one of those that the gang keeps its minimum without: the newest.
func (g *gang) spare(uid UID) bool {
	if g.spec.Min < 1 || g.bound <= g.spec.Min {
		return false
	}
	if g.spares == nil {
		bound := make([]*Member, 0, g.bound)
		for _, m := range g.members {
			if m.State == Bound {
				bound = append(bound, m)
			}
		}
		slices.SortFunc(bound, older)
		g.spares = map[UID]bool{}
		for _, m := range bound[g.spec.Min:] {
			g.spares[m.UID] = true
		}
	}
	return g.spares[uid]
}

// Stats counts gangs.
type Stats struct {
	Waiting int // want places and lack their minimum
	Placed  int // have their minimum
	Broken  int // cannot be placed: what they declare does not hold
}

// Stats counts the gangs of the ledger.
func (l *Ledger) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	var s Stats
	for _, g := range l.gangs {
		switch {
		case len(g.members) == 0:
		case g.broken() != nil:
			s.Broken++
		case g.reached():
			s.Placed++
		case g.pending > 0:
			s.Waiting++
		}
	}
	return s
}
