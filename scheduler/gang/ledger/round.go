package ledger

import (
	"fmt"
	"slices"
	"time"
)

// Verdict says whether a pod may be tried, and why not.
type Verdict struct {
	Gang   Key
	OK     bool
	Reason string
}

// Admit says whether a pod may be tried now: any pod without a gang; of a gang that lacks its minimum the one that
// leads it, or those of a round that found room.
func (l *Ledger) Admit(uid UID) Verdict {
	l.mu.RLock()
	defer l.mu.RUnlock()
	g := l.of[uid]
	if g == nil {
		return Verdict{OK: true}
	}
	v := Verdict{Gang: g.key}
	if err := g.broken(); err != nil {
		v.Reason = fmt.Sprintf("gang %s is not placed: %s", g.key, err)
		return v
	}
	if g.round != nil {
		if _, v.OK = g.round.plan[uid]; !v.OK {
			v.Reason = fmt.Sprintf("gang %s is placing the %d pods that it needs first", g.key, g.spec.Min)
		}
		return v
	}
	group, _ := l.group(g)
	if g.alone() && reached(group) {
		v.OK = true
		return v
	}
	if v.Reason = l.hurdle(g); v.Reason != "" {
		return v
	}
	return l.turn(v, group, uid)
}

// turn says whether it is a pod's turn in a group that can be tried.
func (l *Ledger) turn(v Verdict, group []*gang, uid UID) Verdict {
	if !strict(group) {
		if v.OK = !l.gangs[v.Gang].resting; !v.OK {
			v.Reason = fmt.Sprintf("gang %s held places for its waiting time and gives others a turn", v.Gang)
		}
		return v
	}
	_, leader := lead(group)
	switch {
	case leader == nil: // all have what they need: this pod is one more
		v.OK = true
	case leader.UID == uid:
		v.OK = true
	default:
		v.Reason = fmt.Sprintf("gang %s waits for room, which pod %s is looking for on behalf of all", v.Gang, leader.Name)
	}
	return v
}

// Want is what one gang asks of an attempt.
type Want struct {
	Gang       Key
	Min, Need  int // of the whole gang, and still missing
	Candidates []UID
}

// Wanted is what must be found room for, together, before a pod may take its place: nothing where it has no gang, its
// gang stands without it, has found room already, or holds places while it looks (NonStrict).
func (l *Ledger) Wanted(uid UID) []Want {
	l.mu.RLock()
	defer l.mu.RUnlock()
	g := l.of[uid]
	if g == nil || g.round != nil || l.hurdle(g) != "" {
		return nil
	}
	group, _ := l.group(g)
	if !strict(group) {
		return nil
	}
	var out []Want
	for _, other := range group {
		if n := other.needs(); n > 0 {
			out = append(out, Want{Gang: other.key, Min: other.spec.Min, Need: n, Candidates: ids(other.candidates())})
		}
	}
	return out
}

// Start opens a round: room was found for the pods of a plan, the pod's whole group. The plan names a node where it
// must be that one, and "" where any will do.
func (l *Ledger) Start(uid UID, plan map[UID]string) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil {
		return Change{}
	}
	r := &round{plan: plan}
	group, _ := l.group(g)
	var c Change
	for _, other := range group {
		if other.reached() {
			continue
		}
		other.round, other.letting = r, false
		for _, m := range other.candidates() {
			if _, ok := plan[m.UID]; ok {
				c.Wake = append(c.Wake, m.UID)
			}
		}
	}
	return c
}

// Planned is the node that a pod's round has for it; ok is false where it is in no round, and the node "" where any
// will do.
func (l *Ledger) Planned(uid UID) (node string, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if g := l.of[uid]; g != nil && g.round != nil {
		node, ok = g.round.plan[uid]
	}
	return node, ok
}

// Pinned says whether the next attempt should name nodes: one that did not was called off.
func (l *Ledger) Pinned(uid UID) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	g := l.of[uid]
	return g != nil && g.failures > 0
}

