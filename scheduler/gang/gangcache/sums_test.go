package gangcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sums are the counters of a gang.
type sums struct {
	Bad, Pending, Planned, Bound, Failed, Waiting, Allowed, Leaving int
}

// checkSums holds the sums of every gang against a recount, and what was looked up earlier against looking it up now.
func checkSums(t *testing.T, cache *Cache) {
	t.Helper()
	for key, g := range cache.gangs {
		var want sums
		var oldest, leader, worst *Member
		for uid, m := range g.members {
			if cache.of[uid] != g {
				t.Errorf("gang %s has pod %s, which the index has elsewhere", key, uid)
			}
			if oldest == nil || senior(m, oldest) < 0 {
				oldest = m
			}
			if m.Problem != nil {
				want.Bad++
				if worst == nil || older(m, worst) < 0 {
					worst = m
				}
			}
			switch h := g.reserved[uid]; {
			case m.State == Bound:
				want.Bound++
			case m.State == Failed && h == unplaced:
				want.Failed++
			case m.State != Pending:
				if h != unplaced {
					t.Errorf("gang %s: pod %s holds a place and wants none", key, uid)
				}
			case h == unplaced:
				want.Pending++
				if g.plans(uid) {
					want.Planned++
				}
				if leader == nil || older(m, leader) < 0 {
					leader = m
				}
			case h == waiting:
				want.Waiting++
			case h == allowed:
				want.Allowed++
			case h == leaving:
				want.Leaving++
			}
		}
		got := sums{g.bad, g.pending, g.planned, g.bound, g.failed, g.held[waiting], g.held[allowed], g.held[leaving]}
		if want != got {
			t.Errorf("gang %s, sums against a recount (-want +got):\n%s", key, cmp.Diff(want, got))
		}
		if g.eldest.first() != oldest || g.candidate() != leader || g.mistaken.first() != worst {
			t.Errorf(
				"gang %s: oldest %v, leader %v, worst %v; want %v, %v, %v", key, g.eldest.first(), g.candidate(),
				g.mistaken.first(), oldest, leader, worst,
			)
		}
		if g.first.IsZero() != (want.Waiting == 0) {
			t.Errorf("gang %s: %d pods wait, and the first does since %v", key, want.Waiting, g.first)
		}
		checkIndex(t, cache, g)
		checkSites(t, g)
	}
}

// checkSites holds the nodes of the members against a recount, from the first time on that anybody asks for them.
func checkSites(t *testing.T, g *gang) {
	t.Helper()
	g.takeSeats()
	want := map[Slice]map[string]int{}
	for uid, m := range g.members {
		h := g.reserved[uid]
		if m.Node != "" && (m.State == Bound || m.State == Pending && (h == waiting || h == allowed)) {
			if want[m.Slice] == nil {
				want[m.Slice] = map[string]int{}
			}
			want[m.Slice][m.Node]++
		}
		if m.State == Pending && h == unplaced && m.Node != "" {
			t.Errorf("gang %s: pod %s has no place and keeps node %s", g.key, uid, m.Node)
		}
	}
	if diff := cmp.Diff(want, g.sites); diff != "" {
		t.Errorf("gang %s, nodes of its members against a recount (-want +got):\n%s", g.key, diff)
	}
}

func checkIndex(t *testing.T, cache *Cache, g *gang) {
	t.Helper()
	for _, key := range g.spec.Groups {
		if !cache.naming[key][g] {
			t.Errorf("gang %s names %s, and the index does not know", g.key, key)
		}
	}
	for other := range cache.naming[g.key] {
		if cache.gangs[other.key] != other {
			t.Errorf("the index has gang %s, which is gone", other.key)
		}
	}
	for uid := range g.reserved {
		if g.members[uid] == nil {
			t.Errorf("gang %s: pod %s is gone and holds a place", g.key, uid)
		}
	}
}
