//go:build linux

package torch

import (
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// TestProxySilence: a node is lost, with rank 0 on it. The workers have torch's own limit for a collective, which is
// half an hour. Where the node's connections stay open, as they do when a machine loses its power or its network, the
// agents behind proxies form a new world without using a restart. Where the node's kernel closes them the worker of the
// other node fails, and torch counts that.
func TestProxySilence(t *testing.T) {
	start(t)
	for name, c := range map[string]struct {
		lose     func(r *run, name string)
		restarts int
	}{
		"stopped": {func(r *run, name string) { r.lose(name).signal(syscall.SIGSTOP) }, 0},
		"cut":     {func(r *run, name string) { r.network.cut(r.lose(name).host) }, 0},
		"killed":  {func(r *run, name string) { r.kill(name) }, 1},
	} {
		for _, v := range versions {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				r, _ := networkRun(t, v, "1:2")
				r.start(proxied)
				r.start(proxied)
				lost := r.await("a world of two agents")[0]
				c.lose(r, lost)
				at := r.event
				r.await("after rank 0 was " + name)
				r.noticed(at)
				r.restarted(c.restarts)
				r.finish()
			})
		}
	}
}

// TestProxySurvivors: two of three nodes meet in the next world, which needs both, and neither uses a restart.
func TestProxySurvivors(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			r, _ := networkRun(t, v, "2:3")
			for range 3 {
				r.start(proxied)
			}
			r.network.cut(r.lose(r.await("a world of three agents")[0]).host)
			at := r.event
			r.await("after rank 0 was cut off")
			r.noticed(at)
			r.restarted(0)
			r.finish()
		})
	}
}

// TestProxyStop: the kubelet sends SIGTERM to the proxy of one node of three. The others form a new world, and the
// proxy ends with torchrun's exit code for a signal. The workers of the stopped node end first, so that those of the
// others may fail, which is a restart.
func TestProxyStop(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			r, _ := networkRun(t, v, "2:3")
			for range 3 {
				r.start(proxied)
			}
			stopped := r.lose(r.await("a world of three agents")[0])
			if err := stopped.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := stopped.wait(t, endLimit); code != 1 {
				t.Errorf("the proxy ended with %d, want 1", code)
			}
			t.Logf("%5.1f s  the proxy has ended", time.Since(r.event).Seconds())
			r.await("after SIGTERM to the proxy of rank 0")
			r.restarted(1)
			r.finish()
		})
	}
}

// TestProxyStuck: workers that handle SIGTERM, which they cannot do in a collective that waits for a lost node, are
// killed. Torch's agent does that after 30 s.
func TestProxyStuck(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			r, _ := networkRun(t, v, "1:2")
			r.env = append(r.env, "TEGEN_TORCH_TERM=1")
			if grace := os.Getenv("TEGEN_RENDEZVOUS_WORKER_GRACE"); grace != "" {
				r.env = append(r.env, "TEGEN_RENDEZVOUS_WORKER_GRACE="+grace)
			}
			r.start(proxied)
			r.start(proxied)
			r.network.cut(r.lose(r.await("a world of two agents")[0]).host)
			at := r.event
			r.await("after rank 0 was cut off")
			r.noticed(at)
			r.restarted(0)
			r.finish()
		})
	}
}

// TestProxyReturn: a node that was cut off for so long that it was evicted joins again. That uses a restart of an agent
// only if the other node resets the connections of its workers before the agent has read the new state.
func TestProxyReturn(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			r, _ := networkRun(t, v, "1:2")
			r.start(proxied)
			r.start(proxied)
			name := r.await("a world of two agents")[0]
			a := r.agents[name]
			old := r.world
			r.network.cut(r.lose(name).host)
			r.await("after rank 0 was cut off")
			r.mark()
			if slices.ContainsFunc(r.sums(), func(s sum) bool { return s.Node == name && s.World != old }) {
				t.Fatal("the node that was cut off is in another world")
			}
			r.agents[name] = a
			r.network.mend(a.host)
			r.await("after it came back")
			r.restarted(1)
			r.finish()
		})
	}
}

// TestProxyPartition: of two nodes, where a world needs two, neither goes on without the other. When the network is
// back the world goes on as it was.
func TestProxyPartition(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			r, _ := networkRun(t, v, "2:2")
			r.start(proxied)
			r.start(proxied)
			name := r.await("a world of two agents")[0]
			r.mark()
			r.network.cut(r.agents[name].host)
			time.Sleep(14 * time.Second)
			r.network.mend(r.agents[name].host)
			r.goesOn("after rank 0 was cut off for 14 s")
			r.restarted(0)
			r.finish()
		})
	}
}

