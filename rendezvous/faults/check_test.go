package faults

import (
	"fmt"
	"slices"
)

// sighting is a world as one agent reported it.
type sighting struct {
	Version, Rank, Size, Base, Total int
	Master                           string
}

// report is one line of an agent: it is in a final world, that world is over, or the agent ended.
type report struct {
	agent string
	event string // final, over, end
	world sighting
	note  string
}

// checker compares all reports of agents with the guarantees of a rendezvous.
type checker struct {
	min, max int
	worlds   map[int]map[string]sighting // by version, then agent
	at       map[string]int              // the last version that an agent was in
	working  map[string]bool             // the agent's world is not over yet, as far as it knows
}

func newChecker(least, most int) *checker {
	return &checker{
		min: least, max: most, worlds: map[int]map[string]sighting{}, at: map[string]int{},
		working: map[string]bool{},
	}
}

// step takes a report, and returns which guarantee it violates.
func (c *checker) step(r report) error {
	switch r.event {
	case "over":
		c.working[r.agent] = false
		return nil
	case "end":
		delete(c.working, r.agent)
		delete(c.at, r.agent)
		return nil
	}
	w := r.world
	if c.working[r.agent] {
		return fmt.Errorf("%s is in version %d without a report that version %d is over", r.agent, w.Version,
			c.at[r.agent])
	}
	if last, ok := c.at[r.agent]; ok && w.Version <= last {
		return fmt.Errorf("%s is in version %d after version %d", r.agent, w.Version, last)
	}
	c.at[r.agent], c.working[r.agent] = w.Version, true
	if w.Size < c.min || w.Size > c.max {
		return fmt.Errorf("version %d has %d agents, not %d to %d", w.Version, w.Size, c.min, c.max)
	}
	if w.Rank < 0 || w.Rank >= w.Size || w.Base < 0 || w.Base >= w.Total {
		return fmt.Errorf("%s has rank %d of %d and its workers begin at %d of %d", r.agent, w.Rank, w.Size, w.Base,
			w.Total)
	}
	seen := c.worlds[w.Version]
	if seen == nil {
		seen = map[string]sighting{}
		c.worlds[w.Version] = seen
	}
	for other, o := range seen {
		if o.Size != w.Size || o.Total != w.Total || o.Master != w.Master {
			return fmt.Errorf("version %d is %+v to %s and %+v to %s", w.Version, o, other, w, r.agent)
		}
		if o.Rank == w.Rank {
			return fmt.Errorf("version %d: %s and %s both have rank %d", w.Version, other, r.agent, w.Rank)
		}
	}
	seen[r.agent] = w
	return nil
}

// converged says whether all these agents work in one world that has a place for each of them, or for as many as it may
// have.
func (c *checker) converged(agents []string) bool {
	version, in := 0, 0
	for _, a := range agents {
		if c.working[a] {
			version = max(version, c.at[a])
		}
	}
	var ranks []int
	for _, a := range agents {
		if c.working[a] && c.at[a] == version {
			in++
			ranks = append(ranks, c.worlds[version][a].Rank)
		} else if c.working[a] {
			return false
		}
	}
	if in != min(len(agents), c.max) {
		return false
	}
	slices.Sort(ranks)
	for i, r := range ranks {
		if i != r {
			return false
		}
	}
	return c.sizeOf(version) == in
}

func (c *checker) sizeOf(version int) int {
	for _, w := range c.worlds[version] {
		return w.Size
	}
	return 0
}