// Reserve enters that a pod got a place in the scheduler's memory. It may bind at once where allowed; otherwise it may
// wait for the others for at most the duration.
func (l *Ledger) Reserve(uid UID, now time.Time) (allowed bool, wait time.Duration, c Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil {
		return true, 0, Change{}
	}
	m := g.members[uid]
	g.count(m, -1)
	g.reserved[uid] = false
	g.count(m, 1)
	if g.leader == m {
		g.leader = nil
	}
	if g.first.IsZero() {
		g.first = now
	}
	group, missing := l.group(g)
	if missing == nil && reached(group) {
		c = l.allow(group, now)
		return true, 0, c
	}
	return false, max(g.first.Add(g.spec.Waiting).Sub(now), 0), Change{}
}

// allow lets the members of a group bind that has what it needs, and of groups that waited only for one of its gangs.
func (l *Ledger) allow(group []*gang, now time.Time) Change {
	var c Change
	for _, g := range group {
		if !g.admitted {
			g.admitted = true
			c.Admitted = append(c.Admitted, Admission{Gang: g.key, Waited: now.Sub(g.complete)})
		}
		g.satisfied, g.round, g.first, g.failures, g.woken = true, nil, time.Time{}, 0, ""
		for uid, allowed := range g.reserved {
			if !allowed {
				g.reserved[uid] = true
				c.Allow = append(c.Allow, uid)
			}
		}
		c.Wake = append(c.Wake, ids(g.candidates())...)
	}
	for _, other := range l.gangs {
		if other.first.IsZero() || len(other.spec.Groups) == 0 || slices.Contains(group, other) {
			continue
		}
		if waiting, missing := l.group(other); missing == nil && reached(waiting) {
			c = merge(c, l.allow(waiting, now))
		}
	}
	return c
}

// Unreserve enters that a pod lost the place it had in the scheduler's memory: it was rejected, waited too long, or
// could not be bound.
func (l *Ledger) Unreserve(uid UID) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil {
		return Change{}
	}
	allowed, placed := g.reserved[uid]
	if !placed {
		return Change{}
	}
	m := g.members[uid]
	g.count(m, -1)
	delete(g.reserved, uid)
	g.count(m, 1)
	g.leader = nil
	if allowed {
		return Change{}
	}
	c := l.callOff(g)
	if group, _ := l.group(g); !strict(group) {
		c.Later = []UID{uid}
	}
	return c
}

// Retry ends the pause that a Change asked for, and says which of its pods may be tried now.
func (l *Ledger) Retry(uids []UID) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uid := range uids {
		if g := l.of[uid]; g != nil {
			g.resting = false
		}
	}
	return Change{Wake: uids}
}

// Overdue says of a placed pod that its gang did not reach its minimum within its waiting time, "" where there is time
// left or the pod does not wait.
func (l *Ledger) Overdue(uid UID, now time.Time) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	g := l.of[uid]
	if g == nil {
		return ""
	}
	allowed, placed := g.reserved[uid]
	if !placed || allowed || g.first.IsZero() || now.Before(g.first.Add(g.spec.Waiting)) {
		return ""
	}
	return fmt.Sprintf("gang %s has %d of the %d places that it needs after its waiting time of %v, and lets them go", g.key, g.counted(), g.spec.Min, g.spec.Waiting)
}

// Fail enters that a pod found no place.
func (l *Ledger) Fail(uid UID) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil || g.round == nil {
		return Change{}
	}
	return l.callOff(g)
}

// callOff ends a strict group's round: who waits lets go, and the leader tries again after a pause. Members of a group
// that is not strict keep their places until their time is over.
func (l *Ledger) callOff(g *gang) Change {
	group, _ := l.group(g)
	var c Change
	c.After = min(shortestPause<<min(g.failures, 10), longestPause)
	if !strict(group) {
		if !g.resting { // or it would take the same places again before anybody else could
			g.resting = true
			g.failures++
		}
		if !g.waiting() {
			g.first = time.Time{}
		}
		return c
	}
	first := !g.letting
	for _, other := range group {
		other.round, other.woken, other.letting = nil, "", true
		for uid, allowed := range other.reserved {
			if !allowed && first {
				c.Reject = append(c.Reject, uid)
			}
		}
		if !other.waiting() {
			other.first, other.letting = time.Time{}, false
		}
	}
	if _, m := lead(group); m != nil && (first || len(c.Reject) == 0) {
		c.Later = []UID{m.UID}
	}
	if first {
		g.failures++
	}
	return c
}

// waiting says whether members hold places that they may not bind to yet.
func (g *gang) waiting() bool {
	for _, allowed := range g.reserved {
		if !allowed {
			return true
		}
	}
	return false
}
