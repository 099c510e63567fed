package ledger

import (
	"crypto/sha256"
	"encoding/binary"
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
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.admit(uid)
}

func (l *Ledger) admit(uid UID) Verdict {
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
		if v.OK = g.plans(uid); !v.OK {
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
	return turn(v, group, uid)
}

// turn says whether it is a pod's turn in a group that can be tried.
func turn(v Verdict, group []*gang, uid UID) Verdict {
	if !strict(group) {
		if lack := lacking(group); len(lack) > 0 && group[0].reached() {
			v.Reason = fmt.Sprintf("gang %s has its minimum and waits for gang %s of its group", v.Gang, lack[0].key)
			return v
		}
		v.OK = true
		return v
	}
	if other := inRound(group); other != nil {
		v.Reason = fmt.Sprintf("gang %s waits for gang %s of its group, which is being placed", v.Gang, other.key)
		return v
	}
	switch leader := lead(group); {
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
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil || l.hurdle(g) != "" {
		return nil
	}
	group, _ := l.group(g)
	if !strict(group) || inRound(group) != nil {
		return nil
	}
	var out []Want
	for _, other := range lacking(group) {
		out = append(out, Want{Gang: other.key, Min: other.spec.Min, Need: other.needs(), Candidates: ids(other.candidates())})
	}
	slices.SortFunc(out, func(a, b Want) int { return compare(a.Gang, b.Gang) })
	return out
}

// Start opens a round: room was found for the pods of a plan, the pod's whole group. The plan names a node where it
// must be that one, and "" where any will do. The pod itself is being tried and is not told to.
func (l *Ledger) Start(uid UID, plan map[UID]string) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil {
		return Change{}
	}
	group, _ := l.group(g)
	if inRound(group) != nil {
		return Change{}
	}
	r := &round{plan: plan}
	var c Change
	for _, other := range lacking(group) {
		other.begin(r)
		r.gangs = append(r.gangs, other)
		for _, dependent := range l.dependents(other) {
			dependent.woken = "" // its leader is refused until the round is over
		}
		for _, m := range other.candidates() {
			if other.plans(m.UID) && m.UID != uid {
				c.Wake = append(c.Wake, m.UID)
			}
		}
	}
	if slices.ContainsFunc(group, (*gang).short) || l.hurdle(g) != "" { // it lost pods while room was looked for
		return l.callOff(r)
	}
	return c
}

// Planned is the node that a pod's round has for it; ok is false where it is in no round, and the node "" where any
// will do.
func (l *Ledger) Planned(uid UID) (node string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.of[uid]; g != nil && g.round != nil {
		node, ok = g.round.plan[uid]
	}
	return node, ok
}

// Pinned says whether the next attempt should name nodes: one that did not was called off.
func (l *Ledger) Pinned(uid UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	return g != nil && g.failures > 0
}

// Reserve enters that a pod got a place in the scheduler's memory. It may bind at once where allowed; otherwise it may
// wait for the others for at most the duration, and must let go where that is 0.
func (l *Ledger) Reserve(uid UID, now time.Time) (allowed bool, wait time.Duration, c Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil {
		return true, 0, Change{}
	}
	m := g.members[uid]
	if m.State != Pending { // somebody else was faster, as the API will say
		return true, 0, Change{}
	}
	group, missing := l.group(g)
	stood := reached(group)
	late, hopeless := late(group, now), missing != nil && !g.alone() || broken(group)
	g.place(m, waiting)
	if g.first.IsZero() {
		g.first = now
	}
	switch {
	case reached(group) && !late && !hopeless:
		return true, 0, l.allow(group, stood, now)
	case g.round == nil && (hopeless || strict(group)): // it was called off since the pod was admitted
		g.place(m, unplaced)
		return false, 0, Change{}
	}
	return false, max(g.first.Add(g.spec.Waiting).Sub(now), 0), Change{}
}

// lastMoment before its time is over a gang is not allowed to bind any more: some of its members might let go before
// they hear of it.
const lastMoment = 100 * time.Millisecond

// late says whether the time of those that wait is over.
func late(group []*gang, now time.Time) bool {
	return slices.ContainsFunc(group, func(g *gang) bool {
		return !g.first.IsZero() && !now.Before(g.first.Add(g.spec.Waiting-min(lastMoment, g.spec.Waiting/10)))
	})
}

// allow lets the members of a group bind that has what it needs, and of groups that waited only for one of its gangs.
func (l *Ledger) allow(group []*gang, stood bool, now time.Time) Change {
	var c Change
	// Most often it is one more pod of a group that stood already, and nothing follows for others.
	news := !stood || slices.ContainsFunc(group, func(g *gang) bool { return !g.satisfied || g.round != nil || g.held[waiting] > 1 })
	for _, g := range group {
		if own, _ := l.group(g); !reached(own) { // it runs, and more of its pods wait for each other
			continue
		}
		if !g.satisfied {
			a := Admission{Gang: g.key}
			if !g.complete.IsZero() {
				a.Waited = now.Sub(g.complete)
			}
			c.Admitted = append(c.Admitted, a)
		}
		g.end()
		g.satisfied, g.failures = true, 0
		if g.held[waiting] > 0 {
			for _, m := range g.holding(waiting) {
				g.place(m, allowed)
				c.Allow = append(c.Allow, m.UID)
			}
		}
		if news {
			g.woken, g.told = "", false
		}
	}
	if news {
		for _, g := range group {
			own, _ := l.group(g)
			c.Wake = append(c.Wake, l.rouse(g, own)...)
			c = merge(c, l.reviewOthers(g, now))
		}
	}
	return c
}

// holding are the members that hold their places in one way, oldest first.
func (g *gang) holding(h hold) []*Member {
	var out []*Member
	for uid, how := range g.reserved {
		if how == h {
			out = append(out, g.members[uid])
		}
	}
	slices.SortFunc(out, older)
	return out
}

// Unreserve enters that a pod lost the place it had in the scheduler's memory, or never got it: it was rejected, waited
// too long, or could not be bound.
func (l *Ledger) Unreserve(uid UID) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil {
		return Change{}
	}
	m, how, over := g.members[uid], g.reserved[uid], g.first.Add(g.spec.Waiting)
	if how != unplaced {
		g.place(m, unplaced)
	}
	switch {
	case g.round != nil && (how == waiting || g.plans(uid)):
		return l.callOff(g.round)
	case how == leaving:
		return l.retry([]*gang{g})
	case how == waiting: // of a gang that is not strict: the others keep their places until their time is over
		if g.held[waiting] == 0 {
			g.yield(over)
		}
		return Change{Later: []UID{uid}, After: shortestPause}
	case how == allowed:
		return Change{Wake: l.stumble(g, uid)}
	}
	return Change{}
}

