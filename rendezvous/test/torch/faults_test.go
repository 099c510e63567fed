//go:build linux

package torch

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const fewestAgents, mostAgents = 3, 6

// way is how agents reach the state of their run.
type way struct {
	kind     kind
	faults   []string
	longest  time.Duration // for which an agent is stopped or cut off
	prepared func(t *testing.T, v version) *chaos
}

// ways have different faults. A torchrun without a proxy ends when it cannot reach its store: there one gateway of two
// is lost at a time, and no agent is cut off.
var ways = map[string]way{
	"etcd":     {proxied, []string{"kill", "stop", "cut", "join", "etcd"}, 14 * time.Second, behindEtcd},
	"gateways": {proxied, []string{"kill", "stop", "cut", "join", "etcd", "gateway"}, 14 * time.Second, behindGateways},
	"keys":     {torchrun, []string{"kill", "stop", "join", "gateway"}, 5 * time.Second, behindKeysAPI},
}

// TestFaults: agents of torch and their servers are killed, stopped, cut off and restarted at random. No version of the
// rendezvous has two memberships. Once the faults end, the remaining agents form one world.
//
// TEGEN_FAULTS is how long that lasts, TEGEN_SEED the seed of its random choices.
func TestFaults(t *testing.T) {
	start(t)
	length, seed := 40*time.Second, uint64(time.Now().UnixNano())
	var err error
	if text := os.Getenv("TEGEN_FAULTS"); text != "" {
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("TEGEN_FAULTS: %v", err)
		}
	}
	if text := os.Getenv("TEGEN_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TEGEN_SEED: %v", err)
		}
	}
	for name, w := range ways {
		for _, v := range versions {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				t.Logf("seed %d: faults for %s", seed, length)
				c := w.prepared(t, v)
				c.way, c.rng = w, rand.New(rand.NewPCG(seed, 0))
				c.play(length)
			})
		}
	}
}

// behindEtcd is a run of agents on a network whose proxies use an etcd.
func behindEtcd(t *testing.T, v version) *chaos {
	r, etcd := networkRun(t, v, "2:6")
	return newChaos(r, etcd)
}

// behindGateways is such a run whose proxies use two gateways to the etcd.
func behindGateways(t *testing.T, v version) *chaos {
	r, etcd := networkRun(t, v, "2:6")
	c, addresses := newChaos(r, etcd), []string(nil)
	for range 2 {
		g := newGate(t, "--store=etcd", "--endpoints="+etcd.address)
		_, port, err := net.SplitHostPort(g.address)
		if err != nil {
			t.Fatal(err)
		}
		g.address = r.network.prefix + "1:" + port
		g.command = append(g.command, "--listen-proxies="+g.address)
		g.start()
		g.ready = strings.TrimSuffix(g.ready, "readyz") + "healthz" // it may be started again while the etcd is away
		c.gateways, addresses = append(c.gateways, g), append(addresses, g.address)
	}
	r.endpoint = strings.Join(addresses, ",")
	return c
}

// behindKeysAPI is a run of agents that use the keys API of two gateways.
func behindKeysAPI(t *testing.T, v version) *chaos {
	both := gateways(t, false)
	c := newChaos(newRun(t, v, "etcd", forwarder(t, both[:]...), "2:6"), nil)
	c.gateways = both[:]
	return c
}

// chaos is a run and what happens to it.
type chaos struct {
	*run
	way      way
	rng      *rand.Rand
	etcd     *server
	gateways []*server

	repairs []repair
	logs    map[string]string // of all agents that were ever started
	done    map[string]int    // faults, by name
}

// repair ends a fault.
type repair struct {
	what string // of which there is one at a time
	at   time.Time
	do   func()
}

func newChaos(r *run, etcd *server) *chaos {
	return &chaos{run: r, etcd: etcd, logs: map[string]string{}, done: map[string]int{}}
}

// play starts agents, injects faults for a time, and checks what the agents and their workers report.
func (c *chaos) play(length time.Duration) {
	c.t.Helper()
	for range fewestAgents {
		c.join()
	}
	c.converge("at the beginning")
	for begin := time.Now(); time.Since(begin) < length; {
		c.fault()
		c.pass(c.upTo(5 * time.Second))
		if c.rng.IntN(8) == 0 { // otherwise agents would hardly ever form a world among so many faults
			c.converge("in between")
		}
	}
	c.converge("at the end")
	c.t.Logf("%d agents, %d worlds, faults %v", c.started, c.compare(), c.done)
	c.finish()
}

