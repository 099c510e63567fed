package gangcache

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestModel plays random histories of a small cluster, whose scheduler does what a cache tells it, and looks after
// every step for what must never be: a gang of which a part may bind, a place held for longer than the waiting time,
// sums that a recount does not confirm. In the end, when nothing happens any more, no gang that has room may be without
// it. TEGEN_SEED=n plays one history and prints it; TEGEN_HISTORIES=n plays that many.
func TestModel(t *testing.T) {
	if text := os.Getenv("TEGEN_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		history := &strings.Builder{}
		err = newModel(t, seed, history).run()
		t.Logf("history %d:\n%s", seed, history)
		if err != nil {
			t.Error(err)
		}
		return
	}
	histories := uint64(2000)
	if n, err := strconv.ParseUint(os.Getenv("TEGEN_HISTORIES"), 10, 64); err == nil {
		histories = n
	}
	admitted := 0
	for seed := range histories {
		m := newModel(t, seed, nil)
		err := m.run()
		admitted += m.admitted
		if err == nil && !t.Failed() {
			continue
		}
		history := &strings.Builder{}
		again := newModel(t, seed, history).run()
		t.Fatalf("history %d: %v; played again (TEGEN_SEED=%d): %v\n%s", seed, err, seed, again, history)
	}
	if admitted < int(histories) {
		t.Errorf("%d histories admitted %d gangs: the model tests next to nothing", histories, admitted)
	}
}

// step does one random thing.
func (m *model) step() {
	type deed struct {
		weight int
		do     func()
	}
	deeds := []deed{
		{10, m.create},
		{30, m.cycle},
		{12, m.bind},
		{6, m.letGo},
		{6, m.watch},
		{3, func() { m.pass() }},
		{4, m.remove},
		{2, m.mistake},
		{1, m.edit},
		{1, m.hold},
		{2, m.resize},
		{1, m.restart},
		{1, m.podGroup},
	}
	total := 0
	for _, d := range deeds {
		total += d.weight
	}
	n := m.rand.IntN(total)
	for _, d := range deeds {
		if n -= d.weight; n < 0 {
			d.do()
			return
		}
	}
}

// run plays a history: some random steps, and then nothing but what the scheduler does by itself.
func (m *model) run() error {
	for range 30 + m.rand.IntN(120) {
		m.step()
		if m.check(); m.err != nil {
			return m.err
		}
	}
	m.update()
	// Gangs that are not strict and do not fit try for ever, and take turns with those that do: it may be a while until
	// those come first.
	for steps := 0; steps < 600 || steps < 30000 && m.starved() != ""; steps++ {
		if !m.proceed() {
			break
		}
		if m.check(); m.err != nil {
			return m.err
		}
	}
	for tries := 0; m.current != nil || len(m.active()) > 0; tries++ {
		if m.proceed(); tries > 1000 {
			m.fail("pods are tried again and again while no time passes: %v", m.active()[0].uid)
			return m.err
		}
	}
	m.idle()
	return m.err
}

// update ends what only the outside world does: mistakes are mended, PodGroups made, bindings done.
func (m *model) update() {
	m.note("update")
	for _, g := range m.gangs {
		if g.key.Native {
			g.fromPodGroup = true
			m.apply(m.cache.SetPodGroup(g.key, g.spec, nil, m.now))
		}
	}
	for _, p := range m.pods {
		if p.bad || p.held {
			p.bad, p.held = false, false
			m.enter(p)
		}
		if !p.known {
			m.enter(p)
		}
	}
	for _, p := range m.pods {
		if !p.queued {
			m.enqueue(p)
		}
	}
	m.calm = true
}

// proceed does one thing that the scheduler does by itself; false where there is none left to do.
func (m *model) proceed() bool {
	switch {
	case m.current != nil || len(m.active()) > 0:
		m.cycle()
	case m.some(func(p *pod) bool { return p.rejected }) != nil:
		m.letGo()
	case m.some(func(p *pod) bool { return p.phase == binding }) != nil:
		m.bind()
	case m.some(func(p *pod) bool { return p.phase == bound && !p.seen }) != nil:
		m.watch()
	default:
		return m.pass()
	}
	return true
}

// check looks for what must never be.
func (m *model) check() {
	checkSums(m.t, m.cache)
	if m.t.Failed() && m.err == nil {
		m.err = fmt.Errorf("the sums are wrong")
	}
	for _, p := range m.pods {
		if p.phase == waits && p.until.Before(m.now) {
			m.fail("pod %s waits since %s although its time is over", p.uid, p.since)
		}
		if p.phase == waits && m.now.Sub(p.since) > p.gang.longest {
			m.fail("pod %s holds a place for %s", p.uid, m.now.Sub(p.since))
		}
	}
	if used := m.used(); used > m.places {
		m.fail("%d places hold %d pods: the model is wrong", m.places, used)
	}
}

