package torchetcd

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A number of histories that takes about ten seconds, and in which machines take at least a million steps.
const (
	histories = 3200
	enough    = 1_000_000
)

// TestModel plays random histories of agents, ours and some of torch, on one store. They come, are killed, fail, leave
// and run out of time, while requests are lost before or after they were carried out, carried out twice, or late. After
// every step it checks for violations: two worlds of one version, ranks other than 0..n-1, a world too small or
// too large, a machine that works in a version although it has seen a later world, one that waits for nothing. In the
// end, when nobody disturbs them any more, agents must form a world and stay in it. TEGEN_SEED=n plays one history and
// prints it; TEGEN_HISTORIES=n plays that many.
func TestModel(t *testing.T) {
	if text := os.Getenv("TEGEN_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		history := &strings.Builder{}
		_, err = newModel(seed, history).run()
		t.Logf("history %d:\n%s", seed, history)
		if err != nil {
			t.Error(err)
		}
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // nearly all that histories hold is garbage
	count := uint64(histories)
	if n, err := strconv.ParseUint(os.Getenv("TEGEN_HISTORIES"), 10, 64); err == nil {
		count = n
	}
	sum := playAll(t, count)
	t.Logf("%d histories: %+v", count, sum)
	if count == histories && (sum.steps < enough || sum.worlds < histories || sum.converged < histories/2) {
		t.Errorf("the model tests next to nothing: %+v", sum)
	}
}

// playAll plays histories, as many at once as there are processors.
func playAll(t *testing.T, count uint64) tally {
	var next atomic.Uint64
	var mu sync.Mutex
	var sum tally
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for seed := next.Add(1) - 1; seed < count && !t.Failed(); seed = next.Add(1) - 1 {
				got, err := newModel(seed, nil).run()
				mu.Lock()
				sum.add(got)
				mu.Unlock()
				if err == nil {
					continue
				}
				history := &strings.Builder{}
				_, again := newModel(seed, history).run()
				t.Errorf("history %d: %v; played again (TEGEN_SEED=%d): %v\n%s", seed, err, seed, again, history)
			}
		})
	}
	wait.Wait()
	return sum
}

// tally is what histories were made of.
type tally struct{ steps, worlds, converged, diverged int }

func (s *tally) add(o tally) {
	s.steps += o.steps
	s.worlds += o.worlds
	s.converged += o.converged
	s.diverged += o.diverged
}

// Time that agents have to form a world once nobody disturbs them, besides their last call: TTLs run out one after
// another, and agents of torch look every five seconds. Then they must stay in it.
const (
	bound = 90 * time.Second
	stay  = 30 * time.Second
)

func newModel(seed uint64, history *strings.Builder) *model {
	m := &model{
		rand: rand.New(rand.NewPCG(seed, 2)), store: newV2(), history: history,
		finals: map[int]State{}, worlds: map[string]int{}, claims: map[[2]int]string{},
	}
	m.min = 1 + m.rand.IntN(4)
	m.max = m.min + m.rand.IntN(3)
	// A last call shorter than agents take to stop their workers lets worlds form without some, which then ask for
	// another, and so on.
	m.lastCall = time.Duration(4+m.rand.IntN(8)) * time.Second
	m.loss = []float64{0, 0, 0.01, 0.05}[m.rand.IntN(4)]
	m.foreign = []int{0, 0, 1, 3}[m.rand.IntN(4)]
	m.store.wrote = m.wrote
	m.store.do(Action{Kind: Create, Key: "/r/version_counter", Value: "0"})
	m.note("%d to %d agents, last call %s, loss %v, torch %d", m.min, m.max, m.lastCall, m.loss, m.foreign)
	return m
}

// run plays a history: disturbed, and then calm.
func (m *model) run() (tally, error) {
	for range 1 + m.rand.IntN(m.max+1) {
		m.later(m.some(20*time.Second), m.come)
	}
	end := 30*time.Second + m.some(90*time.Second)
	for at := m.some(20 * time.Second); at < end; at += m.some(20 * time.Second) {
		m.later(at, m.disturb)
	}
	m.play(end)
	for _, a := range m.actors {
		m.play(max(m.now, a.frozen))
	}
	m.note("calm")
	m.calm = true
	m.play(m.now + 20*time.Second) // until what was late has come, and what was late for that has expired
	m.converge()
	for _, a := range m.actors {
		a.kill()
	}
	m.sum.worlds = len(m.finals)
	return m.sum, m.err
}