// fault injects one fault.
func (c *chaos) fault() {
	c.t.Helper()
	what := c.way.faults[c.rng.IntN(len(c.way.faults))]
	names := c.living()
	name := names[c.rng.IntN(len(names))]
	a, away := c.agents[name], c.upTo(c.way.longest)
	server := c.etcd
	if what == "gateway" {
		server = c.gateways[c.rng.IntN(len(c.gateways))]
	}
	switch {
	case what == "join" && len(names) < mostAgents, what == "kill" && len(names) == fewestAgents:
		what = "join"
		c.join()
	case what == "kill" || what == "join":
		what = "kill"
		c.kill(name)
	case what == "stop" && c.broken("stop "+name, away, func() { a.signal(syscall.SIGCONT) }):
		a.signal(syscall.SIGSTOP)
	case what == "cut" && c.broken("cut "+name, away, func() { c.network.mend(a.host) }):
		c.network.cut(a.host)
	case (what == "etcd" || what == "gateway") && c.broken(what, min(away, 8*time.Second), server.start):
		server.kill()
	default: // it is broken already
		return
	}
	c.done[what]++
	c.t.Logf("%s: %s (%s)", time.Now().Format("15:04:05.0"), what, name)
}

func (c *chaos) join() {
	c.t.Helper()
	name := c.start(c.way.kind)
	c.logs[name] = c.agents[name].log
}

func (c *chaos) upTo(d time.Duration) time.Duration { return time.Duration(c.rng.Int64N(int64(d))) }

// broken notes how a fault ends, unless there is such a fault.
func (c *chaos) broken(what string, away time.Duration, do func()) bool {
	if slices.ContainsFunc(c.repairs, func(r repair) bool { return r.what == what }) {
		return false
	}
	c.repairs = append(c.repairs, repair{what, time.Now().Add(away), do})
	return true
}

// pass lets time pass, and ends the faults whose time has come.
func (c *chaos) pass(d time.Duration) {
	c.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		c.repair(time.Now())
		c.alive()
	}
}

func (c *chaos) repair(until time.Time) {
	c.repairs = slices.DeleteFunc(c.repairs, func(r repair) bool {
		if r.at.After(until) {
			return false
		}
		r.do()
		return true
	})
}

// alive fails the test where an agent has ended.
func (c *chaos) alive() {
	c.t.Helper()
	for name, a := range c.agents {
		if a.ended() {
			c.t.Fatalf("agent %s has ended (%v)", name, a.cmd.ProcessState)
		}
	}
}

// converge ends all faults, and waits until the workers of all agents are in one world.
func (c *chaos) converge(when string) {
	c.t.Helper()
	c.repair(time.Now().Add(time.Hour))
	for begin := time.Now(); ; time.Sleep(500 * time.Millisecond) {
		c.alive()
		c.replaceStuck()
		last := map[string]sum{}
		for _, s := range c.sums() {
			if s.Time > float64(begin.UnixMilli())/1000 {
				last[s.Node] = s
			}
		}
		world, in := int64(0), 0
		for _, s := range last {
			if world == 0 || s.World == world {
				world, in = s.World, in+1
			}
		}
		if names := c.living(); in == len(last) && in == len(names) && last[names[0]].Size == in {
			c.t.Logf("%5.1f s  %s: one world of %d", time.Since(begin).Seconds(), when, in)
			break
		}
		if time.Since(begin) > worldLimit {
			c.t.Fatalf("%s: no world of %v after %s; the last sums are %+v", when, c.living(), worldLimit, last)
		}
	}
	c.compare()
}

