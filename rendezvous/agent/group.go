package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// group is the workers of this machine in one world. They start together, and the failure of one ends all.
type group struct {
	host    *host
	workers []*worker
	exits   chan *worker // each worker once, when it has exited
	running int
	stopped time.Time // when we began to stop it, zero before
}

// startGroup starts all workers, or none.
func (r *run) startGroup() (*group, error) {
	g := &group{host: r.host, exits: make(chan *worker, r.Agent.Workers)}
	for local := range r.Agent.Workers {
		w, err := r.startWorker(local, g.exits)
		if err != nil {
			g.stop(syscall.SIGKILL, 0, nil)
			return nil, errors.Join(fmt.Errorf("starting worker %d: %w", local, err), g.release())
		}
		g.workers = append(g.workers, w)
		g.running++
	}
	return g, nil
}

func (r *run) startWorker(local int, exits chan<- *worker) (*worker, error) {
	dir, err := r.files.attempt(r.restarts, local)
	if err != nil {
		return nil, err
	}
	w := &worker{host: r.host, local: local, rank: r.world.Base + local, errorFile: dir.errorFile}
	argv := make([]string, len(r.Command))
	for i, a := range r.Command {
		argv[i] = strings.ReplaceAll(a, "${local_rank}", strconv.Itoa(local))
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = r.environ(local, dir.errorFile)
	out, err := r.files.open(w, r.Agent.Role, dir)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out.stdout, out.stderr
	err = w.start(cmd, exits)
	out.started()
	if err != nil {
		out.wait(0)
		return nil, err
	}
	w.output = out
	return w, nil
}

// exited records a worker from exits.
func (g *group) exited(*worker) { g.running-- }

// stop ends the workers that still run: by a signal, and by SIGKILL after the grace. Then nothing runs in any worker's
// process group. Signals received on more meanwhile are forwarded; the last one is returned, nil if there was none.
func (g *group) stop(s syscall.Signal, grace time.Duration, more <-chan os.Signal) (last os.Signal) {
	g.stopped = time.Now()
	g.signal(s)
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	killed := false
	for g.running > 0 {
		select {
		case w := <-g.exits:
			g.exited(w)
		case s := <-more:
			last = s
			if n, ok := s.(syscall.Signal); ok {
				g.signal(n)
			}
		case <-deadline.C:
			g.signal(syscall.SIGKILL)
			killed = true
		}
	}
	if !killed {
		g.end(s, deadline.C)
	}
	for _, w := range g.workers {
		w.kill()
	}
	return last
}

// end waits for processes left in the groups after their workers: a shell that has ended on a signal may leave its
// program running, which gets the same signal and the same time.
func (g *group) end(s syscall.Signal, deadline <-chan time.Time) {
	groups := map[int]bool{}
	for _, w := range g.workers {
		groups[w.cmd.Process.Pid] = true
	}
	for sent := false; groupAlive(groups); sent = true {
		if !sent {
			for pid := range groups {
				_ = signalGroup(pid, s)
			}
		}
		select {
		case <-deadline:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// signal sends one to each worker that still runs.
func (g *group) signal(s syscall.Signal) {
	for _, w := range g.workers {
		w.signal(s)
	}
}

// release reaps the workers, after stop.
func (g *group) release() error {
	var errs []error
	for _, w := range g.workers {
		errs = append(errs, w.release())
	}
	return errors.Join(errs...)
}
