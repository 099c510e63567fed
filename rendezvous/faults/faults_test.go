// Package faults injects random faults into agents and stores, each a process of its own: they are killed, stopped, cut
// off and restarted. No version may have two memberships, and once the faults end the remaining agents must form a
// world.
//
// TEGEN_FAULTS is how long it runs, TEGEN_SEED the seed of its random choices, TEGEN_AGENTS the maximum of agents.
package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

const (
	short   = 9 * time.Second        // without TEGEN_FAULTS
	quiet   = 90 * time.Second       // in which the remaining agents must form a world; two cores may run 50 agents
	between = 300 * time.Millisecond // two faults, at most
)

func TestMain(m *testing.M) {
	if role := os.Getenv("TEGEN_FAULTS_ROLE"); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// member is an agent's process.
type member struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	way     *proxy
	stopped bool
	gone    chan struct{}
}

// scenario is a store, its agents, and what was seen of them.
type scenario struct {
	t       *testing.T
	backend string
	rng     *rand.Rand
	check   *checker
	reports chan report
	members []*member
	address string // of the store
	store   *exec.Cmd
	dir     string
	most    int // agents at a time
	started int
	done    map[string]int // faults, by name
	finals  int
}

func TestFaults(t *testing.T) {
	for _, backend := range []string{"etcd", "etcd-v3"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			run(t, backend)
		})
	}
}

func run(t *testing.T, backend string) {
	seed := number(t, "TEGEN_SEED", uint64(time.Now().UnixNano()))
	length := short
	if text := os.Getenv("TEGEN_FAULTS"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		length = d
	}
	s := &scenario{
		t: t, backend: backend, rng: rand.New(rand.NewPCG(seed, 0)), reports: make(chan report, 1000),
		done: map[string]int{}, dir: t.TempDir(),
	}
	s.most = 5 + s.rng.IntN(int(number(t, "TEGEN_AGENTS", 5))-4)
	least, most := 2, 2+s.most/2+s.rng.IntN(s.most/2)
	t.Logf("seed %d: up to %d agents of %d:%d for %s", seed, s.most, least, most, length)
	s.check = newChecker(least, most)
	s.address = ports.Address(t)
	s.open()
	t.Cleanup(s.killAll)
	for range least + 1 {
		s.join(least, most)
	}
	for begin := time.Now(); time.Since(begin) < length; {
		s.fault(least, most)
		s.watch(time.Duration(s.rng.Int64N(int64(between))))
		if s.rng.IntN(20) == 0 {
			s.converge() // or agents would hardly ever form a world among so many faults
		}
	}
	s.converge()
	t.Logf("seed %d: %d agents, %d worlds seen %d times, faults %v", seed, s.started, len(s.check.worlds), s.finals,
		s.done)
	if s.finals == 0 {
		t.Error("no agent was ever in a world: nothing was tested")
	}
}

// fault injects one fault.
func (s *scenario) fault(least, most int) {
	name := []string{"kill", "leave", "stop", "cut", "restart", "store", "join", "join"}[s.rng.IntN(8)]
	if name == "store" && s.rng.IntN(4) > 0 || name != "join" && len(s.members) == 0 {
		name = "join"
	}
	if name == "join" && len(s.members) >= s.most || name == "kill" && len(s.members) <= least {
		return
	}
	s.done[name]++
	var m *member
	if len(s.members) > 0 {
		m = s.members[s.rng.IntN(len(s.members))]
	}
	switch name {
	case "kill":
		s.kill(m)
	case "leave":
		s.resume(m)
		_, _ = io.WriteString(m.stdin, "leave\n")
		s.wait(m)
	case "stop":
		if !m.stopped && m.cmd.Process.Signal(syscall.SIGSTOP) == nil {
			m.stopped = true
			time.AfterFunc(time.Duration(s.rng.Int64N(int64(8*time.Second))),
				func() { _ = m.cmd.Process.Signal(syscall.SIGCONT) })
		}
	case "cut":
		m.way.cut()
		time.AfterFunc(time.Duration(s.rng.Int64N(int64(6*time.Second))), m.way.heal)
	case "restart":
		_, _ = io.WriteString(m.stdin, "restart\n")
	case "store":
		_ = s.store.Process.Kill()
		_ = s.store.Wait()
		s.open()
	case "join":
		s.join(least, most)
	}
}

