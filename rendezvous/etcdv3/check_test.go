package etcdv3

import (
	"maps"
	"slices"
)

// check: one membership per version, later ones with higher numbers, every rank taken once, no more and no fewer than
// may be.
func (s *sim) check(d doc) {
	for v := range s.finals {
		if v >= d.Version {
			s.fail("version %d is formed after %d", d.Version, v)
		}
	}
	s.finals[d.Version] = d
	s.versions++
	ranks := map[int]bool{}
	for id, p := range s.places[d.Dir] {
		ranks[p.Rank] = p.Rank >= 0 && p.Rank < d.Size
		if pred, ok := s.places[d.Dir][p.Pred]; ok != (p.Rank > 0) || ok &&
			(pred.Rank != p.Rank-1 || pred.Created >= p.Created) {
			s.fail("%s watches %q, which is not the older one of the rank below, in %v", id, p.Pred, s.places[d.Dir])
		}
	}
	s.checkNeighbours(d)
	n := len(s.places[d.Dir])
	if n != d.Size || n < s.rules.min || n > s.rules.max || len(ranks) != n ||
		slices.Contains(slices.Collect(maps.Values(ranks)), false) {
		s.fail("version %d of %+v has %v", d.Version, s.rules, s.places[d.Dir])
	}
}

// checkNeighbours: each is watched by another, as that very agent, where it can be, and nobody watches many.
func (s *sim) checkNeighbours(d doc) {
	watched := map[string]bool{}
	for id, p := range s.places[d.Dir] {
		for _, n := range p.Neighbours {
			watched[n.ID] = true
			if n.ID == id || n.Created != s.places[d.Dir][n.ID].Created || len(p.Neighbours) > 2 {
				s.fail("%s watches %+v in %v", id, p.Neighbours, s.places[d.Dir])
			}
		}
	}
	for id, p := range s.places[d.Dir] {
		e, alive := s.entries[id]
		if alive && e.created == p.Created && d.Size > 1 && watched[id] != (e.entry.Listen != 0) {
			s.fail("%s, which listens at %d, is watched: %t, in %v", id, e.entry.Listen, watched[id], s.places[d.Dir])
		}
	}
}