// converge waits until all that can are in one world, and then that they stay, and then that they end together.
func (m *model) converge() {
	for limit := m.now + m.lastCall + bound; m.err == nil && m.now < limit && !m.converged(); {
		for m.count(func(a *actor) bool { return a.machine != nil && !a.leaving }) < m.min {
			m.come()
		}
		m.play(m.now + time.Second)
	}
	switch {
	case m.err != nil:
		return
	case !m.converged() && m.hopeless():
		m.sum.diverged++
		return
	case !m.converged():
		m.fail("no world after %s of calm", m.lastCall+bound)
		return
	}
	m.sum.converged++
	version := m.active().Version
	m.note("converged in version %d", version)
	m.play(m.now + stay)
	if s := m.active(); s.Status != Final || s.Version != version {
		if !m.hopeless() {
			m.fail("version %d does not last: %s", version, s.Raw)
		}
		return
	}
	m.close()
}

// close has one agent close the run. No other can join then.
func (m *model) close() {
	var rest []*actor
	for _, a := range m.actors {
		if a.machine != nil && !a.dead && !a.leaving {
			rest = append(rest, a)
		}
	}
	if len(rest) == 0 {
		return
	}
	m.step(rest[0], Event{Kind: EventClose})
	m.play(m.now + 2*time.Second)
	for _, a := range rest[1:] {
		if !a.ended && !a.dead {
			m.rejoin(a, "the run ends")
		}
	}
	m.play(m.now + 5*time.Second)
	for _, a := range rest {
		if !a.ended && m.err == nil {
			m.fail("%s has not ended", a.name)
		}
	}
}

// converged says whether all of our agents are in one world, except for those beyond the maximum.
func (m *model) converged() bool {
	s := m.active()
	if s.Status != Final || s.Waiting > 0 && s.Participants < m.max {
		return false
	}
	for _, a := range m.actors {
		in := a.working && a.world.Version == s.Version
		if !a.dead && a.machine != nil && !in && (s.Participants < m.max || a.working) {
			return false
		}
	}
	return m.count(func(a *actor) bool { return a.working && a.world.Version == s.Version }) == s.Participants
}

// hopeless says whether agents of torch keep the others from a world, which nobody can help: one beyond the maximum
// disturbs for ever, and those in a world of their own never look up.
func (m *model) hopeless() bool {
	s := m.active()
	foreign := m.count(func(a *actor) bool { return a.torch != nil })
	all := m.count(func(*actor) bool { return true })
	apart := m.count(func(a *actor) bool { return a.torch != nil && a.working && a.world.Version != s.Version })
	return foreign > 0 && all > m.max || apart > 0 && all-apart < m.min
}

// disturb does one random thing.
func (m *model) disturb() {
	var alive []*actor
	for _, a := range m.actors {
		if !a.dead {
			alive = append(alive, a)
		}
	}
	if len(alive) == 0 || m.rand.IntN(3) == 0 && len(alive) <= m.max+1 {
		m.come()
		return
	}
	a := alive[m.rand.IntN(len(alive))]
	switch n := m.rand.IntN(6); {
	case n <= 1 || a.torch != nil:
		m.note("%s is killed", a.name)
		m.kill(a)
	case a.frozen > m.now: // it does nothing by itself
	case n == 2 && a.working:
		m.rejoin(a, "a worker failed")
	case n == 3 && !a.leaving:
		m.note("%s leaves", a.name)
		a.leaving, a.working = true, false
		m.broken(a.world.Version)
		m.step(a, Event{Kind: EventLeave})
	case n == 4:
		a.frozen = m.now + m.some(60*time.Second)
		m.note("%s is stopped until %s", a.name, a.frozen)
	}
}

// come starts a new agent.
func (m *model) come() {
	a := &actor{model: m, name: fmt.Sprintf("a%d", len(m.actors)), watches: map[int]bool{}}
	m.actors = append(m.actors, a)
	if !m.calm && m.rand.IntN(6) < m.foreign {
		m.note("%s of torch comes", a.name)
		a.start()
		return
	}
	a.machine = New(Protocol{Dir: "/r", Token: a.name, Min: m.min, Max: m.max, LastCall: m.lastCall})
	m.rejoin(a, "it comes")
}