// converge ends all faults, and waits until the remaining agents are in one world.
func (s *scenario) converge() {
	for _, m := range s.members {
		s.resume(m)
		m.way.heal()
	}
	least, most := s.check.min, s.check.max
	for len(s.members) < least {
		s.join(least, most)
	}
	deadline := time.Now().Add(quiet)
	for time.Now().Before(deadline) {
		s.watch(50 * time.Millisecond)
		s.reap()
		for len(s.members) < least { // one that had given up before
			s.join(least, most)
		}
		var names []string
		for _, m := range s.members {
			names = append(names, m.name)
		}
		if s.check.converged(names) {
			return
		}
	}
	for _, m := range s.members {
		s.t.Logf("%s: version %d, working %t", m.name, s.check.at[m.name], s.check.working[m.name])
	}
	s.t.Fatalf("%d agents of %d:%d found no world in %s", len(s.members), least, most, quiet)
}

// watch takes reports for a while.
func (s *scenario) watch(d time.Duration) {
	timer := time.After(d)
	for {
		select {
		case r := <-s.reports:
			if r.event == "final" {
				s.finals++
			}
			if err := s.check.step(r); err != nil {
				s.t.Fatal(err)
			}
		case <-timer:
			return
		}
	}
}

func (s *scenario) spawn(role string, spec any) (*exec.Cmd, io.WriteCloser, io.ReadCloser) {
	text, err := json.Marshal(spec)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "TEGEN_FAULTS_ROLE="+role, "TEGEN_FAULTS_SPEC="+string(text))
	cmd.Stderr = log(s.t, s.dir, fmt.Sprintf("%s-%d", role, s.started))
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		s.t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd, in, out
}

// open starts the store, on the data that an earlier one left, and waits until it serves.
func (s *scenario) open() {
	cmd, _, out := s.spawn("store", storeSpec{Backend: s.backend, Listen: s.address, Dir: s.dir})
	s.store = cmd
	ready := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(out).ReadString('\n')
		ready <- err
	}()
	select {
	case err := <-ready:
		if err != nil {
			s.t.Fatal("the store ended before it served: ", err)
		}
	case <-time.After(time.Minute):
		s.t.Fatal("the store did not serve within a minute")
	}
}

// join starts one agent more.
func (s *scenario) join(least, most int) {
	s.started++
	m := &member{name: fmt.Sprintf("agent-%d", s.started), way: newProxy(s.t, s.address), gone: make(chan struct{})}
	spec := agentSpec{
		Name: m.name, Backend: s.backend, Endpoint: m.way.address(), Min: least, Max: most,
		Rate: 0.8 + 0.45*s.rng.Float64(),
	}
	var out io.ReadCloser
	m.cmd, m.stdin, out = s.spawn("agent", spec)
	s.members = append(s.members, m)
	go func() {
		defer close(m.gone)
		d := json.NewDecoder(out)
		for {
			var line struct {
				Event string
				World sighting
				Note  string
			}
			if err := d.Decode(&line); err != nil {
				_ = m.cmd.Wait()
				s.reports <- report{agent: m.name, event: "end"}
				return
			}
			s.reports <- report{agent: m.name, event: line.Event, world: line.World, note: line.Note}
		}
	}()
}

func (s *scenario) resume(m *member) {
	if m.stopped {
		m.stopped = false
		_ = m.cmd.Process.Signal(syscall.SIGCONT)
	}
}

func (s *scenario) kill(m *member) {
	_ = m.cmd.Process.Kill()
	s.wait(m)
}

// wait takes reports until an agent's process has exited.
func (s *scenario) wait(m *member) {
	deadline := time.Now().Add(30 * time.Second)
	for {
		s.watch(10 * time.Millisecond)
		select {
		case <-m.gone:
			s.reap()
			return
		default:
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s did not end", m.name)
		}
	}
}

// reap forgets agents that have ended.
func (s *scenario) reap() {
	var left []*member
	for _, m := range s.members {
		select {
		case <-m.gone:
		default:
			left = append(left, m)
		}
	}
	s.members = left
}

func (s *scenario) killAll() {
	for _, m := range s.members {
		_ = m.cmd.Process.Kill()
		go func() {
			for range s.reports { // so that none of them waits to report
			}
		}()
		<-m.gone
	}
	_ = s.store.Process.Kill()
	_ = s.store.Wait()
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
