package gangcache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// phase is where a pod stands in the model, whatever the cache knows of it.
type phase int

const (
	pending phase = iota
	cycling       // the scheduler is between finding a node for it and asking whether it may bind
	waits         // it holds a place
	binding       // it may bind
	bound
	leaves // it was bound and is terminating: it holds its place
)

type pod struct {
	uid          UID
	gang         *group
	created      time.Time
	phase        phase
	known        bool // to the cache
	queued       bool // known to the queue
	active       bool // to be tried
	again        bool // was to be tried while it was being tried
	rejected     bool // was told to let go
	seen         bool // the cache has seen it bound
	bad, held    bool
	slice        Slice
	since, until time.Time
}

type group struct {
	key          Key
	spec         Spec
	longest      time.Duration // that it ever asked for
	fromPodGroup bool
	satisfied    bool
}

type timer struct {
	at   time.Time
	uids []UID
}

// model is a cluster of equal places, and a scheduler of it.
type model struct {
	t        *testing.T
	rand     *rand.Rand
	cache    *Cache
	now      time.Time
	places   int
	gangs    []*group
	pods     []*pod
	next     int
	current  *pod // the one that is between PreFilter and Permit
	timers   []timer
	calm     bool // nothing but the scheduler acts
	admitted int
	err      error
	history  *strings.Builder
}

// used is how many places are taken.
func (m *model) used() int {
	n := 0
	for _, p := range m.pods {
		if p.phase != pending {
			n++
		}
	}
	return n
}

func (m *model) free() int { return m.places - m.used() }

func (m *model) find(uid UID) *pod {
	for _, p := range m.pods {
		if p.uid == uid {
			return p
		}
	}
	return nil
}