// replaceStuck replaces agents of backend etcd that wait for a peer which has ended. Once a version is complete its
// agents exchange ranks by the store, and torch has no way out: an agent waits for the others' keys for 300 s and then
// ends (synchronize in torch/distributed/elastic/utils/store.py). A pod would then be started again.
func (c *chaos) replaceStuck() {
	c.t.Helper()
	members := map[string][]string{} // by version
	version := map[string]string{}   // in which an agent exchanges ranks
	for name, log := range c.logs {
		text := read(c.t, log)
		last := finalVersion.FindAllStringSubmatchIndex(text, -1)
		if len(last) == 0 {
			continue
		}
		at := last[len(last)-1]
		number := text[at[2]:at[3]]
		members[number] = append(members[number], name)
		if !strings.Contains(text[at[1]:], "Rendezvous complete for workers") {
			version[name] = number
		}
	}
	for name, number := range version {
		ended := func(other string) bool { return c.agents[other] == nil }
		if c.agents[name] == nil || !slices.ContainsFunc(members[number], ended) {
			continue
		}
		c.t.Logf("%s waits in version %s for a peer that has ended: it is replaced", name, number)
		c.kill(name)
		c.join()
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What agents log once they are in a version. Backend etcd has two lines, c10d has one, and its proxies say whom they
// evict.
var (
	joinedRound   = regexp.MustCompile(`'([^']+)' has joined round (\d+) of .* as rank (\d+) in a world of size (\d+)`)
	evictedNodes  = regexp.MustCompile(`evicted silent nodes: .* nodes=\[([^\]]*)\]`)
	joinedVersion = regexp.MustCompile(`Joined rendezvous version (\d+) as rank (\d+)\.`)
	finalVersion  = regexp.MustCompile(`Rendezvous version (\d+) is complete\. .*'participants': \[([\d, ]+)\]`)
)

// membership is what one agent or worker reports of a world.
type membership struct{ rank, size int }

// compare fails the test where two memberships of one version of the rendezvous, or of one world of workers, differ in
// its size, or have the same rank. It returns the number of versions. Torch takes an evicted node out of a round that
// is complete, and whoever reads its state after that is told of fewer nodes
// (_BackendRendezvousStateHolder._sanitize in dynamic_rendezvous.py): no workers train in a world of that size.
func (c *chaos) compare() int {
	c.t.Helper()
	worlds := map[string]map[string]membership{}
	left := map[string]int{} // nodes that were evicted from a round, at least
	note := func(world, node string, m membership) {
		if worlds[world] == nil {
			worlds[world] = map[string]membership{}
		}
		worlds[world][node] = m
		for other, o := range worlds[world] {
			if max(o.size, m.size)-min(o.size, m.size) > left[world] || (o.rank == m.rank) != (other == node) ||
				m.rank >= m.size+left[world] {
				c.t.Errorf("%s: %s has rank %d of %d, and %s has rank %d of %d", world, node, m.rank, m.size, other,
					o.rank, o.size)
			}
		}
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			c.t.Fatal(err)
		}
		return n
	}
	texts, evicted := map[string]string{}, map[string]bool{}
	for name, log := range c.logs {
		texts[name] = read(c.t, log)
		for _, m := range evictedNodes.FindAllStringSubmatch(texts[name], -1) {
			for _, node := range strings.Fields(m[1]) {
				evicted[node] = true
			}
		}
	}
	for _, text := range texts {
		rounds := map[string]bool{} // torch logs each twice
		for _, m := range joinedRound.FindAllStringSubmatch(text, -1) {
			if evicted[m[1]] && !rounds[m[2]] {
				rounds[m[2]] = true
				left["round "+m[2]]++
			}
		}
	}
	for name, text := range texts {
		rank := 0
		for line := range strings.Lines(text) {
			if m := joinedRound.FindStringSubmatch(line); m != nil {
				note("round "+m[2], name, membership{number(m[3]), number(m[4])})
			} else if m := joinedVersion.FindStringSubmatch(line); m != nil {
				rank = number(m[2])
			} else if m := finalVersion.FindStringSubmatch(line); m != nil {
				note("version "+m[1], name, membership{rank, 1 + strings.Count(m[2], ",")})
			}
		}
	}
	rounds := len(worlds)
	if rounds == 0 {
		c.t.Fatal("no agent has logged that it is in a version: nothing was tested")
	}
	for _, s := range c.sums() {
		note(fmt.Sprint("world ", s.World), s.Node, membership{s.Rank, s.Size})
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
	return rounds
}
