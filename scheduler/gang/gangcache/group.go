package gangcache

import (
	"fmt"
	"slices"
	"time"
)

// group is the gangs that start together with this one, itself first: those that it names, those that they name, and so
// on. The first of them that has no pods is missing. A group that grows too large is cut off, and too large to place.
func (c *Cache) group(g *gang) (gangs []*gang, missing *Key) {
	gangs = []*gang{g}
	for i := 0; i < len(gangs) && len(gangs) <= MaxGroups; i++ {
		for _, key := range gangs[i].spec.Groups {
			switch other := c.gangs[key]; {
			case other == nil || len(other.members) == 0:
				if missing == nil && key != g.key {
					missing = &key
				}
			case !slices.Contains(gangs, other) && consents(other, gangs[i]):
				gangs = append(gangs, other)
			}
		}
	}
	return gangs, missing
}

// consents reports whether a gang belongs to the group of another gang that names it. Gangs of two namespaces must name
// each other. Otherwise a user of one namespace could have pods of the other evicted, or protect pods from eviction.
func consents(named, by *gang) bool {
	return named.key.Namespace == by.key.Namespace || slices.Contains(named.spec.Groups, by.key)
}

// findUnwilling returns a gang of a group, and a gang of another namespace that it names and that does not name it.
func findUnwilling(gangs map[Key]*gang, group []*gang) (by, named *gang) {
	for _, g := range group {
		for _, key := range g.spec.Groups {
			if other := gangs[key]; other != nil && len(other.members) > 0 && !consents(other, g) {
				return g, other
			}
		}
	}
	return nil, nil
}

// dependents are the other gangs in whose groups a gang is.
func (c *Cache) dependents(g *gang) []*gang {
	if len(c.naming[g.key]) == 0 {
		return nil
	}
	var out []*gang
	seen := map[*gang]bool{g: true}
	keys := []Key{g.key}
	for i := 0; i < len(keys); i++ {
		for other := range c.naming[keys[i]] {
			if !seen[other] {
				seen[other] = true
				out, keys = append(out, other), append(keys, other.key)
			}
		}
	}
	slices.SortFunc(out, func(a, b *gang) int { return compare(a.key, b.key) })
	return out
}

// blockingReason is why a gang's group cannot be tried at all, "" where it can.
func (c *Cache) blockingReason(g *gang) string {
	group, missing := c.group(g)
	for _, other := range group {
		if err := other.broken(); err != nil {
			return fmt.Sprintf("gang %s is not placed: %s", other.key, err)
		}
	}
	if missing != nil && !g.alone() { // one that has done its work and gone holds up nobody
		return fmt.Sprintf("gang %s waits for gang %s of its group, which has no pods", g.key, *missing)
	}
	if by, named := findUnwilling(c.gangs, group); by != nil && !g.alone() {
		return fmt.Sprintf(
			"gang %s waits for gang %s of its group, which does not name it: of two namespaces both must name each "+
				"other", by.key, named.key,
		)
	}
	if len(group) > MaxGroups {
		return fmt.Sprintf("gang %s is not placed: %s", g.key, tooMany)
	}
	for _, other := range group {
		if other.held[leaving] > 0 {
			return fmt.Sprintf("gang %s lets go of its places before it tries again", other.key)
		}
	}
	for _, other := range lacking(group) {
		if !other.gathered() {
			return fmt.Sprintf(
				"gang %s waits for its pods: %d of at least %d are there", other.key, other.pending+other.counted(),
				other.spec.Min,
			)
		}
	}
	return ""
}

// strict says whether one member without a place makes all others of the group let go.
func strict(group []*gang) bool {
	return slices.ContainsFunc(group, func(g *gang) bool { return g.spec.Mode != NonStrict })
}

// lacking are the gangs of a group that need more places, as the first of them sees it: one that runs holds up no other
// because its policy does not count what runs.
func lacking(group []*gang) []*gang {
	var out []*gang
	for i, g := range group {
		if !g.reached() && (i == 0 || !g.runs()) {
			out = append(out, g)
		}
	}
	return out
}

// bereft says whether a gang that stood once has lost pods that its minimum needs, and has others that want their
// places.
func (g *gang) bereft() bool { return g.reached() && g.counted() < g.spec.Min && g.pending > 0 }

