package etcdv3

import (
	"slices"
	"time"
)

// evict is what an agent does that finds another one gone, rightly or not. One that is alive notices it by the next
// world, or when it renews its lease.
func (n *node) evict(o neighbour) {
	s := n.s
	if there := s.agents[o.ID]; !n.dead && !n.ended && there != nil && there.created == o.Created {
		s.note("%s evicts %s", n.id, o.ID)
		s.remove(there)
		s.evicted++
		s.after(time.Duration(s.IntN(int(8*time.Second))), func() { s.lose(there) })
	}
}

// missed has those that watch an agent evict it after a while.
func (s *sim) missed(id string, created int64, after time.Duration) {
	for _, o := range s.nodes {
		if n := (neighbour{id, created, id + ":1"}); slices.Contains(o.near, n) {
			s.after(time.Duration(s.IntN(int(after))), func() { o.evict(n) })
		}
	}
}

// isolate cuts an agent off from all others and not from the store, for a while.
func (s *sim) isolate(n *node) {
	s.note("%s is cut off", n.id)
	n.cutOff = true
	s.after(time.Duration(s.IntN(int(6*time.Second))), func() { n.cutOff = false })
	s.silent(n, 3*time.Second)
}

// silent has an agent and those that are connected to it look for each other after a while.
func (s *sim) silent(n *node, after time.Duration) {
	me := neighbour{n.id, n.created, n.id + ":1"}
	for _, o := range n.near {
		s.after(time.Duration(s.IntN(int(after))), func() { n.look(o) })
	}
	for _, o := range s.nodes {
		if slices.Contains(o.near, me) {
			s.after(time.Duration(s.IntN(int(after))), func() { o.look(me) })
		}
	}
}

// look is what an agent does once the connection to another has broken in silence. It asks all others for a witness,
// who are no more than real agents ask.
func (n *node) look(o neighbour) {
	s := n.s
	there := s.agents[o.ID]
	if there == nil || there.created != o.Created || !n.cutOff && !there.cutOff && !there.dead {
		return
	}
	asked, answered := 0, 0
	for id, a := range s.entries {
		if !a.entry.elsewhere(n.id, o.ID) {
			continue
		}
		asked++
		if m := s.agents[id]; !n.cutOff && !m.cutOff && !m.dead {
			answered++
		}
	}
	if asked == 0 || answered > 0 {
		n.evict(o)
	}
}
