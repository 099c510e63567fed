package etcdv3

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous"
)

// quick are options without needless waits. Leases are long, or an agent loses its own on a busy machine; mortal are
// those of tests that wait for the end of one.
var (
	quick  = Options{Lease: 10 * time.Second, Pause: time.Millisecond, Grace: 10 * time.Second}
	mortal = Options{Lease: 3 * time.Second, Pause: time.Millisecond, Grace: 10 * time.Second}
)

// back has peers take in that their world is over, and join the next.
func back(t testing.TB, peers ...*peer) {
	t.Helper()
	again := join(t)
	together(peers, func(p *peer) {
		changed(t, p)
		again(p)
	})
}

// TestElastic: the last call lets more agents than the minimum join; a later agent causes a new world, and so does one
// that leaves, at once.
func TestElastic(t *testing.T) {
	t.Parallel()
	c := open(t)
	s := settings(t, 2, 4)
	s.LastCall = 50 * time.Millisecond
	all := crowd(t, c, s, 4, quick)
	together(all[:2], join(t))
	checkWorld(t, 1, all[:2]...)
	again := join(t)
	together(all, func(p *peer) {
		for p.err == nil && p.world.Size < 4 { // the last call may be over before all are there
			if p.world.Changed != nil {
				changed(t, p)
			}
			again(p)
		}
	})
	version := all[0].world.Version
	checkWorld(t, version, all...)
	if err := all[1].Leave(within(t)); err != nil {
		t.Error(err)
	}
	rest := []*peer{all[0], all[2], all[3]}
	back(t, rest...)
	checkWorld(t, version+1, rest...)
}

// TestLastCall: with a last call that never ends, a world is formed as soon as it is full.
func TestLastCall(t *testing.T) {
	t.Parallel()
	c := open(t)
	s := settings(t, 1, 3)
	s.LastCall = time.Hour
	all := crowd(t, c, s, 3, quick)
	together(all, join(t))
	checkWorld(t, 1, all...)
}

// TestLost: the loss of an agent is noticed when its lease ends, whether it leads or not, and another replaces it. By
// then its own world has ended for it.
func TestLost(t *testing.T) {
	t.Parallel()
	c := open(t)
	all := crowd(t, c, settings(t, 3, 3), 5, mortal)
	all, spare := all[:3], all[3:]
	together(all, join(t))
	for i, leader := range []bool{true, false} {
		slices.SortFunc(all, func(a, b *peer) int { return a.world.Rank - b.world.Rank })
		k := 0 // the first that joined leads
		if !leader {
			k = 2
		}
		if err := all[k].Close(); err != nil {
			t.Error(err)
		}
		changed(t, all[k])
		all[k] = spare[i]
		again := join(t)
		together(all, func(p *peer) {
			if p != spare[i] {
				changed(t, p)
			}
			again(p)
		})
		checkWorld(t, 2+i, all...)
	}
}

// TestLease: an agent whose lease is revoked joins as a new one.
func TestLease(t *testing.T) {
	t.Parallel()
	c := open(t)
	all := crowd(t, c, settings(t, 2, 2), 2, quick)
	together(all, join(t))
	if _, err := c.Revoke(within(t), all[0].session.lease); err != nil {
		t.Fatal(err)
	}
	back(t, all...)
	checkWorld(t, 2, all...)
}

// TestBeyond: an agent beyond the maximum waits, at no cost to the others, until one leaves.
func TestBeyond(t *testing.T) {
	t.Parallel()
	c := open(t)
	all := crowd(t, c, settings(t, 2, 2), 3, quick)
	together(all[:2], join(t))
	before := all[1].Stats().Requests
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		join(t)(all[2])
	}()
	waitKeys(t, c, runKeys(t)+"agents/", 3)
	select {
	case <-all[0].world.Changed:
		t.Error("the world at work was disturbed")
	case <-joined:
		t.Error("a third has joined")
	default:
	}
	if n := all[1].Stats().Requests; n != before {
		t.Errorf("another has asked the store %d times", n-before)
	}
	if err := all[1].Leave(within(t)); err != nil {
		t.Error(err)
	}
	back(t, all[0])
	<-joined
	checkWorld(t, 2, all[0], all[2])
}