// rejoin has a machine ask for a world.
func (m *model) rejoin(a *actor, why string) {
	m.note("%s joins: %s", a.name, why)
	left := a.world.Version
	a.working, a.world = false, Membership{}
	m.broken(left)
	until := m.now + 10*time.Minute
	if !m.calm && m.rand.IntN(4) == 0 {
		until = m.now + m.some(30*time.Second)
	}
	m.step(a, Event{Kind: EventJoin, Until: until})
}

// broken has the workers of a world fail, as one of them is gone.
func (m *model) broken(version int) {
	if version == 0 {
		return
	}
	for _, a := range m.actors {
		if a.dead || !a.working || a.world.Version != version {
			continue
		}
		m.later(m.some(10*time.Second), func() {
			switch {
			case a.dead || !a.working || a.world.Version != version:
			case a.torch != nil:
				a.resume()
			default:
				m.rejoin(a, "its workers failed")
			}
		})
	}
}

// kill ends an agent's process. Where all members are of our kind, workers may not care.
func (m *model) kill(a *actor) {
	w := a.world
	a.kill()
	if !w.Known() || m.rand.IntN(2) == 0 {
		m.broken(w.Version)
	}
}

func (m *model) active() State {
	s, err := ParseState(m.store.nodes["/r/active_version"].value)
	if err != nil {
		return State{}
	}
	return s
}

// wrote checks every state that is written.
func (m *model) wrote(key, value string) {
	if key != "/r/active_version" {
		return
	}
	m.note("state %s", value)
	s, err := ParseState(value)
	if err != nil {
		m.fail("%q is written: %v", value, err)
		return
	}
	if s.Status != Final {
		return
	}
	m.worlds[value] = s.Version
	if was, ok := m.finals[s.Version]; ok {
		if !slices.Equal(was.KeepAlives, s.KeepAlives) || !slices.Equal(was.Agents, s.Agents) {
			m.fail("version %d is final twice: %s, %s", s.Version, was.Raw, s.Raw)
		}
		return
	}
	for v := range m.finals {
		if v > s.Version {
			m.fail("version %d becomes final after version %d", s.Version, v)
		}
	}
	m.finals[s.Version] = s
	if s.Participants < m.min || s.Participants > m.max {
		m.fail("version %d has %d agents", s.Version, s.Participants)
	}
	for rank := range s.Participants {
		if key := fmt.Sprintf("/r/v_%d/rank_%d", s.Version, rank); !slices.Contains(s.KeepAlives, key) {
			m.fail("version %d is without rank %d", s.Version, rank)
		}
	}
}

// final is the version of a state that is one of a world, 0 for others.
func (m *model) final(raw string) int { return m.worlds[raw] }

// claim records that an agent has a rank, which no other may have.
func (m *model) claim(a *actor, w Membership) {
	m.note("%s is %d of %d in version %d", a.name, w.Rank, w.Size, w.Version)
	s, ok := m.finals[w.Version]
	if !ok || s.Participants != w.Size || w.Rank < 0 || w.Rank >= w.Size {
		m.fail("%s is %d of %d in version %d, which was %+v", a.name, w.Rank, w.Size, w.Version, s)
	}
	key := [2]int{w.Version, w.Rank}
	if other := m.claims[key]; other != "" && other != a.name {
		m.fail("%s and %s both have rank %d of version %d", other, a.name, w.Rank, w.Version)
	}
	m.claims[key] = a.name
	a.working, a.world = true, w
	m.later(15*time.Second, func() { // its workers do not find each other where one confirmed and died
		if m.count(func(o *actor) bool { return o.working && o.world.Version == w.Version }) < w.Size {
			m.broken(w.Version)
		}
	})
}

func (m *model) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
		m.note("FAILED: %v", m.err)
	}
}

func (m *model) note(format string, args ...any) {
	if m.history != nil {
		fmt.Fprintf(m.history, "%9.3fs %s\n", m.now.Seconds(), fmt.Sprintf(format, args...))
	}
}

func (m *model) count(of func(*actor) bool) int {
	n := 0
	for _, a := range m.actors {
		if !a.dead && of(a) {
			n++
		}
	}
	return n
}