// defersTo is a gang of its group whose lost pods are made good before this gang, which has its minimum, gets more:
// what is beyond a minimum is of no use while another one lacks.
func (g *gang) defersTo(group []*gang) *gang {
	if g.counted() < g.spec.Min {
		return nil
	}
	if i := slices.IndexFunc(group, (*gang).bereft); i >= 0 {
		return group[i]
	}
	return nil
}

// reached says whether every gang of a group has what it needs.
func reached(group []*gang) bool { return len(lacking(group)) == 0 }

// broken says whether a gang of a group must not be placed.
func broken(group []*gang) bool {
	return slices.ContainsFunc(group, func(g *gang) bool { return g.broken() != nil })
}

// inRound is a gang of a group that is being placed, nil where none is.
func inRound(group []*gang) *gang {
	if i := slices.IndexFunc(group, func(g *gang) bool { return g.round != nil }); i >= 0 {
		return group[i]
	}
	return nil
}

// lead is the one pod that is tried on behalf of a group: the oldest that wants a place in a gang that needs more.
func lead(group []*gang) *Member {
	var first *Member
	for _, g := range lacking(group) {
		if m := g.candidate(); m != nil && (first == nil || older(m, first) < 0) {
			first = m
		}
	}
	return first
}

// review finds what follows after a gang changed, for itself and for those in whose groups it is.
func (c *Cache) review(g *gang, now time.Time) Change {
	return merge(c.reconsider(g, now), c.reviewOthers(g, now))
}

func (c *Cache) reviewOthers(g *gang, now time.Time) Change {
	var change Change
	for _, other := range c.dependents(g) {
		if len(g.members) == 0 || !alike(other, g) {
			change = merge(change, c.reconsider(other, now))
		}
	}
	return change
}

// alike says whether two gangs see the same group, so that what follows for one follows for the other: not where one
// may run and lack pods all the same.
func alike(a, b *gang) bool {
	return a == b || len(a.spec.Groups) > 0 && a.spec.Policy != OnlyWaiting && b.spec.Policy != OnlyWaiting &&
		slices.Equal(a.spec.Groups, b.spec.Groups)
}

func (c *Cache) reconsider(g *gang, now time.Time) Change {
	group, _ := c.group(g)
	if slices.ContainsFunc(group, (*gang).short) || c.blockingReason(g) != "" {
		for _, other := range group {
			if alike(other, g) {
				other.woken, other.notified = "", false
			}
		}
		if g.round != nil {
			return c.callOff(g.round)
		}
		return Change{}
	}
	for _, other := range group {
		if other.complete.IsZero() {
			other.complete, other.since = now, now
		}
		// Another scheduler left off in the middle: nobody goes first.
		other.half = !other.satisfied && !other.reached() && (other.half || other.bound > 0)
	}
	if reached(group) && !late(group, now) && slices.ContainsFunc(group, func(other *gang) bool {
		return alike(other, g) && other.held[waiting] > 0
	}) {
		return c.allow(group, false, now) // the gang asks for less than before
	}
	return Change{Wake: c.membersToWake(g, group)}
}

// membersToWake finds the members of a group without blocking reason that may be tried and were not notified yet.
func (c *Cache) membersToWake(g *gang, group []*gang) []UID {
	switch {
	case inRound(group) != nil:
		g.woken = ""
	case !strict(group) || reached(group): // one by one
		var out []UID
		lack := lacking(group)
		for _, other := range group {
			switch {
			case !alike(other, g): // it sees to itself
			case other.defersTo(group) != nil:
				other.notified = false
			case len(lack) > 0 && other.reached(): // it waits for those that lack pods
				other.notified = false
			case !other.notified:
				other.notified = true
				out = append(out, ids(other.candidates())...)
			}
		}
		return out
	default:
		for _, other := range group {
			other.notified = false
		}
		if m := lead(group); m != nil && g.woken != m.UID {
			wake(g, group, m)
			return []UID{m.UID}
		}
	}
	return nil
}

// wake records who was woken on behalf of a gang's group.
func wake(g *gang, group []*gang, m *Member) {
	for _, other := range group {
		if alike(other, g) {
			other.woken = m.UID
		}
	}
}
