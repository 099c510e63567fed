package ledger

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Ledger is the book of all gangs of a cluster. It is safe for concurrent use.
type Ledger struct {
	mu    sync.RWMutex
	gangs map[Key]*gang
	of    map[UID]*gang
}

// New returns an empty ledger.
func New() *Ledger { return &Ledger{gangs: map[Key]*gang{}, of: map[UID]*gang{}} }

// Change is what follows from an entry; the caller carries it out.
type Change struct {
	Wake   []UID // pods that may be tried now
	Allow  []UID // placed pods that may bind
	Reject []UID // placed pods that must let go
	// Later are pods to be tried After a while, with Retry: their round was called off, and nothing says what to wait for.
	Later []UID
	After time.Duration
	// Admitted are gangs that reached their minimum for the first time.
	Admitted []Admission
}

// Admission is how long a gang that had its pods waited for their places.
type Admission struct {
	Gang   Key
	Waited time.Duration
}

// The first and the longest pause after a round that was called off; it doubles in between.
const (
	shortestPause = time.Second
	longestPause  = time.Minute
)

// Put enters a pod that declares a gang, or what became of it.
func (l *Ledger) Put(m Member, now time.Time) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.State == Absent {
		return l.remove(m.UID, now)
	}
	var c Change
	if g := l.of[m.UID]; g != nil && g.key != m.Gang { // its annotations were edited
		c = l.remove(m.UID, now)
	}
	g := l.gang(m.Gang)
	g.put(&m)
	l.of[m.UID] = g
	return merge(c, l.review(g, now))
}

// Remove strikes a pod out.
func (l *Ledger) Remove(uid UID, now time.Time) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remove(uid, now)
}

func (l *Ledger) remove(uid UID, now time.Time) Change {
	g := l.of[uid]
	if g == nil {
		return Change{}
	}
	delete(l.of, uid)
	allowed, placed := g.reserved[uid]
	if m := g.members[uid]; m != nil {
		g.take(m)
	}
	delete(g.reserved, uid)
	var c Change
	if placed && !allowed {
		c = l.callOff(g)
	}
	if len(g.members) == 0 {
		g.satisfied, g.admitted, g.complete, g.failures = false, false, time.Time{}, 0 // the next gang of this name starts afresh
		if !g.ruled {
			delete(l.gangs, g.key)
		}
		return c
	}
	g.settle()
	return merge(c, l.review(g, now))
}

// Rule says what a native gang's PodGroup asks for, or why that does not hold.
func (l *Ledger) Rule(key Key, spec Spec, problem error, now time.Time) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gang(key)
	g.spec, g.problem = spec, problem
	g.settle()
	return l.review(g, now)
}

// Unrule says that nothing rules a gang any more: its PodGroup is gone, and its pods wait for the next of that name.
func (l *Ledger) Unrule(key Key, now time.Time) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gang(key)
	if len(g.members) == 0 {
		delete(l.gangs, key)
		return Change{}
	}
	g.spec, g.problem = Spec{}, noPodGroup(key)
	return l.review(g, now)
}

func noPodGroup(key Key) error { return fmt.Errorf("there is no PodGroup %s", key) }

// gang is the page of a gang, opened where there is none.
func (l *Ledger) gang(key Key) *gang {
	g := l.gangs[key]
	if g == nil {
		g = newGang(key)
		if key.Native { // until its PodGroup is seen
			g.ruled, g.problem = true, noPodGroup(key)
		}
		l.gangs[key] = g
	}
	return g
}

// group is the gangs that start together with this one, itself among them; the first of them that has no pods is named.
func (l *Ledger) group(g *gang) (gangs []*gang, missing *Key) {
	if len(g.spec.Groups) == 0 {
		return []*gang{g}, nil
	}
	for _, key := range g.spec.Groups {
		other := l.gangs[key]
		if other == nil || len(other.members) == 0 {
			if missing == nil {
				missing = &key
			}
			continue
		}
		gangs = append(gangs, other)
	}
	return gangs, missing
}

// hurdle is why a gang's group cannot be tried at all, "" where it can.
func (l *Ledger) hurdle(g *gang) string {
	group, missing := l.group(g)
	for _, other := range group {
		if err := other.broken(); err != nil {
			return fmt.Sprintf("gang %s is not placed: %s", other.key, err)
		}
	}
	if missing != nil {
		return fmt.Sprintf("gang %s waits for gang %s of its group, which has no pods", g.key, *missing)
	}
	for _, other := range group {
		if !other.gathered() {
			return fmt.Sprintf("gang %s waits for its pods: %d of at least %d are there", other.key, other.pending+other.counted(), other.spec.Min)
		}
	}
	return ""
}

// strict says whether one member without a place makes all others of the group let go.
func strict(group []*gang) bool {
	return slices.ContainsFunc(group, func(g *gang) bool { return g.spec.Mode != NonStrict })
}

// reached says whether every gang of a group has what it needs.
func reached(group []*gang) bool {
	return !slices.ContainsFunc(group, func(g *gang) bool { return !g.reached() })
}

// lead is the one pod that is tried on behalf of a group: the oldest that wants a place in a gang that needs more.
func lead(group []*gang) (*gang, *Member) {
	var in *gang
	var first *Member
	for _, g := range group {
		if g.reached() {
			continue
		}
		if m := g.candidate(); m != nil && (first == nil || older(m, first) < 0) {
			in, first = g, m
		}
	}
	return in, first
}

// review finds who may be tried after a gang changed.
func (l *Ledger) review(g *gang, now time.Time) Change {
	group, missing := l.group(g)
	if l.hurdle(g) != "" {
		g.woken = ""
		return Change{}
	}
	var c Change
	for _, other := range group {
		if other.complete.IsZero() {
			other.complete = now
			if other.bound > 0 && !other.reached() { // another scheduler left off in the middle: nobody goes first
				other.complete = time.Unix(0, 0)
			}
		}
	}
	switch {
	case missing != nil || g.round != nil:
	case !strict(group):
		c.Wake = newlyWoken(g, g.candidates())
	case !reached(group):
		if in, m := lead(group); m != nil && in.woken != m.UID {
			in.woken = m.UID
			c.Wake = []UID{m.UID}
		}
	}
	return c
}

// newlyWoken are members of a gang whose first member was not woken yet.
func newlyWoken(g *gang, members []*Member) []UID {
	if len(members) == 0 || g.woken == members[0].UID {
		return nil
	}
	g.woken = members[0].UID
	return ids(members)
}

func ids(members []*Member) []UID {
	out := make([]UID, len(members))
	for i, m := range members {
		out[i] = m.UID
	}
	return out
}

func merge(a, b Change) Change {
	return Change{
		Wake: append(a.Wake, b.Wake...), Allow: append(a.Allow, b.Allow...), Reject: append(a.Reject, b.Reject...),
		Later: append(a.Later, b.Later...), After: max(a.After, b.After), Admitted: append(a.Admitted, b.Admitted...),
	}
}
