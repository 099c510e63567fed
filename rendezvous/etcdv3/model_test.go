package etcdv3

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestModel runs agents on a store that is a model, with all that can go wrong, until a million steps have been taken.
// TEGEN_SEED repeats one history, TEGEN_STEPS says how many are taken.
func TestModel(t *testing.T) {
	t.Parallel()
	if text := os.Getenv("TEGEN_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s := newSim(seed)
		live(s)
		t.Logf("%v %s", s.err, strings.Join(s.log, "\n"))
		if s.err != nil {
			t.Fail()
		}
		return
	}
	want, err := strconv.Atoi(os.Getenv("TEGEN_STEPS"))
	if err != nil {
		want = 1_000_000
	}
	steps, versions, evicted, seed := 0, 0, 0, uint64(0)
	for ; steps < want; seed++ {
		s := newSim(seed)
		live(s)
		steps, versions, evicted = steps+s.steps, versions+s.versions, evicted+s.evicted
		if s.err != nil {
			t.Fatalf("%s\nTEGEN_SEED=%d: %v", strings.Join(s.log[max(0, len(s.log)-60):], "\n"), seed, s.err)
		}
	}
	t.Logf("%d histories, %d versions, %d evictions, %d steps", seed, versions, evicted, steps)
}

// live plays one run: faults, then a calm time in which it must converge, several times, and its end.
func live(s *sim) {
	for i := range 1 + s.IntN(2*s.rules.max) {
		s.start(fmt.Sprint("a", i))
	}
	for round := 0; round < 4 && s.err == nil; round++ {
		for range s.IntN(30) {
			s.after(time.Duration(s.IntN(int(8*time.Second))), s.trouble)
		}
		s.calm = s.now + 8*time.Second
		s.run(8 * time.Second)
		s.run(30 * time.Second)
		s.rested()
	}
	if s.err != nil || len(s.nodes) == 0 || s.world == nil || s.world.State != final {
		return
	}
	for _, n := range s.nodes {
		at := time.Duration(s.IntN(int(6 * time.Second)))
		s.after(at, func() { n.call(evFinish{}) })
		if s.IntN(6) == 0 { // once it has finished it is not missed
			s.after(at+2*time.Second, func() { s.kill(n); s.remove(n) })
		}
	}
	s.run(20 * time.Second)
	if s.err == nil && s.world.State != succeeded {
		s.fail("all have finished, and the run is %s", s.world.State)
	}
}

// trouble is one fault, or one call of a user.
func (s *sim) trouble() {
	if len(s.nodes) == 0 || s.world != nil && s.world.State.over() {
		return
	}
	n := s.nodes[s.IntN(len(s.nodes))]
	switch k := s.IntN(100); {
	case k < 20: // killed; now and then another of its name comes back before its lease is over
		s.kill(n)
		s.after(time.Duration(s.IntN(int(2*time.Second))), func() { s.remove(n) })
		if s.IntN(2) == 0 {
			s.start(n.id)
		}
	case k < 35: // stopped for longer than its lease, which it notices late
		s.remove(n)
		s.after(time.Duration(s.IntN(int(time.Second))), func() { s.lose(n) })
	case k < 45: // leaves
		s.kill(n)
		s.remove(n)
	case k < 60:
		s.start(fmt.Sprint("b", s.seq))
	case k < 70: // a worker has failed
		if n.held.Version != 0 {
			n.call(evJoin{1})
		}
	case k < 72: // its neighbours take it for gone
		if s.IntN(2) == 0 {
			s.isolate(n)
			return
		}
		s.missed(n.id, n.created, time.Second)
	case k < 76 && s.world != nil: // the run's state is forgotten
		s.rev++
		s.setWorld(nil)
	case k == 76:
		n.call(evFail{})
	case k < 85 && s.leads != nil: // the leader dies, whatever it is doing
		n = s.leads
		s.kill(n)
		s.remove(n)
	case k < 95:
		s.cut(n)
	default:
		for _, n := range s.nodes {
			s.cut(n)
		}
	}
}

// cut breaks an agent's watches, which start again with a read.
func (s *sim) cut(n *node) {
	if n.watches.agents {
		n.watches.agents = false
		n.agents.gen++
		s.after(s.lag(), func() { n.step(evReload{}) })
	}
	if !n.watches.head || n.m.created == 0 {
		return
	}
	n.watches.head = false
	n.head.gen++
	away := s.lag()
	if s.IntN(4) == 0 { // for long enough to miss a version, and its end
		away = time.Duration(s.IntN(int(2 * time.Second)))
	}
	s.after(away, func() {
		if n.dead {
			return
		}
		world, leader := evWorld{s.world, s.worldRev}, evLeader{s.leader, s.leader}
		if s.world == nil {
			world.rev = s.rev
		}
		if s.leader == 0 {
			leader.rev = s.rev
		}
		n.watches.head = true
		n.tell(&n.head, world)
		n.tell(&n.head, leader)
	})
}

// rested: long enough after the last fault, as many agents as allowed work in one world, and no other works.
func (s *sim) rested() {
	if s.err != nil || s.world != nil && s.world.State.over() {
		return
	}
	working := 0
	for _, n := range s.nodes {
		if n.held.Version != 0 {
			working++
			if s.world == nil || n.held.Dir != s.world.Dir {
				s.fail("%s still works in %d", n.id, n.held.Version)
			}
		}
	}
	want := min(len(s.nodes), s.rules.max)
	if want < s.rules.min {
		want = 0
	}
	if working != want {
		s.fail("%d of %d work, of %d to %d", working, len(s.nodes), s.rules.min, s.rules.max)
	}
}
