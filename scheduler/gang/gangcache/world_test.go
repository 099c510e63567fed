package gangcache

import (
	"slices"
	"time"
)

// What the outside world does in the model.

// create makes a pod of a gang that lacks one. The queue may hear of it before the cache, or after it.
func (m *model) create() {
	g := m.gangs[m.rand.IntN(len(m.gangs))]
	n := 0
	for _, p := range m.pods {
		if p.gang == g {
			n++
		}
	}
	if n >= g.spec.Total {
		return
	}
	m.next++
	m.now = m.now.Add(time.Duration(m.rand.IntN(800)) * time.Millisecond)
	m.overdue()
	p := &pod{
		uid: UID(g.key.Name + "-" + string(rune('A'+m.next%26)) + string(rune('A'+m.next/26))), gang: g,
		created: m.now.Truncate(time.Second),
	}
	p.held, p.slice.Number = m.rand.IntN(15) == 0, m.rand.IntN(3)
	m.pods = append(m.pods, p)
	switch m.rand.IntN(3) {
	case 0:
		m.enqueue(p)
		m.enter(p)
	case 1:
		m.enter(p)
		m.enqueue(p)
	default: // the watch is slow
		m.enqueue(p)
	}
}

// overdue ends the waiting of those whose time is over.
func (m *model) overdue() {
	for _, p := range slices.Clone(m.pods) {
		if p.phase == waits && !p.until.After(m.now) {
			m.unreserve(p)
		}
	}
}

// remove deletes a pod. One that runs may take its time.
func (m *model) remove() {
	p := m.some(func(p *pod) bool { return p.phase != cycling })
	if p == nil {
		return
	}
	if p.phase == bound && m.rand.IntN(2) == 0 {
		p.phase = leaves
		m.enter(p)
		return
	}
	m.delete(p)
}

func (m *model) delete(p *pod) {
	m.note("delete %s", p.uid)
	placed := p.phase
	m.pods = slices.DeleteFunc(m.pods, func(other *pod) bool { return other == p })
	m.forget(p.gang)
	unreserve := func() {
		if placed == waits || placed == binding {
			m.apply(m.cache.Unreserve(p.uid))
		}
	}
	if m.rand.IntN(2) == 0 {
		unreserve()
		m.apply(m.cache.Remove(p.uid, m.now))
	} else {
		m.apply(m.cache.Remove(p.uid, m.now))
		unreserve()
	}
	if placed != pending {
		m.freed()
	}
}

// mistake puts a mistake into a pod that declares its gang itself, or mends one.
func (m *model) mistake() {
	if p := m.some(func(p *pod) bool { return p.known && !p.gang.key.Native }); p != nil {
		p.bad = !p.bad && m.rand.IntN(2) == 0
		m.enter(p)
	}
}

// edit changes what all pods of a gang ask for.
func (m *model) edit() {
	g := m.gangs[m.rand.IntN(len(m.gangs))]
	if g.key.Native {
		return
	}
	g.spec.Min = 1 + m.rand.IntN(g.spec.Total)
	m.note("gang %s asks for %d", g.key, g.spec.Min)
	for _, p := range m.ages(g) { // the oldest last: what it says holds
		m.enter(p)
	}
}

// ages are the pods of a gang that the cache knows, the youngest first.
func (m *model) ages(g *group) []*pod {
	var out []*pod
	for _, p := range m.pods {
		if p.gang == g && p.known {
			out = append(out, p)
		}
	}
	slices.Reverse(out)
	return out
}

// hold puts a scheduling gate on nothing, but takes it off a pod.
func (m *model) hold() {
	if p := m.some(func(p *pod) bool { return p.held && p.known }); p != nil {
		p.held = false
		m.enter(p)
		m.enqueue(p)
	}
}

// resize takes a free place away, or adds one.
func (m *model) resize() {
	if m.rand.IntN(2) == 0 && m.free() > 0 {
		m.places--
		m.note("%d places", m.places)
		return
	}
	m.places++
	m.note("%d places", m.places)
	m.freed()
}

// restart kills the scheduler: who waited has no place, who was being bound may be, and all is read anew.
func (m *model) restart() {
	m.note("restart")
	m.cache, m.timers, m.current = New(), nil, nil
	for _, p := range m.pods {
		if p.phase == binding && m.rand.IntN(2) == 0 {
			p.phase = bound
		}
		if p.phase != bound && p.phase != leaves {
			p.phase = pending
		}
		p.known, p.queued, p.active, p.again, p.rejected, p.seen = false, false, false, false, false, false
	}
	for _, g := range m.gangs {
		g.fromPodGroup, g.satisfied = false, false
	}
	for _, i := range m.rand.Perm(len(m.pods)) {
		m.enter(m.pods[i])
	}
	for _, p := range m.pods {
		if p.phase == pending {
			m.enqueue(p)
		}
	}
}

// podGroup makes, changes or deletes the PodGroup of a native gang.
func (m *model) podGroup() {
	for _, g := range m.gangs {
		if !g.key.Native {
			continue
		}
		g.fromPodGroup = !g.fromPodGroup || m.rand.IntN(2) == 0
		if !g.fromPodGroup {
			m.note("delete PodGroup %s", g.key)
			m.apply(m.cache.RemovePodGroup(g.key, m.now))
			continue
		}
		g.spec.Min = 1 + m.rand.IntN(g.spec.Total)
		m.note("PodGroup %s min %d", g.key, g.spec.Min)
		m.apply(m.cache.SetPodGroup(g.key, g.spec, nil, m.now))
	}
}