// some is a random pod of a kind, nil where there is none.
func (m *model) some(kind func(*pod) bool) *pod {
	var of []*pod
	for _, p := range m.pods {
		if kind(p) {
			of = append(of, p)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return of[m.rand.IntN(len(of))]
}

// node is where the pod goes: the model cares for no more than how many do.
func (p *pod) node() string { return fmt.Sprintf("node-%d", len(p.uid)*int(p.uid[0])%3) }

func (m *model) active() []*pod {
	var out []*pod
	for _, p := range m.pods {
		if p.active {
			out = append(out, p)
		}
	}
	return out
}

// closure is the gangs that must start with one.
func (m *model) closure(g *group) []*group {
	out := []*group{g}
	for i := 0; i < len(out); i++ {
		for _, key := range out[i].spec.Groups {
			for _, other := range m.gangs {
				if other.key == key && !slices.Contains(out, other) {
					out = append(out, other)
				}
			}
		}
	}
	return out
}

// enter tells the cache of a pod as it is.
func (m *model) enter(p *pod) {
	member := Member{
		UID: p.uid, Namespace: "a", Name: string(p.uid), Created: p.created, Gang: p.gang.key, State: Pending,
		Slice: p.slice,
	}
	if !p.gang.key.Native {
		member.Spec = p.gang.spec
	}
	if p.bad {
		member.Problem, member.Spec = errMistake, Spec{Min: m.rand.IntN(2)}
	}
	switch {
	case p.held:
		member.State = Held
	case p.phase == bound:
		member.State, member.Node, p.seen = Bound, p.node(), true
	case p.phase == leaves:
		member.State = Leaving
	}
	p.known = true
	m.note("put %s state %d bad %v", p.uid, member.State, p.bad)
	running, valid := 0, p.gang.key.Native
	for _, other := range m.pods {
		if other.gang == p.gang && other.phase == bound && other.seen {
			running++
		}
		valid = valid || other.gang == p.gang && other.known && !other.bad // else nobody knows what is asked for
	}
	p.gang.satisfied = p.gang.satisfied || valid && running >= p.gang.spec.Min
	m.apply(m.cache.Put(member, m.now))
	m.forget(p.gang)
}

// forget starts a gang afresh when all of its pods that had places have gone or are leaving.
func (m *model) forget(g *group) {
	if !slices.ContainsFunc(m.pods, func(p *pod) bool {
		return p.gang == g && (p.phase == waits || p.phase == binding || p.phase == bound)
	}) {
		g.satisfied = false
	}
}

type mistakeError struct{}

func (mistakeError) Error() string { return "it makes no sense" }

var errMistake = mistakeError{}

// apply does what the cache says.
func (m *model) apply(c Change, placing ...*pod) {
	if len(c.Wake)+len(c.Allow)+len(c.Reject)+len(c.Later) > 0 {
		m.note("  wake %s allow %s reject %s later %s after %s", c.Wake, c.Allow, c.Reject, c.Later, c.After)
	}
	var granted []*group
	for _, p := range placing {
		granted = append(granted, p.gang)
	}
	for _, uid := range c.Allow {
		p := m.find(uid)
		if p == nil || p.phase != waits {
			continue // the one that is being placed
		}
		if p.rejected {
			m.fail("pod %s may bind and was told to let go", uid)
		}
		p.phase, p.seen = binding, false
		granted = append(granted, p.gang)
	}
	for _, uid := range c.Reject {
		if p := m.find(uid); p != nil && p.phase == waits {
			p.rejected = true
		}
	}
	m.admitted += len(c.Admitted)
	for _, a := range c.Admitted {
		if a.Waited < 0 || a.Waited > m.now.Sub(start) {
			m.fail("gang %s was admitted after %s", a.Gang, a.Waited)
		}
	}
	for _, g := range granted {
		m.granted(g)
	}
	for _, uid := range c.Wake {
		m.wake(uid)
	}
	if len(c.Later) > 0 {
		m.timers = append(m.timers, timer{m.now.Add(c.After), c.Later})
	}
}

// granted looks whether a gang that may bind, now that all were notified, has what it needs.
func (m *model) granted(g *group) {
	for _, other := range m.closure(g) {
		n, known, broken := 0, 0, false
		for _, p := range m.pods {
			if p.gang != other {
				continue
			}
			broken = broken || p.bad && p.known
			if p.known {
				known++
			}
			counts := other != g || other.spec.Policy != OnlyWaiting || !p.seen
			if p.phase == binding && !p.seen || p.phase == bound && counts {
				n++
			}
		}
		switch {
		case broken:
			m.fail("gang %s may bind, and a pod of gang %s makes no sense", g.key, other.key)
		case other.spec.Policy == OnceSatisfied && other.satisfied:
		case other != g && known == 0 && g.satisfied: // one that was there when this gang started, and has gone
			continue
		case n < other.spec.Min:
			m.fail("gang %s may bind with %d of %d pods of gang %s", g.key, n, other.spec.Min, other.key)
		}
		other.satisfied = true
	}
}

// wake puts a pod among those to be tried, where the cache admits it.
func (m *model) wake(uid UID) {
	p := m.find(uid)
	switch {
	case p == nil || !p.queued:
	case p.phase != pending:
		p.again = true
	case p.known && !p.held && m.cache.Admit(p.uid).OK:
		p.active = true
	}
}

// enqueue enters a pod into the queue.
func (m *model) enqueue(p *pod) {
	p.queued = true
	m.note("enqueue %s", p.uid)
	m.wake(p.uid)
}

// park puts a pod back that found no place, or lost it.
func (m *model) park(p *pod) {
	p.phase, p.active, p.rejected, p.until = pending, false, false, time.Time{}
	if p.again {
		p.again = false
		m.wake(p.uid)
	}
}

// freed tries those again that a free place may help, as the queue does.
func (m *model) freed() {
	for _, p := range m.pods {
		if p.phase == pending {
			m.wake(p.uid)
		}
	}
}

// cycle tries a pod, up to where it has a place in memory, or goes on with the one that has.
func (m *model) cycle() {
	if p := m.current; p != nil {
		m.current = nil
		m.permit(p)
		return
	}
	active := m.active()
	if len(active) == 0 {
		return
	}
	slices.SortFunc(active, func(a, b *pod) int {
		x, _ := m.cache.Order(a.uid)
		y, _ := m.cache.Order(b.uid)
		return x.Compare(y)
	})
	p := active[0]
	if !m.calm && m.rand.IntN(4) == 0 { // of a higher priority
		p = active[m.rand.IntN(len(active))]
	}
	p.active = false
	if !m.cache.Admit(p.uid).OK {
		m.note("try %s: not admitted", p.uid)
		return
	}
	if !m.prefilter(p) {
		return
	}
	if m.free() < 1 {
		planned := m.cache.Attempt(p.uid).Planned
		m.note("try %s: no place, planned %v", p.uid, planned)
		if planned {
			m.apply(m.cache.Fail(p.uid))
		}
		m.park(p)
		return
	}
	m.note("try %s: has a place", p.uid)
	p.phase, m.current = cycling, p
}

// prefilter looks for room for all that is wanted.
func (m *model) prefilter(p *pod) bool {
	wants := m.cache.Attempt(p.uid).Wants
	if len(wants) == 0 || wants[0].Alone {
		return true
	}
	plan, room := map[UID]string{}, m.free()
	for _, w := range wants {
		if room -= w.Need; room < 0 || len(w.Candidates) < w.Need {
			m.note("try %s: no room for %v", p.uid, wants)
			m.park(p)
			return false
		}
		for _, uid := range w.Candidates[:w.Need] {
			plan[uid] = "node of " + string(uid)
		}
	}
	m.note("try %s: start %v", p.uid, plan)
	node, c := m.cache.Start(p.uid, plan)
	if node != m.cache.Attempt(p.uid).Node {
		m.fail("pod %s starts a round on node %q, and the next cycle has another", p.uid, node)
	}
	m.apply(c)
	return true
}

// permit asks whether a pod that has a place may bind.
func (m *model) permit(p *pod) {
	first := m.now
	for _, other := range m.pods {
		if other.gang == p.gang && other.phase == waits && !other.rejected && other.since.Before(first) {
			first = other.since
		}
	}
	r := m.cache.Reserve(p.uid, p.node(), m.now)
	m.note("permit %s: %v %s", p.uid, r.Allowed, r.Wait)
	switch {
	case r.Allowed:
		p.phase, p.seen = binding, false
		m.apply(r.Change, p)
	case r.Wait <= 0:
		m.apply(r.Change)
		m.unreserve(p)
	default:
		p.phase, p.since, p.until = waits, m.now, m.now.Add(r.Wait)
		if p.until.After(first.Add(p.gang.longest)) {
			m.fail("pod %s may wait until %s, and the first of its gang waits since %s", p.uid, p.until, first)
		}
		m.apply(r.Change)
	}
}

// unreserve takes a pod's place away.
func (m *model) unreserve(p *pod) {
	m.note("unreserve %s", p.uid)
	m.apply(m.cache.Unreserve(p.uid))
	m.park(p)
	m.freed()
}

// bind binds a pod that may, or fails to.
func (m *model) bind() {
	p := m.some(func(p *pod) bool { return p.phase == binding })
	switch {
	case p == nil:
	case !m.calm && m.rand.IntN(12) == 0:
		m.note("binding %s failed", p.uid)
		p.again = true // the queue tries it again by itself
		m.unreserve(p)
	default:
		m.note("bound %s", p.uid)
		p.phase = bound
	}
}

// watch tells the cache of a pod what it does not know yet, or again what it knows.
func (m *model) watch() {
	p := m.some(func(p *pod) bool { return !p.known || p.phase == bound && !p.seen })
	if p == nil && !m.calm {
		p = m.some(func(p *pod) bool { return true })
	}
	if p != nil {
		m.enter(p)
	}
}

// letGo ends the waiting of a pod that was told to let go.
func (m *model) letGo() {
	if p := m.some(func(p *pod) bool { return p.rejected }); p != nil {
		m.unreserve(p)
	}
}

// pass lets time pass until something is due; false where nothing is.
func (m *model) pass() bool {
	var due time.Time
	for _, t := range m.timers {
		if due.IsZero() || t.at.Before(due) {
			due = t.at
		}
	}
	for _, p := range m.pods {
		if p.phase == waits && (due.IsZero() || p.until.Before(due)) {
			due = p.until
		}
	}
	if due.IsZero() {
		return false
	}
	if due.After(m.now) {
		m.now = due
	}
	m.note("time passes")
	for _, p := range slices.Clone(m.pods) {
		if p.phase == waits && !p.until.After(m.now) {
			m.unreserve(p)
		}
	}
	timers := m.timers
	m.timers = nil
	for _, t := range timers {
		if t.at.After(m.now) {
			m.timers = append(m.timers, t)
			continue
		}
		for _, uid := range t.uids {
			m.wake(uid)
		}
	}
	return true
}
