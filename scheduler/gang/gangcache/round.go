package gangcache

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
	Member bool // the pod has a gang
	OK     bool
	Reason string
}

// Admit says whether a pod may be tried now: any pod without a gang; of a gang that lacks its minimum the one that
// leads it, or those of a round that found room.
func (c *Cache) Admit(uid UID) Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.admit(uid)
}

func (c *Cache) admit(uid UID) Verdict {
	g := c.of[uid]
	if g == nil {
		return Verdict{OK: true}
	}
	v := Verdict{Gang: g.key, Member: true}
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
	group, _ := c.group(g)
	if other := g.defersTo(group); other != nil {
		v.Reason = fmt.Sprintf("gang %s has its minimum and waits for gang %s of its group, which has lost pods",
			v.Gang, other.key)
		return v
	}
	if g.alone() && reached(group) {
		v.OK = true
		return v
	}
	if v.Reason = c.blockingReason(g); v.Reason != "" {
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
		v.Reason = fmt.Sprintf(
			"gang %s waits for room, which pod %s is looking for on behalf of all", v.Gang, leader.Name,
		)
	}
	return v
}

// Want is what one gang asks of an attempt.
type Want struct {
	Gang       Key
	Min, Need  int // of the whole gang, and still missing
	Candidates []UID
	// Layers are those in which the gang gathers, and Sites where members are that gather with it.
	Layers []Layer
	Sites  []Site
	// Alone says that the gang stands, or holds places, without the one candidate. Company would gather with it.
	Alone   bool
	Company []UID
}

// Attempt is what a pod's scheduling cycle must know of its gang, all of one moment.
type Attempt struct {
	Verdict
	// Wants is what must be found room for, together, before the pod may take its place: nothing where it may not be
	// tried or has no gang, or its gang has found room already. A pod whose gang stands without it, or holds places
	// while it looks (NonStrict), asks for its own place only, and only where the gang gathers.
	Wants []Want
	// Pin says that the plan should name nodes: a round that did not was called off.
	Pin bool
	// Node is what the pod's round has for it where it is Planned; "" where any node will do.
	Node    string
	Planned bool
}

// Attempt returns what the cycle of a pod must know.
func (c *Cache) Attempt(uid UID) Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := Attempt{Verdict: c.admit(uid)}
	g := c.of[uid]
	if g == nil {
		return a
	}
	if a.OK {
		a.Wants = c.wanted(g)
	}
	a.Pin = g.failures > 0
	a.Node, a.Planned = g.nodeOf(uid)
	if a.OK && !a.Planned && len(a.Wants) == 0 && len(g.spec.Layers) > 0 {
		a.Wants = []Want{c.alone(g, g.members[uid])}
	}
	return a
}

func (c *Cache) wanted(g *gang) []Want {
	if c.blockingReason(g) != "" {
		return nil
	}
	group, _ := c.group(g)
	if !strict(group) || inRound(group) != nil {
		return nil
	}
	var out []Want
	for _, other := range lacking(group) {
		w := Want{Gang: other.key, Min: other.spec.Min, Need: other.needs(), Candidates: ids(other.candidates())}
		if w.Layers = other.spec.Layers; len(w.Layers) > 0 {
			w.Sites = sitesOf(peers(group, other), nil)
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Want) int { return compare(a.Gang, b.Gang) })
	return out
}

// nodeOf is the node that the gang's round has for a pod; ok is false where it is in no round.
func (g *gang) nodeOf(uid UID) (node string, ok bool) {
	if g.round == nil {
		return "", false
	}
	node, ok = g.round.plan[uid]
	return node, ok
}

// Start opens a round: room was found for the pods of a plan, the pod's whole group. The plan names a node where it
// must be that one, and "" where any will do. The pod itself is being tried and is not woken; node is the one that the
// round has for it, "" where any will do or the round was called off at once.
func (c *Cache) Start(uid UID, plan map[UID]string) (node string, change Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[uid]
	if g == nil {
		return "", Change{}
	}
	change = c.start(g, uid, plan)
	node, _ = g.nodeOf(uid)
	return node, change
}

func (c *Cache) start(g *gang, uid UID, plan map[UID]string) Change {
	group, _ := c.group(g)
	if inRound(group) != nil {
		return Change{}
	}
	r := &round{plan: plan}
	var change Change
	for _, other := range lacking(group) {
		other.begin(r)
		r.gangs = append(r.gangs, other)
		for _, dependent := range c.dependents(other) {
			dependent.woken = "" // its leader is refused until the round is over
		}
		for _, m := range other.candidates() {
			if other.plans(m.UID) && m.UID != uid {
				change.Wake = append(change.Wake, m.UID)
			}
		}
	}
	// It lost pods while room was looked for.
	if slices.ContainsFunc(group, (*gang).short) || c.blockingReason(g) != "" {
		return c.callOff(r)
	}
	return change
}

// Reservation is what a pod with a place in the scheduler's memory may do: bind at once where Allowed, else Wait for
// the others for at most that long, and let go where that is 0.
type Reservation struct {
	Gang    Key
	Allowed bool
	Wait    time.Duration
	Change  Change
}

