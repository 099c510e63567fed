package gangcache

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Order is a gang's place in the queue.
type Order struct {
	// Since is when the gang had the pods it needs, or last held places in vain; long ago where it was left half
	// placed.
	Since time.Time
	Gang  Key
	// Rank is the age of the pod itself: within a gang the oldest goes first.
	Rank time.Time
	Pod  string
}

// Order is where a pod's gang stands in the queue; ok is false for a pod without a gang.
func (c *Cache) Order(uid UID) (o Order, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[uid]
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
func (c *Cache) GangOf(uid UID) (Key, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.of[uid]; g != nil {
		return g.key, true
	}
	return Key{}, false
}

// Answer is what a pod that waits in the scheduler's memory is to be told: that it may bind, that it must let go, or
// nothing yet.
func (c *Cache) Answer(uid UID) (bind, letGo bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[uid]
	if g == nil {
		return false, true
	}
	how := g.reserved[uid]
	return how == allowed, how == leaving || how == unplaced
}

// WaitingOn are the pods that hold places on a node, in the scheduler's memory alone. Those that may bind are among
// them: many wait for their turn.
func (c *Cache) WaitingOn(node string) []UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []UID
	for _, g := range c.gangs {
		for uid, how := range g.reserved {
			if (how == waiting || how == allowed) && g.members[uid].Node == node {
				out = append(out, uid)
			}
		}
	}
	return out
}

// AnyOf is one of a gang's pods; ok is false where it has none.
func (c *Cache) AnyOf(key Key) (uid UID, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.gangs[key]; g != nil {
		for uid := range g.members {
			return uid, true
		}
	}
	return "", false
}

// BlockingReason is why the pod's gang cannot be tried at all, "" where it can or where the pod has none; mistaken says
// that what the gang declares must be mended.
func (c *Cache) BlockingReason(uid UID) (reason string, mistaken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[uid]
	if g == nil || g.round != nil {
		return "", false
	}
	group, _ := c.group(g)
	mistaken = broken(group)
	if !mistaken && g.alone() && reached(group) {
		return "", false
	}
	return c.blockingReason(g), mistaken
}

// Membership is which pods must be evicted together with a placed pod.
type Membership struct {
	// Group names the pods that must go together, "" for a pod that goes alone.
	Group string
	// Spare pods may go alone although they have a gang: it keeps its minimum without them.
	Spare bool
}

// Membership returns which pods must be evicted together with a placed pod.
func (c *Cache) Membership(uid UID) Membership {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[uid]
	if g == nil {
		return Membership{}
	}
	if s := g.members[uid].State; s == Failed || s == Leaving { // it goes in any case, and the others stay
		return Membership{}
	}
	t := Membership{Group: g.key.String()}
	for _, key := range g.spec.Groups { // sorted: all gangs of a group have the same first one
		other := c.gangs[key]
		if other == g || key.Namespace == g.key.Namespace || other != nil && consents(other, g) {
			t.Group = key.String()
			break
		}
	}
	if g.key.Native { // a gang by annotations that has the same name is another one
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

// Stats counts the gangs of the cache.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s Stats
	for _, g := range c.gangs {
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
