package ledger

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Ledger is the book of all gangs of a cluster. It is safe for concurrent use.
type Ledger struct {
	mu     sync.Mutex // not an RWMutex: answers tidy up what they look through
	gangs  map[Key]*gang
	of     map[UID]*gang
	naming map[Key]map[*gang]bool // the gangs with others in their groups, by each of those
}

// New returns an empty ledger.
func New() *Ledger {
	return &Ledger{gangs: map[Key]*gang{}, of: map[UID]*gang{}, naming: map[Key]map[*gang]bool{}}
}

// Change is what follows from an entry; the caller carries it out.
type Change struct {
	Wake   []UID // pods that may be tried now
	Allow  []UID // placed pods that may bind
	Reject []UID // placed pods that must let go
	// Later are pods to be tried After a while: their round was called off, and nothing says what to wait for.
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
	old := g.members[m.UID]
	g.put(&m)
	l.of[m.UID] = g
	l.settle(g)
	c = merge(c, l.review(g, now))
	if newcomer := old == nil || old.State != Pending; newcomer && g.waits(&m) {
		c = merge(c, l.welcome(g, &m, c, now))
	}
	return c
}

// welcome tries a pod that has just begun to want a place, which the queue may have heard of first and refused for want
// of a gang. One that must wait for its gang may be what the gang lacked: who leads tries again, after a while, as most
// often more of the kind come.
func (l *Ledger) welcome(g *gang, m *Member, c Change, now time.Time) Change {
	switch {
	case slices.Contains(c.Wake, m.UID):
	case l.admit(m.UID).OK:
		return Change{Wake: []UID{m.UID}}
	case len(c.Wake) == 0 && g.woken != "" && !now.Before(g.again):
		g.again = now.Add(shortestPause)
		return Change{Later: []UID{g.woken}, After: shortestPause}
	}
	return Change{}
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
	var c Change
	m := g.members[uid]
	if g.reserved[uid] == waiting { // it may live on without the gang, which nobody else would tell it
		c.Reject = []UID{uid}
	}
	g.place(m, unplaced)
	g.take(m)
	if len(g.members) == 0 {
		return merge(c, l.clear(g, now))
	}
	l.settle(g)
	return merge(c, l.review(g, now))
}

// clear makes a gang without pods a blank page, on which the next gang of this name starts afresh.
func (l *Ledger) clear(g *gang, now time.Time) Change {
	var c Change
	if g.round != nil {
		c = l.callOff(g.round)
	}
	l.index(g, g.spec.Groups, nil)
	spec, problem, ruled := g.spec, g.problem, g.ruled && !errors.Is(g.problem, errNoPodGroup)
	g.open()
	if ruled {
		g.spec, g.problem, g.ruled = spec, problem, ruled
	} else {
		delete(l.gangs, g.key)
	}
	return merge(c, l.reviewOthers(g, now))
}

// Rule says what a native gang's PodGroup asks for, or why that does not hold.
func (l *Ledger) Rule(key Key, spec Spec, problem error, now time.Time) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gang(key)
	g.ask(spec)
	g.problem = problem
	l.settle(g)
	return l.review(g, now)
}

// Unrule says that nothing rules a gang any more: its PodGroup is gone, and its pods wait for the next of that name.
func (l *Ledger) Unrule(key Key, now time.Time) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gangs[key]
	switch {
	case g == nil:
		return Change{}
	case len(g.members) == 0:
		delete(l.gangs, key)
		return Change{}
	}
	g.problem = noPodGroup(key) // what it asked for still says which of its pods may be spared
	return l.review(g, now)
}

var errNoPodGroup = errors.New("there is no PodGroup")

func noPodGroup(key Key) error { return fmt.Errorf("%w %s", errNoPodGroup, key) }

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

// settle brings a gang up to date after its members changed, and the index of the groups with it.
func (l *Ledger) settle(g *gang) {
	before := g.spec.Groups
	g.settle()
	if !slices.Equal(before, g.spec.Groups) {
		l.index(g, before, g.spec.Groups)
	}
}

// index enters which gangs a gang names in its groups, instead of those that it named before.
func (l *Ledger) index(g *gang, before, after []Key) {
	for _, key := range before {
		if delete(l.naming[key], g); len(l.naming[key]) == 0 {
			delete(l.naming, key)
		}
	}
	for _, key := range after {
		if l.naming[key] == nil {
			l.naming[key] = map[*gang]bool{}
		}
		l.naming[key][g] = true
	}
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