// TestProxyNewcomer: an etcd was away for longer than torch's keep-alives, 15 s. The agents of the nodes that train
// notice a node that joins afterwards.
func TestProxyNewcomer(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			r, etcd := networkRun(t, v, "1:3")
			r.start(proxied)
			r.start(proxied)
			r.await("a world of two agents")
			r.mark()
			etcd.kill()
			time.Sleep(20 * time.Second)
			etcd.start()
			r.goesOn("after the etcd was killed for 20 s")
			r.mark()
			r.start(proxied)
			r.await("after an agent came")
			r.restarted(0)
			r.finish()
		})
	}
}

// TestProxyAbsence: what is away for 5 s is not lost, and the world goes on as it was. TEGEN_TORCH_ROUNDS says how
// often each is away.
func TestProxyAbsence(t *testing.T) {
	start(t)
	rounds := 1
	if text := os.Getenv("TEGEN_TORCH_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			r, etcd := networkRun(t, v, "1:2")
			r.start(proxied)
			r.start(proxied)
			node := r.agents[r.await("a world of two agents")[0]]
			for range rounds {
				for what, away := range map[string][2]func(){
					"rank 0 was stopped":   stopped(func() *process { return node.process }),
					"rank 0 was cut off":   r.network.without(node.host),
					"the etcd was stopped": stopped(func() *process { return etcd.process }),
					"the etcd was cut off": r.network.without(here),
					"the etcd was killed":  {func() { etcd.kill() }, func() { etcd.start() }},
				} {
					r.mark()
					away[0]()
					time.Sleep(5 * time.Second)
					away[1]()
					r.goesOn("after " + what + " for 5 s")
				}
			}
			r.restarted(0)
			r.finish()
		})
	}
}

// stopped stops a process with all that it started, and lets them go on. A server's process is another after each
// start.
func stopped(p func() *process) [2]func() {
	return [2]func(){func() { p().signal(syscall.SIGSTOP) }, func() { p().signal(syscall.SIGCONT) }}
}

// without cuts a host off, and connects it again.
func (n *network) without(h host) [2]func() {
	return [2]func(){func() { n.cut(h) }, func() { n.mend(h) }}
}

// networkRun is a run on a network, before an etcd on this machine. Its workers have torch's own limits.
func networkRun(t *testing.T, v version, nodes string) (*run, *server) {
	t.Helper()
	n := newNetwork(t)
	_, port, err := net.SplitHostPort(ports.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	etcd := etcdAt(t, n.prefix+"1:"+port)
	r := newRun(t, v, "c10d", etcd.address, nodes)
	r.conf, r.monitor, r.env, r.network = "last_call_timeout=1", "", []string{"TEGEN_TORCH_LIMIT=torch"}, n
	return r, etcd
}

// lose takes an agent for lost.
func (r *run) lose(name string) *agent {
	r.t.Helper()
	r.mark()
	lost := r.agents[name]
	delete(r.agents, name)
	lost.killed.Store(true)
	return lost
}

// signal sends a signal to a process and to all that it started.
func (p *process) signal(s syscall.Signal) {
	for _, pid := range marked(p.mark) {
		_ = syscall.Kill(pid, s) // it may just have ended
	}
}

// noticed prints when the proxies of the living agents have evicted the lost one.
func (r *run) noticed(lost time.Time) {
	r.t.Helper()
	for _, name := range r.living() {
		text, err := os.ReadFile(r.agents[name].log)
		if err != nil {
			r.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			stamp, _, ok := strings.Cut(strings.TrimPrefix(line, "time="), " ")
			at, err := time.Parse(time.RFC3339Nano, stamp)
			if ok && err == nil && strings.Contains(line, "evicted silent nodes") {
				r.t.Logf("%5.1f s  %s has evicted it", at.Sub(lost).Seconds(), name)
			}
		}
	}
}

// restarted checks how often the agents of the last world have restarted their workers because those failed.
func (r *run) restarted(most int) {
	r.t.Helper()
	for _, s := range r.sums() {
		if s.World == r.world && s.Restarts > most {
			r.t.Fatalf("agent %s has used %d restarts, want at most %d", s.Node, s.Restarts, most)
		}
	}
}