// starved is a gang that has room and did not get it, "" for none.
func (m *model) starved() string {
	room := m.places
	for _, p := range m.pods {
		if p.phase == binding || p.phase == bound || p.phase == leaves {
			room--
		}
	}
	for _, g := range m.gangs {
		needs, fits := m.needs(g)
		if fits && needs > 0 && needs <= room {
			return fmt.Sprintf("gang %s needs %d of %d free places and does not get them", g.key, needs, room)
		}
	}
	return ""
}

// idle looks for pods that have room and will not get it, as the scheduler has nothing left to do.
func (m *model) idle() {
	if gang := m.starved(); gang != "" {
		m.fail("%s", gang)
	}
	if m.free() == 0 || !m.quiet() {
		return
	}
	for _, p := range m.pods {
		if p.phase == pending && m.alone(p) {
			m.fail("pod %s may go on its own, there is room, and nobody tries it", p.uid)
		}
	}
}

// alone says whether a pod may take a place without others.
func (m *model) alone(p *pod) bool {
	a := m.cache.Attempt(p.uid)
	return a.OK && (len(a.Wants) == 0 || a.Wants[0].Alone)
}

// needs is how many places a gang's group lacks; ok is false where the group cannot be placed.
func (m *model) needs(g *group) (n int, ok bool) {
	for _, other := range m.closure(g) {
		have, want := 0, 0
		for _, p := range m.pods {
			if p.gang != other {
				continue
			}
			switch p.phase {
			case pending, waits:
				want++
			case binding, bound:
				have++
			case cycling, leaves:
			}
		}
		if want+have == 0 {
			return 0, false
		}
		if other.spec.Policy == OnlyWaiting && (other == g || have < other.spec.Min) {
			have = 0
		}
		if other.spec.Policy == OnceSatisfied && other.satisfied {
			continue
		}
		lack := max(other.spec.Min-have, 0)
		if want < lack {
			return 0, false
		}
		n += lack
	}
	return n, true
}

func (m *model) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
		m.note("FAILED: %v", m.err)
	}
}

func (m *model) note(format string, args ...any) {
	if m.history != nil {
		fmt.Fprintf(m.history, "%6.1fs %s\n", m.now.Sub(start).Seconds(), fmt.Sprintf(format, args...))
	}
}

func newModel(t *testing.T, seed uint64, history *strings.Builder) *model {
	m := &model{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), cache: New(), now: start, history: history,
	}
	m.places = 2 + m.rand.IntN(9)
	modes := []Mode{Strict, Strict, NonStrict}
	policies := []Policy{OnceSatisfied, OnceSatisfied, WaitingAndRunning, OnlyWaiting}
	for i := range 2 + m.rand.IntN(3) {
		g := &group{key: Key{Namespace: "a", Name: string(rune('a' + i)), Native: m.rand.IntN(6) == 0}}
		g.spec.Min = 1 + m.rand.IntN(5)
		g.spec.Total = g.spec.Min + m.rand.IntN(3)
		g.spec.Mode, g.spec.Policy = modes[m.rand.IntN(len(modes))], policies[m.rand.IntN(len(policies))]
		if g.key.Native {
			g.spec.Mode, g.spec.Policy = Strict, WaitingAndRunning
		}
		g.spec.Waiting = time.Duration(1+m.rand.IntN(60)) * time.Second
		g.longest = g.spec.Waiting
		if m.rand.IntN(3) == 0 {
			g.spec.Layers = []Layer{{Label: "rack", Required: true}}
		}
		m.gangs = append(m.gangs, g)
	}
	if first, second := m.gangs[0], m.gangs[1]; m.rand.IntN(2) == 0 && !first.key.Native && !second.key.Native {
		first.spec.Groups = []Key{first.key, second.key}
		if m.rand.IntN(3) > 0 {
			second.spec.Groups = first.spec.Groups
		}
	}
	m.note("%d places", m.places)
	for _, g := range m.gangs {
		m.note("gang %s native %v: %+v", g.key, g.key.Native, g.spec)
	}
	return m
}

// quiet says whether the scheduler has nothing left to do.
func (m *model) quiet() bool {
	waits := m.some(func(p *pod) bool { return p.phase == waits })
	return m.current == nil && len(m.active()) == 0 && len(m.timers) == 0 && waits == nil
}
