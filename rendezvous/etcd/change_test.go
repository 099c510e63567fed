package etcd

import (
	"context"
	"errors"
	"net/url"
	"path"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// quick are times that do not keep a test waiting for half a minute.
var quick = torchetcd.Timings{KeepAliveTTL: 2 * time.Second, Renew: 500 * time.Millisecond, PeerPoll: time.Second}

// state is what the store holds.
func (r *run) state() torchetcd.State {
	r.t.Helper()
	a := r.agent(0)
	got, err := a.client.get(r.t.Context(), path.Join(a.protocol.Dir, "active_version"))
	if code(err) == torchetcd.CodeNotFound {
		return torchetcd.State{}
	}
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := torchetcd.ParseState(got.Node.Value)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// until waits for a state.
func (r *run) until(what string, ok func(torchetcd.State) bool) {
	r.t.Helper()
	for range 400 {
		if ok(r.state()) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatalf("there is no state with %s, but %s", what, r.state().Raw)
}

func participants(n int) func(torchetcd.State) bool {
	return func(s torchetcd.State) bool { return s.Participants == n }
}

// over waits until worlds are.
func (r *run) over(worlds ...rendezvous.World) {
	r.t.Helper()
	for i, w := range worlds {
		select {
		case <-w.Changed:
		case <-time.After(30 * time.Second):
			r.t.Fatalf("world %d does not end, with the state %s", i, r.state().Raw)
		}
	}
}

func (r *run) stands(worlds ...rendezvous.World) {
	r.t.Helper()
	for i, w := range worlds {
		select {
		case <-w.Changed:
			r.t.Fatalf("world %d has ended, with the state %s", i, r.state().Raw)
		default:
		}
	}
}

// TestElastic: the last call lets more agents than the minimum join, and a later one enlarges the world.
func TestElastic(t *testing.T) {
	each(t, func(t *testing.T, r *run) {
		r.Min, r.Max = 1, 3
		agents := r.agents(3)
		began := time.Now()
		two := r.world(agents[:2]...)
		if took := time.Since(began); took < r.LastCall {
			t.Errorf("the world of two is there after %s, before the end of the last call", took)
		}
		r.stands(two...)
		third := join(t.Context(), agents[2])
		r.over(two...)
		r.joinWith(third, agents)
	})
}

// joinWith joins again with all agents but the last, which is joining already, and checks the world.
func (r *run) joinWith(last <-chan joined, agents []*Agent) []rendezvous.World {
	r.t.Helper()
	var waits []<-chan joined
	for _, a := range agents[:len(agents)-1] {
		waits = append(waits, join(r.t.Context(), a))
	}
	var worlds []rendezvous.World
	for _, w := range append(waits, last) {
		j := <-w
		if j.err != nil {
			r.t.Fatal(j.err)
		}
		worlds = append(worlds, j.World)
	}
	r.check(worlds, agents)
	return worlds
}

// TestKilled: the others go on without an agent whose process has died, and with one that takes its place.
func TestKilled(t *testing.T) {
	each(t, func(t *testing.T, r *run) {
		r.Min, r.Max, r.timings = 2, 3, quick
		agents := r.agents(4)
		three := r.world(agents[:3]...)
		kill(t, agents[0])
		two := r.world(agents[1:3]...) // whose workers have failed
		r.over(three[1:]...)
		replacement := join(t.Context(), agents[3])
		r.over(two...)
		r.joinWith(replacement, agents[1:])
	})
}

// TestReplaced: an agent beyond the maximum waits without disturbing the world, until a member's keep-alive expires.
func TestReplaced(t *testing.T) {
	each(t, func(t *testing.T, r *run) {
		r.Min, r.Max, r.timings = 2, 2, quick
		agents := r.agents(3)
		two := r.world(agents[:2]...)
		third := join(t.Context(), agents[2])
		time.Sleep(2 * quick.KeepAliveTTL)
		r.stands(two...)
		if s := r.state(); s.Waiting != 0 {
			t.Errorf("an agent beyond the maximum says that it waits: %s", s.Raw)
		}
		kill(t, agents[0])
		r.over(two[1])
		r.joinWith(third, agents[1:])
	})
}

// TestCancelled: the others do not wait for an agent whose join is cancelled.
func TestCancelled(t *testing.T) {
	each(t, func(t *testing.T, r *run) {
		r.Min, r.Max = 3, 3
		agents := r.agents(4)
		why := errors.New("told to stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		first := join(ctx, agents[0])
		r.until("one participant", participants(1))
		second := join(t.Context(), agents[1])
		r.until("two participants", participants(2))
		cancel(why)
		if j := <-first; !errors.Is(j.err, why) {
			t.Errorf("Join returns %v", j.err)
		}
		if s := r.state(); s.Participants != 1 {
			t.Errorf("one of two has gone, and left %s", s.Raw)
		}
		began := time.Now()
		third, fourth := join(t.Context(), agents[2]), join(t.Context(), agents[3])
		var worlds []rendezvous.World
		for _, w := range []<-chan joined{second, third, fourth} {
			j := <-w
			if j.err != nil {
				t.Fatal(j.err)
			}
			worlds = append(worlds, j.World)
		}
		r.check(worlds, agents[1:])
		if worlds[0].Version != 1 {
			t.Errorf("it took %s and a version %d", time.Since(began), worlds[0].Version)
		}
	})
}

// TestTooFew: an agent that gives up, as too few join in time, does not close the run for the others.
func TestTooFew(t *testing.T) {
	each(t, func(t *testing.T, r *run) {
		r.Min, r.Max = 2, 2
		others := r.agents(2)
		r.Join = time.Second
		if _, err := r.agent(2).Join(t.Context()); !errors.Is(err, rendezvous.ErrTimeout) {
			t.Errorf("Join returns %v", err)
		}
		if s := r.state(); s.Participants != 0 || s.Status == torchetcd.Closed {
			t.Errorf("it leaves %s", s.Raw)
		}
		r.world(others...)
	})
}

// TestLeave: leaving is no failure. The others go on without the agent, and at once.
func TestLeave(t *testing.T) {
	each(t, func(t *testing.T, r *run) {
		r.Min, r.Max = 2, 3
		agents := r.agents(3)
		three := r.world(agents...)
		if err := agents[0].Leave(t.Context()); err != nil {
			t.Error(err)
		}
		r.over(three[1:]...)
		began := time.Now()
		r.world(agents[1:]...)
		if took := time.Since(began); took > torchetcd.Defaults().KeepAliveTTL {
			t.Errorf("it took %s", took)
		}
		// The last ones can leave as well.
		for _, a := range agents[1:] {
			if err := a.Leave(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestFail: an agent that fails for good closes the run, and the others' next Join returns ErrClosed.
func TestFail(t *testing.T) {
	each(t, func(t *testing.T, r *run) {
		r.Min, r.Max = 2, 2
		agents := r.agents(2)
		r.world(agents...)
		if err := agents[0].Fail(t.Context()); err != nil {
			t.Error(err)
		}
		if err := agents[0].Fail(t.Context()); err != nil {
			t.Errorf("closing it again: %v", err)
		}
		if _, err := agents[1].Join(t.Context()); !errors.Is(err, rendezvous.ErrClosed) {
			t.Errorf("Join returns %v", err)
		}
	})
}

// TestChanged: a world is over once an agent waits, and once the active version is deleted or another; not when the run
// is closed, as its workers may be about to succeed.
func TestChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s torchetcd.State) url.Values{
		"waiting": func(s torchetcd.State) url.Values {
			s.Waiting++
			return url.Values{"value": {s.String()}}
		},
		"joinable": func(torchetcd.State) url.Values {
			return url.Values{"value": {`{"status": "joinable", "version": "7", "participants": [0]}`}}
		},
		"final":   func(torchetcd.State) url.Values { return url.Values{"value": {foreign}} },
		"missing": func(torchetcd.State) url.Values { return url.Values{"value": {""}, "ttl": {"1"}} },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, r *run) {
				r.Min, r.Max = 1, 1
				a := r.agent(0)
				w := r.world(a)
				o := change(r.state())
				key := path.Join(a.protocol.Dir, "active_version")
				if _, err := a.client.put(t.Context(), key, o); err != nil {
					t.Fatal(err)
				}
				r.over(w...)
			})
		})
	}
	t.Run("closed", func(t *testing.T) {
		each(t, func(t *testing.T, r *run) {
			r.Min, r.Max = 1, 1
			w := r.world(r.agent(0))
			if err := r.agent(1).Fail(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
			r.stands(w...)
		})
	})
}

// foreign is a world of other agents.
const foreign = `{"status": "final", "version": "7", "participants": [0], ` +
	`"keep_alives": ["/x"], "num_workers_waiting": 0}`

// TestBarrierEnds: waiting for the others ends once they are in another world, which stays open, or once one of them
// has closed the run.
func TestBarrierEnds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]torchetcd.Status{"another world": torchetcd.Final, "closed": torchetcd.Closed} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, r *run) {
				r.Min, r.Max, r.timings = 2, 3, quick
				agents := r.agents(3)
				worlds := r.world(agents...)
				finished := make(chan error, 1)
				go func() { finished <- agents[0].Finish(t.Context()) }()
				if want == torchetcd.Closed {
					if err := agents[1].Fail(t.Context()); err != nil {
						t.Error(err)
					}
				} else {
					kill(t, agents[1]) // and no worker fails
					r.over(worlds[2])
					r.world(agents[2], r.agent(3))
				}
				if err := <-finished; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(want, r.state().Status); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

// TestBarrierGivesUp: an agent whose time to wait for the others ends closes the run all the same.
func TestBarrierGivesUp(t *testing.T) {
	each(t, func(t *testing.T, r *run) {
		r.Min, r.Max = 2, 2
		agents := r.agents(2)
		r.world(agents...)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := agents[1].Finish(ctx); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(torchetcd.Closed, r.state().Status); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