// runKeys is the prefix of the keys of a test's own run.
func runKeys(t testing.TB) string { return "/tegen/rendezvous/" + url.PathEscape(runID(t)) + "/" }

// waitKeys waits until there are so many keys.
func waitKeys(t testing.TB, c *clientv3.Client, prefix string, want int64) {
	t.Helper()
	ctx := within(t)
	for {
		r, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		if r.Count == want {
			return
		}
		<-c.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(r.Header.Revision+1))
	}
}

// TestNobody: where too few agents join, or the caller stops waiting, no key is left that others would wait for.
func TestNobody(t *testing.T) {
	t.Parallel()
	c := open(t)
	s := settings(t, 2, 2)
	s.Join = 100 * time.Millisecond
	p := crowd(t, c, s, 1, quick)[0]
	if _, err := p.Join(within(t)); !errors.Is(err, rendezvous.ErrTimeout) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	if _, err := p.Join(ctx); !errors.Is(err, stopped) {
		t.Errorf("%v", err)
	}
	waitKeys(t, c, runKeys(t), 0)
}

// TestEnds: a run ends for all when one fails for good, or all have finished; the others do not wait for one that
// leaves after it has finished. One key is left, which expires; then the name of the run can be used again.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"fails", "finishes", "again"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			testEnds(t, how)
		})
	}
}

func testEnds(t *testing.T, how string) {
	o := quick
	o.TTL = 2 * time.Second
	c := open(t)
	all := crowd(t, c, settings(t, 3, 3), 3, o)
	together(all, join(t))
	checkWorld(t, 1, all...)
	if how == "finishes" {
		brief, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("enough"))
		defer cancel()
		if err := all[2].Finish(brief); err == nil || brief.Err() == nil {
			t.Errorf("one alone has finished: %v", err)
		}
	}
	together(all, func(p *peer) {
		switch {
		case how == "fails" && p == all[0]:
			if err := p.Fail(within(t)); err != nil {
				t.Error(err)
			}
		case how == "fails":
			changed(t, p)
			if _, err := p.Join(within(t)); !errors.Is(err, rendezvous.ErrClosed) {
				t.Errorf("joining what another has closed: %v", err)
			}
		case how == "finishes" && p == all[2]:
		default:
			if err := p.Finish(within(t)); err != nil {
				t.Error(err)
			}
		}
	})
	waitKeys(t, c, runKeys(t), 1)
	waitKeys(t, c, runKeys(t), 0)
	together(all, join(t))
	checkWorld(t, 1, all...)
}

// TestRoles: workers of a role are counted apart.
func TestRoles(t *testing.T) {
	t.Parallel()
	c := open(t)
	s := settings(t, 3, 3)
	s.RunID = "a run/with a/../name"
	var all []*peer
	for i, role := range []string{"trainer", "reader", "trainer"} {
		p := newPeer(t, c, s, role+"/"+string(rune('a'+i)), quick)
		p.agent.Role, p.agent.Workers = role, i+1
		all = append(all, p)
	}
	together(all, join(t))
	for _, p := range all {
		w, total, base, roleBase := p.world, 0, 0, 0
		for _, o := range all {
			if o.world.Rank < w.Rank {
				base += o.agent.Workers
			}
			if o.agent.Role == p.agent.Role {
				total += o.agent.Workers
				if o.world.Rank < w.Rank {
					roleBase += o.agent.Workers
				}
			}
		}
		if diff := cmp.Diff([]int{6, base, total, roleBase},
			[]int{w.Total, w.Base, w.RoleTotal, w.RoleBase}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.id, diff)
		}
	}
}

// TestTaken: an agent waits until another one of its name is gone.
func TestTaken(t *testing.T) {
	t.Parallel()
	c := open(t)
	s := settings(t, 1, 1)
	first, second := newPeer(t, c, s, "a", mortal), newPeer(t, c, s, "a", mortal)
	join(t)(first)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	join(t)(second)
	checkWorld(t, 2, second)
}
