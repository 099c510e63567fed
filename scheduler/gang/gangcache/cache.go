package gangcache

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Cache is the state of all gangs of a cluster. It is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex // not an RWMutex: answers tidy up what they look through
	gangs  map[Key]*gang
	of     map[UID]*gang
	naming map[Key]map[*gang]bool // the gangs with others in their groups, by each of those
}

// New returns an empty cache.
func New() *Cache {
	return &Cache{gangs: map[Key]*gang{}, of: map[UID]*gang{}, naming: map[Key]map[*gang]bool{}}
}

// Change is what follows from an event; the caller carries it out.
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

// Put records a pod that declares a gang, or what became of it.
func (c *Cache) Put(m Member, now time.Time) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.State == Absent {
		return c.remove(m.UID, now)
	}
	var change Change
	if g := c.of[m.UID]; g != nil && g.key != m.Gang { // its annotations were edited
		change = c.remove(m.UID, now)
	}
	g := c.gang(m.Gang)
	old := g.members[m.UID]
	g.put(&m)
	c.of[m.UID] = g
	c.update(g)
	change = merge(change, c.review(g, now))
	if newcomer := old == nil || old.State != Pending; newcomer && g.waits(&m) {
		change = merge(change, c.wakeNewcomer(g, &m, change, now))
	}
	return change
}

// wakeNewcomer wakes a pod that has just begun to want a place, which the queue may have heard of first and refused for
// want of a gang. One that must wait for its gang may be what the gang lacked: who leads tries again, after a while, as
// most often more of the kind come.
func (c *Cache) wakeNewcomer(g *gang, m *Member, change Change, now time.Time) Change {
	switch {
	case slices.Contains(change.Wake, m.UID):
	case c.admit(m.UID).OK:
		return Change{Wake: []UID{m.UID}}
	case len(change.Wake) == 0 && g.woken != "" && !now.Before(g.again):
		g.again = now.Add(shortestPause)
		return Change{Later: []UID{g.woken}, After: shortestPause}
	}
	return Change{}
}

// Remove removes a pod.
func (c *Cache) Remove(uid UID, now time.Time) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remove(uid, now)
}

func (c *Cache) remove(uid UID, now time.Time) Change {
	g := c.of[uid]
	if g == nil {
		return Change{}
	}
	delete(c.of, uid)
	var change Change
	m := g.members[uid]
	if g.reserved[uid] == waiting { // it may live on without the gang, and nobody else would reject it
		change.Reject = []UID{uid}
	}
	g.place(m, unplaced)
	g.take(m)
	if len(g.members) == 0 {
		return merge(change, c.clear(g, now))
	}
	c.update(g)
	return merge(change, c.review(g, now))
}

// clear resets a gang without pods: the next gang of this name starts afresh.
func (c *Cache) clear(g *gang, now time.Time) Change {
	var change Change
	if g.round != nil {
		change = c.callOff(g.round)
	}
	c.index(g, g.spec.Groups, nil)
	spec, problem, fromPodGroup := g.spec, g.problem, g.fromPodGroup && !errors.Is(g.problem, errNoPodGroup)
	g.reset()
	if fromPodGroup {
		g.spec, g.problem, g.fromPodGroup = spec, problem, fromPodGroup
	} else {
		delete(c.gangs, g.key)
	}
	return merge(change, c.reviewOthers(g, now))
}

// SetPodGroup records what the PodGroup of a native gang asks for, or why it is invalid.
func (c *Cache) SetPodGroup(key Key, spec Spec, problem error, now time.Time) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.gang(key)
	g.setSpec(spec)
	g.problem = problem
	c.update(g)
	return c.review(g, now)
}

// RemovePodGroup records that the PodGroup of a gang was deleted: its pods wait for the next of that name.
func (c *Cache) RemovePodGroup(key Key, now time.Time) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.gangs[key]
	switch {
	case g == nil:
		return Change{}
	case len(g.members) == 0:
		delete(c.gangs, key)
		return Change{}
	}
	g.problem = noPodGroup(key) // what it asked for still says which of its pods may be spared
	return c.review(g, now)
}

var errNoPodGroup = errors.New("there is no PodGroup")

func noPodGroup(key Key) error { return fmt.Errorf("%w %s", errNoPodGroup, key) }

// gang returns a gang, and creates it where there is none.
func (c *Cache) gang(key Key) *gang {
	g := c.gangs[key]
	if g == nil {
		g = newGang(key)
		if key.Native { // until its PodGroup is seen
			g.fromPodGroup, g.problem = true, noPodGroup(key)
		}
		c.gangs[key] = g
	}
	return g
}

// update recomputes a gang after its members changed, and the index of the groups.
func (c *Cache) update(g *gang) {
	before := g.spec.Groups
	g.update()
	if !slices.Equal(before, g.spec.Groups) {
		c.index(g, before, g.spec.Groups)
	}
}

// index records which gangs a gang names in its groups, instead of those that it named before.
func (c *Cache) index(g *gang, before, after []Key) {
	for _, key := range before {
		if delete(c.naming[key], g); len(c.naming[key]) == 0 {
			delete(c.naming, key)
		}
	}
	for _, key := range after {
		if c.naming[key] == nil {
			c.naming[key] = map[*gang]bool{}
		}
		c.naming[key][g] = true
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