// Reserve records that a pod got a place on a node in the scheduler's memory.
func (c *Cache) Reserve(uid UID, node string, now time.Time) Reservation {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[uid]
	if g == nil || g.members[uid].State != Pending { // somebody else was faster, as the API will say
		return Reservation{Allowed: true}
	}
	m := g.members[uid]
	group, missing := c.group(g)
	stood := reached(group) && !slices.ContainsFunc(group, (*gang).bereft)
	late, hopeless := late(group, now), missing != nil && !g.alone() || broken(group)
	m.Node = node
	g.place(m, waiting)
	if g.first.IsZero() {
		g.first = now
	}
	switch {
	case reached(group) && !late && !hopeless:
		return Reservation{Gang: g.key, Allowed: true, Change: c.allow(group, stood, now)}
	case g.round == nil && (hopeless || strict(group)): // it was called off since the pod was admitted
		g.place(m, unplaced)
		return Reservation{Gang: g.key}
	}
	return Reservation{Gang: g.key, Wait: max(g.first.Add(g.spec.Waiting).Sub(now), 0)}
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
func (c *Cache) allow(group []*gang, stood bool, now time.Time) Change {
	var change Change
	// Most often it is one more pod of a group that stood already, and nothing follows for others.
	news := !stood || slices.ContainsFunc(group, func(g *gang) bool {
		return !g.satisfied || g.round != nil || g.held[waiting] > 1
	})
	for _, g := range group {
		if own, _ := c.group(g); !reached(own) { // it runs, and more of its pods wait for each other
			continue
		}
		if !g.satisfied {
			a := Admission{Gang: g.key}
			if !g.complete.IsZero() {
				a.Waited = now.Sub(g.complete)
			}
			change.Admitted = append(change.Admitted, a)
		}
		g.end()
		g.satisfied, g.failures = true, 0
		if g.held[waiting] > 0 {
			for _, m := range g.holding(waiting) {
				g.place(m, allowed)
				change.Allow = append(change.Allow, m.UID)
			}
		}
		if news {
			g.woken, g.notified = "", false
		}
	}
	if news {
		for _, g := range group {
			own, _ := c.group(g)
			change.Wake = append(change.Wake, c.membersToWake(g, own)...)
			change = merge(change, c.reviewOthers(g, now))
		}
	}
	return change
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

// Unreserve records that a pod lost the place it had in the scheduler's memory, or never got it: it was rejected,
// waited too long, or could not be bound.
func (c *Cache) Unreserve(uid UID) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[uid]
	if g == nil {
		return Change{}
	}
	m, how, over := g.members[uid], g.reserved[uid], g.first.Add(g.spec.Waiting)
	if how != unplaced {
		g.place(m, unplaced)
	}
	switch {
	case g.round != nil && (how == waiting || g.plans(uid)):
		return c.callOff(g.round)
	case how == leaving:
		return c.retry([]*gang{g})
	case how == waiting: // of a gang that is not strict: the others keep their places until their time is over
		if g.held[waiting] == 0 {
			g.yield(over)
		}
		return Change{Later: []UID{uid}, After: shortestPause}
	case how == allowed:
		return Change{Wake: c.wakeAfterFailedBind(g, uid)}
	}
	return Change{}
}

// Overdue says of a placed pod that its gang did not reach its minimum within its waiting time, "" where there is time
// left or the pod does not wait.
func (c *Cache) Overdue(uid UID, now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[uid]
	if g == nil || g.reserved[uid] != waiting || now.Before(g.first.Add(g.spec.Waiting)) {
		return ""
	}
	return fmt.Sprintf(
		"gang %s has %d of the %d places that it needs after its waiting time of %v, and lets them go", g.key,
		g.counted(), g.spec.Min, g.spec.Waiting,
	)
}

// yield puts a gang that held places in vain behind others, which might fit where it does not. How far is different
// each time and for each gang: of two that let go at once the same one would come first again and again.
func (g *gang) yield(over time.Time) {
	g.failures++
	h := sha256.Sum256(fmt.Append(nil, g.key, g.failures))
	g.since, g.half = over.Add(time.Duration(binary.BigEndian.Uint64(h[:])>>1)%(10*shortestPause)), false
}

// wakeAfterFailedBind finds who is to be tried after a pod could not be bound, which the queue tries again by itself:
// its gang, and those in whose groups it is, may lack their minimum again.
func (c *Cache) wakeAfterFailedBind(g *gang, uid UID) []UID {
	var out []UID
	for _, other := range append(c.dependents(g), g) {
		if c.blockingReason(other) != "" {
			other.woken, other.notified = "", false
			continue
		}
		group, _ := c.group(other)
		out = append(out, c.membersToWake(other, group)...)
	}
	return slices.DeleteFunc(out, func(other UID) bool { return other == uid })
}

// Fail records that a pod of a round found no place.
func (c *Cache) Fail(uid UID) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[uid]
	if g == nil || !g.plans(uid) {
		return Change{}
	}
	return c.callOff(g.round)
}

// callOff ends a round: who waits lets go, and when all have, the leader tries again after a pause.
func (c *Cache) callOff(r *round) Change {
	var change Change
	for _, g := range r.gangs {
		if g.round != r {
			continue
		}
		g.end()
		g.woken = ""
		g.failures++
		group, _ := c.group(g)
		for _, m := range g.holding(waiting) {
			// A gang that is not strict may have held places before a strict one that names it began the round.
			if _, ok := r.plan[m.UID]; ok || strict(group) {
				g.place(m, leaving)
				change.Reject = append(change.Reject, m.UID)
			}
		}
	}
	return merge(change, c.retry(r.gangs))
}

// retry finds who tries again, after a pause, for gangs that let go and for those in whose groups they are. Nobody does
// before all have let go.
func (c *Cache) retry(gangs []*gang) Change {
	var change Change
	for _, called := range gangs {
		for _, g := range append(c.dependents(called), called) {
			group, _ := c.group(g)
			m := lead(group)
			if m == nil || slices.Contains(change.Later, m.UID) || inRound(group) != nil || c.blockingReason(g) != "" {
				continue
			}
			wake(g, group, m)
			change.Later = append(change.Later, m.UID)
			change.After = max(change.After, min(shortestPause<<min(max(called.failures-1, 0), 10), longestPause))
		}
	}
	return change
}
