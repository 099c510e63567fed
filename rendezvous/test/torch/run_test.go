//go:build linux

package torch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	// worldLimit guards against waiting for ever. Torch's slowest way to a new world takes a third of it
	// on an idle machine.
	worldLimit = 3 * time.Minute
	// endLimit is what agents may take to end once their workers have.
	endLimit = time.Minute
	// provenSteps is how many sums of each worker prove a world.
	provenSteps = 3
)

// run is one elastic run: agents that share an id.
type run struct {
	t        *testing.T
	id       string
	version  version
	backend  string
	endpoint string
	nodes    string // min:max
	conf     string
	monitor  string // seconds between an agent's looks at its workers and the store, torch's monitor_interval
	env      []string
	network  *network // that its agents are on, each on a host of its own; nil for this machine's

	started int
	agents  map[string]*agent // that should be alive, by their names
	known   map[int64]bool    // worlds that were there at the last event
	world   int64             // the last that was awaited
	event   time.Time
}

// agent is one of the run.
type agent struct {
	*process
	host host
}

// newRun begins a run. Its agents are to be started.
func newRun(t *testing.T, v version, backend, endpoint, nodes string) *run {
	t.Helper()
	if v.excluded() {
		t.Skipf("TEGEN_TORCH_VERSIONS does not list %s", v.name)
	}
	return &run{
		t: t, version: v, backend: backend, endpoint: endpoint, nodes: nodes, conf: "last_call_timeout=1", monitor: "1",
		id:     fmt.Sprintf("run%d", started.Add(1)),
		agents: map[string]*agent{}, known: map[int64]bool{}, event: time.Now(),
	}
}

// sum is what a worker wrote down after one step.
type sum struct {
	World                      int64
	Node, Torch                string
	Restarts, Size, Rank, Step int
	Sum                        int
	Time                       float64 // in Unix seconds
}

// sums reads what the workers have written, and fails the test where a sum is wrong.
func (r *run) sums() []sum {
	r.t.Helper()
	text, err := os.ReadFile(r.path("sums"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be half written
	var all []sum
	for line := range bytes.Lines(text) {
		var s sum
		if err := json.Unmarshal(line, &s); err != nil {
			r.t.Fatalf("reading %q: %v", line, err)
		}
		if s.Sum != s.Size*(s.Size+1)/2 {
			r.t.Fatalf("a world of %d has a wrong sum: %s", s.Size, line)
		}
		all = append(all, s)
	}
	return all
}

// path is that of the file in the shared folder by which test and workers talk.
func (r *run) path(ending string) string { return filepath.Join(shared, r.id+"."+ending) }

// await waits for a world that began after the last event, whose workers are those of all living agents, each with some
// right sums. It returns the agents' names by rank.
func (r *run) await(what string) []string {
	r.t.Helper()
	for {
		worlds := map[int64]map[int]sum{}
		for _, s := range r.sums() {
			if r.known[s.World] {
				continue
			}
			if worlds[s.World] == nil {
				worlds[s.World] = map[int]sum{}
			}
			worlds[s.World][s.Rank] = s // the latest
		}
		for world, ranks := range worlds {
			if names, ok := r.proven(ranks); ok {
				r.t.Logf("%5.1f s  %s: the sum of %d, ranks %s, torch %s", time.Since(r.event).Seconds(), what,
					len(names),
					strings.Join(names, " "), ranks[0].Torch)
				r.mark()
				r.world = world
				return names
			}
		}
		r.check(what)
		time.Sleep(100 * time.Millisecond)
	}
}

// proven says whether a world is that of the living agents, and where each is.
func (r *run) proven(ranks map[int]sum) ([]string, bool) {
	names := make([]string, len(ranks))
	for rank, s := range ranks {
		if s.Size != len(r.agents) || len(ranks) != s.Size || s.Step < provenSteps {
			return nil, false
		}
		names[rank] = s.Node
	}
	return names, cmp.Equal(r.living(), slices.Sorted(slices.Values(names)))
}

func (r *run) living() []string {
	var names []string
	for name := range r.agents {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// check fails the test where an agent that should live has ended, or the time is up.
func (r *run) check(what string) {
	r.t.Helper()
	for name, p := range r.agents {
		if p.ended() {
			r.t.Fatalf("%s: agent %s has ended (%v)", what, name, p.cmd.ProcessState)
		}
	}
	if time.Since(r.event) > worldLimit {
		r.t.Fatalf("%s: no world of %v after %v", what, r.living(), worldLimit)
	}
}

// mark says that something is about to happen: worlds and seconds count from here.
func (r *run) mark() {
	r.t.Helper()
	for _, s := range r.sums() {
		r.known[s.World] = true
	}
	r.event = time.Now()
}

// goesOn waits until the workers of the last world have more sums, in that world and no other.
func (r *run) goesOn(what string) {
	r.t.Helper()
	const more = 10
	for first := -1; ; time.Sleep(100 * time.Millisecond) {
		all := r.sums()
		last := all[len(all)-1]
		if last.World != r.world {
			r.t.Fatalf("%s: the world of %v became another, of %d", what, r.living(), last.Size)
		}
		if first < 0 {
			first = last.Step
		}
		if last.Step >= first+more {
			r.t.Logf("%5.1f s  %s: %d more sums in the same world", time.Since(r.event).Seconds(), what, more)
			return
		}
		r.check(what)
	}
}

// longestPause is between two sums of a worker of the last world.
func (r *run) longestPause() time.Duration {
	r.t.Helper()
	longest, last := 0.0, map[int]float64{}
	for _, s := range r.sums() {
		if s.World != r.world {
			continue
		}
		if before, ok := last[s.Rank]; ok {
			longest = max(longest, s.Time-before)
		}
		last[s.Rank] = s.Time
	}
	return time.Duration(longest * float64(time.Second)).Round(time.Millisecond)
}

// kill loses an agent with its workers.
func (r *run) kill(name string) {
	r.t.Helper()
	r.mark()
	lost := r.agents[name]
	delete(r.agents, name)
	lost.kill()
}

// finish lets the workers end, and all agents with success.
func (r *run) finish() {
	r.t.Helper()
	r.mark()
	if err := os.WriteFile(r.path("stop"), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	for _, name := range r.living() {
		if code := r.agents[name].wait(r.t, endLimit); code != 0 {
			r.t.Errorf("agent %s ended with %d, want 0", name, code)
		}
	}
	r.t.Logf("%5.1f s  all agents ended", time.Since(r.event).Seconds())
}
