//go:build linux

package torch

import (
	"syscall"
	"testing"
	"time"
)

// TestProxySilence: a node falls silent, as a machine does that loses its network or its power: its connections stay
// open, and no collective fails within the half hour that torch waits by default. The agents behind proxies train on
// without it, in a new world that costs none of their restarts.
func TestProxySilence(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			r := silenceRun(t, v, "1:2")
			r.start(proxied)
			r.start(proxied)
			lost := r.await("a world of two agents")[0]
			r.freeze(lost)
			r.await("after rank 0 fell silent")
			r.restarted(0)
			r.finish()
		})
	}
}

// silenceRun is one whose workers have torch's own limits.
func silenceRun(t *testing.T, v version, nodes string) *run {
	t.Helper()
	r := newRun(t, v, "c10d", etcdProcess(t).address, nodes)
	r.conf, r.monitor, r.env = "last_call_timeout=1", "", []string{"TEGEN_TORCH_LIMIT=torch"}
	return r
}

// freeze stops an agent, its proxy and its workers for good, which leaves their connections open.
func (r *run) freeze(name string) {
	r.t.Helper()
	r.mark()
	lost := r.agents[name]
	delete(r.agents, name)
	lost.killed.Store(true)
	lost.signal(syscall.SIGSTOP)
}

// signal sends a signal to a process and to all that it started.
func (p *process) signal(s syscall.Signal) {
	for _, pid := range marked(p.mark) {
		_ = syscall.Kill(pid, s) // it may just have ended
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

// pause stops an agent, its proxy and its workers for a while.
func (r *run) pause(name string, d time.Duration) {
	r.t.Helper()
	r.agents[name].signal(syscall.SIGSTOP)
	time.Sleep(d)
	r.agents[name].signal(syscall.SIGCONT)
}
