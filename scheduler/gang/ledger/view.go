package ledger

import (
	"cmp"
	"strings"
	"time"
)

// Order is a gang's place in the queue.
type Order struct {
	Since time.Time // the gang had the pods it needs; long ago where it was left half placed
	Gang  string
	// Rank is the age of the pod itself: within a gang the oldest goes first.
	Rank time.Time
	Pod  string
}

// Order is where a pod's gang stands in the queue; ok is false for a pod without a gang.
func (l *Ledger) Order(uid UID) (o Order, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	g := l.of[uid]
	if g == nil {
		return Order{}, false
	}
	m := g.members[uid]
	return Order{Since: g.complete, Gang: g.key.String(), Rank: m.Created, Pod: m.Name}, true
}

// Compare orders pods of gangs: all of one gang before the first of the next.
func (o Order) Compare(other Order) int {
	return cmp.Or(o.Since.Compare(other.Since), strings.Compare(o.Gang, other.Gang), o.Rank.Compare(other.Rank),
		cmp.Compare(len(o.Pod), len(other.Pod)), strings.Compare(o.Pod, other.Pod))
}

// GangOf is the gang of a pod.
func (l *Ledger) GangOf(uid UID) (Key, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if g := l.of[uid]; g != nil {
		return g.key, true
	}
	return Key{}, false
}

// Has says whether a gang has pods.
func (l *Ledger) Has(key Key) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	g := l.gangs[key]
	return g != nil && len(g.members) > 0
}

// Hurdle is why the pod's gang cannot be tried at all, "" where it can or where the pod has none; broken says that what
// the gang declares must be mended.
func (l *Ledger) Hurdle(uid UID) (reason string, broken bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	g := l.of[uid]
	if g == nil || g.round != nil {
		return "", false
	}
	group, _ := l.group(g)
	for _, other := range group {
		broken = broken || other.broken() != nil
	}
	if !broken && g.alone() && reached(group) {
		return "", false
	}
	return l.hurdle(g), broken
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
	l.mu.RLock()
	defer l.mu.RUnlock()
	g := l.of[uid]
	if g == nil {
		return Tie{}
	}
	t := Tie{Group: g.key.String()}
	if len(g.spec.Groups) > 0 {
		t.Group = g.spec.Groups[0].String()
	}
	m := g.members[uid]
	if m.State != Bound {
		return t
	}
	spare := g.bound - g.spec.Min
	for _, other := range g.members {
		if other.State == Bound && older(m, other) < 0 { // the newest go first
			spare--
		}
	}
	t.Spare = spare > 0
	return t
}

// Stats counts gangs.
type Stats struct {
	Waiting int // want places and lack their minimum
	Placed  int // have their minimum
	Broken  int // cannot be placed: what they declare does not hold
}

// Stats counts the gangs of the ledger.
func (l *Ledger) Stats() Stats {
	l.mu.RLock()
	defer l.mu.RUnlock()
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
