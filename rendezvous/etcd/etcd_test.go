package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// each runs a test against every kind of store.
func each(t *testing.T, test func(*testing.T, *run)) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &run{t: t, address: store.open(t).address, log: &buffer{}}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("agents:\n%s", r.log)
				}
			})
			r.Settings = rendezvous.Settings{
				RunID: strings.ReplaceAll(t.Name(), "/", "-"), Min: 1, Max: 8, Join: time.Minute, LastCall: time.Second,
			}
			test(t, r)
		})
	}
}

// run is a run with agents.
type run struct {
	rendezvous.Settings
	t       *testing.T
	address string
	log     *buffer
	timings torchetcd.Timings
}

// agent opens an agent, of a role and with workers of its number.
func (r *run) agent(i int) *Agent {
	r.t.Helper()
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})).With("agent", i)
	a, err := Open(Config{Endpoints: []string{r.address}, Log: log, Timings: r.timings}, r.Settings,
		rendezvous.Agent{
			ID: fmt.Sprint(i), Host: fmt.Sprintf("host-%d", i), Role: []string{"even", "odd"}[i%2],
			Workers: i + 1,
		})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { kill(r.t, a) })
	return a
}

// kill ends an agent as the end of its process would: it writes nothing any more.
func kill(t *testing.T, a *Agent) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func (r *run) agents(n int) []*Agent {
	r.t.Helper()
	out := make([]*Agent, n)
	for i := range out {
		out[i] = r.agent(i)
	}
	return out
}

// joined is what came of a Join.
type joined struct {
	rendezvous.World
	err error
}

func join(ctx context.Context, a *Agent) <-chan joined {
	out := make(chan joined, 1)
	go func() {
		w, err := a.Join(ctx)
		out <- joined{w, err}
	}()
	return out
}

// world has agents join at once, and returns what each sees.
func (r *run) world(agents ...*Agent) []rendezvous.World {
	r.t.Helper()
	var waits []<-chan joined
	for _, a := range agents {
		waits = append(waits, join(r.t.Context(), a))
	}
	var out []rendezvous.World
	for i, w := range waits {
		j := <-w
		if j.err != nil {
			r.t.Fatalf("agent %d: %v", i, j.err)
		}
		out = append(out, j.World)
	}
	r.check(out, agents)
	return out
}

// check checks that worlds are one, seen by each of its agents.
func (r *run) check(worlds []rendezvous.World, agents []*Agent) {
	r.t.Helper()
	first := worlds[0]
	at := make([]int, len(worlds)) // agents by rank
	seen := map[int]bool{}
	for i, w := range worlds {
		if w.Rank < 0 || w.Rank >= len(worlds) || seen[w.Rank] || w.Size != len(worlds) || w.Version != first.Version {
			r.t.Fatalf("agent %d of %d is %d of %d in version %d, another in %d", i, len(worlds), w.Rank, w.Size,
				w.Version, first.Version)
		}
		seen[w.Rank] = true
		at[w.Rank] = i
	}
	all, byRole := 0, map[string]int{}
	var want []rendezvous.World
	for rank, i := range at {
		self := agents[i].self
		want = append(want, rendezvous.World{
			Version: first.Version, Rank: rank, Size: len(worlds), Base: all, RoleBase: byRole[self.Role],
			MasterAddr: agents[at[0]].self.Host, MasterPort: first.MasterPort,
		})
		all += self.Workers
		byRole[self.Role] += self.Workers
	}
	for rank, i := range at {
		want[rank].Total, want[rank].RoleTotal = all, byRole[agents[i].self.Role]
		got := worlds[i]
		got.Changed = nil
		if diff := cmp.Diff(want[rank], got); diff != "" {
			r.t.Errorf("the world of agent %d (-want +got)\n%s", i, diff)
		}
	}
	if first.MasterPort == 0 {
		r.t.Error("rank 0 has no port")
	}
}

// TestWorld: agents that join at once form one world, and finish it together.
func TestWorld(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			each(t, func(t *testing.T, r *run) {
				r.Min, r.Max = n, n
				agents := r.agents(n)
				r.world(agents...)
				for i, a := range agents {
					t.Logf("agent %d: %+v", i, a.Requests())
				}
				r.finish(agents...)
				late := r.agent(n)
				if _, err := late.Join(t.Context()); !errors.Is(err, rendezvous.ErrClosed) {
					t.Errorf("joining a run that has ended: %v", err)
				}
			})
		})
	}
}

// finish has agents finish, the last some time after the others.
func (r *run) finish(agents ...*Agent) {
	r.t.Helper()
	ended := make(chan error)
	for _, a := range agents[1:] {
		go func() { ended <- a.Finish(r.t.Context()) }()
	}
	if len(agents) > 1 {
		select {
		case err := <-ended:
			r.t.Errorf("an agent does not wait for the last: %v", err)
			return
		case <-time.After(300 * time.Millisecond):
		}
	}
	if err := agents[0].Finish(r.t.Context()); err != nil {
		r.t.Error(err)
	}
	for range agents[1:] {
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	}
}