// Overdue says of a placed pod that its gang did not reach its minimum within its waiting time, "" where there is time
// left or the pod does not wait.
func (l *Ledger) Overdue(uid UID, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil || g.reserved[uid] != waiting || now.Before(g.first.Add(g.spec.Waiting)) {
		return ""
	}
	return fmt.Sprintf("gang %s has %d of the %d places that it needs after its waiting time of %v, and lets them go", g.key, g.counted(), g.spec.Min, g.spec.Waiting)
}

// yield puts a gang that held places in vain behind others, which might fit where it does not. How far is different each
// time and for each gang: of two that let go at once the same one would come first again and again.
func (g *gang) yield(over time.Time) {
	g.failures++
	h := sha256.Sum256(fmt.Append(nil, g.key, g.failures))
	g.since, g.half = over.Add(time.Duration(binary.BigEndian.Uint64(h[:])>>1)%(10*shortestPause)), false
}

// stumble finds who is to be tried after a pod could not be bound, which the queue tries again by itself: its gang, and
// those in whose groups it is, may lack their minimum again.
func (l *Ledger) stumble(g *gang, uid UID) []UID {
	var out []UID
	for _, other := range append(l.dependents(g), g) {
		if l.hurdle(other) != "" {
			other.woken, other.told = "", false
			continue
		}
		group, _ := l.group(other)
		out = append(out, l.rouse(other, group)...)
	}
	return slices.DeleteFunc(out, func(other UID) bool { return other == uid })
}

// Fail enters that a pod of a round found no place.
func (l *Ledger) Fail(uid UID) Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.of[uid]
	if g == nil || !g.plans(uid) {
		return Change{}
	}
	return l.callOff(g.round)
}

// callOff ends a round: who waits lets go, and when all have, the leader tries again after a pause.
func (l *Ledger) callOff(r *round) Change {
	var c Change
	for _, g := range r.gangs {
		if g.round != r {
			continue
		}
		g.end()
		g.woken = ""
		g.failures++
		group, _ := l.group(g)
		for _, m := range g.holding(waiting) {
			// A gang that is not strict may have held places before a strict one that names it began the round.
			if _, ok := r.plan[m.UID]; ok || strict(group) {
				g.place(m, leaving)
				c.Reject = append(c.Reject, m.UID)
			}
		}
	}
	return merge(c, l.retry(r.gangs))
}

// retry finds who tries again, after a pause, for gangs that let go and for those in whose groups they are. Nobody does
// before all have let go.
func (l *Ledger) retry(gangs []*gang) Change {
	var c Change
	for _, called := range gangs {
		for _, g := range append(l.dependents(called), called) {
			group, _ := l.group(g)
			m := lead(group)
			if m == nil || slices.Contains(c.Later, m.UID) || inRound(group) != nil || l.hurdle(g) != "" {
				continue
			}
			wake(g, group, m)
			c.Later = append(c.Later, m.UID)
			c.After = max(c.After, min(shortestPause<<min(max(called.failures-1, 0), 10), longestPause))
		}
	}
	return c
}
