// Package agent runs the workers of one machine in step with those of the others: it joins a run through a backend,
// starts one process for each worker with torchrun's environment, watches them, and restarts them after failures and
// whenever the membership changes. A worker is any program that reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
//
// When Run returns, no process of a worker's group is left.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/tegen-dev/tegen/rendezvous"
)

// Config says what to run, and how.
type Config struct {
	Command     []string // program and arguments, in which ${local_rank} is replaced
	Environ     []string // what workers inherit, as KEY=value
	RunID       string
	Agent       rendezvous.Agent // this machine; Workers processes are started, at least 1
	MaxRestarts int              // how often failed workers are restarted
	Signals     []os.Signal      // that stop the agent; each is forwarded to the workers
	Grace       time.Duration    // from the signal that ends workers to SIGKILL
	Barrier     time.Duration    // how long those who succeeded wait for the others' success
	Logs        Logs
	ErrorFile   string   // gets the first failure, torch's TORCHELASTIC_ERROR_FILE of the agent itself
	Guard       []string // command that runs Guard; nil for none
	Log         *slog.Logger

	// Open connects to the run. It is called once, and returns when its context ends.
	Open func(context.Context) (rendezvous.Backend, error)
}

// Logs configures the output of workers.
type Logs struct {
	Out, Err  io.Writer            // of the agent; whole lines, one Write each
	Prefix    string               // of each line; ${rank}, ${local_rank} and ${role_name} are replaced
	Show      func(local int) bool // whose lines are shown; nil for all
	Dir       string               // base of log and error files; "" for a temporary one, kept if workers failed
	Redirects Streams              // to files only
	Tee       Streams              // to files as well
}

// Stopped says that a signal ended the agent. Its workers are gone, and the other agents go on.
type Stopped struct{ Signal os.Signal }

func (s *Stopped) Error() string { return fmt.Sprintf("stopped by %s", signalName(s.Signal)) }

// ExitCode is that of a shell whose command was ended by a signal.
func (s *Stopped) ExitCode() int {
	if n, ok := s.Signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// Run joins the run and works in it until its workers have all succeeded, which is no error, or it ends otherwise: with
// a *Failure of workers, *Stopped, or what the backend returned.
func Run(ctx context.Context, cfg Config) (err error) {
	r := &run{Config: cfg, ctx: ctx, signals: make(chan os.Signal, 8)}
	if len(cfg.Signals) > 0 { // none at all would mean every one
		signal.Notify(r.signals, cfg.Signals...)
		defer signal.Stop(r.signals)
	}
	files, err := newFiles(cfg.Logs, cfg.RunID)
	if err != nil {
		return err
	}
	r.files = files
	defer func() {
		var failure *Failure
		r.files.close(!errors.As(err, &failure))
	}()
	if r.host, err = newHost(cfg.Guard); err != nil {
		return err
	}
	defer r.host.close()
	for step := open; step != nil; {
		step = step(r)
	}
	if r.backend != nil {
		if err := r.backend.Close(); err != nil {
			r.Log.Warn("disconnecting from the store", "error", err)
		}
	}
	return r.err
}

// run is this agent's part in a run.
type run struct {
	Config
	ctx     context.Context
	signals chan os.Signal
	host    *host
	files   *files
	backend rendezvous.Backend

	world    rendezvous.World
	group    *group
	restarts int // used, of MaxRestarts
	err      error
}

// step is a state of the agent: it does its work and returns the next one, nil at the end.
type step func(*run) step

func open(r *run) step {
	r.err = r.await(0, func(ctx context.Context) (err error) {
		r.backend, err = r.Open(ctx)
		return err
	})
	if r.err != nil {
		return nil
	}
	return join
}

func join(r *run) step {
	err := r.await(0, func(ctx context.Context) (err error) {
		r.world, err = r.backend.Join(ctx)
		return err
	})
	var stopped *Stopped
	switch {
	case err == nil:
		return start
	case errors.As(err, &stopped):
		r.err = stopped
		return leave
	default:
		r.err = err // it names joining already
		return nil
	}
}

func start(r *run) step {
	w := r.world
	r.Log.Info("workers start", "version", w.Version, "group_rank", w.Rank, "group_world_size", w.Size, "world_size",
		w.Total,
		"master", fmt.Sprintf("%s:%d", w.MasterAddr, w.MasterPort), "restarts", r.restarts)
	group, err := r.startGroup()
	if err != nil {
		r.err = &Failure{Err: err, At: time.Now()}
		return failed
	}
	r.group = group
	return watch
}

// watch waits for the first of: the end of all workers, the failure of one, another membership, a signal.
func watch(r *run) step {
	for r.group.running > 0 {
		select {
		case w := <-r.group.exits:
			if r.group.exited(w); w.status.code != 0 {
				r.Log.Warn("a worker failed", "rank", w.rank, "local_rank", w.local, "how", w.status.String())
				return r.stop(syscall.SIGTERM, failed)
			}
		case <-r.world.Changed:
			r.Log.Info("the membership has changed", "version", r.world.Version)
			return r.stop(syscall.SIGTERM, join)
		case s := <-r.signals:
			r.err = &Stopped{s}
			return r.stop(s, leave)
		case <-r.ctx.Done():
			r.err = context.Cause(r.ctx)
			return r.stop(syscall.SIGTERM, leave)
		}
	}
	return r.stop(syscall.SIGTERM, finish) // ends processes that the workers have left
}

// failed decides whether workers are restarted. A failure caused by the loss of other agents does not count:
// connections to their workers break before the loss is noticed.
func failed(r *run) step {
	if r.err == nil {
		r.err = r.group.failure()
	}
	if s := r.signalled(); s != nil {
		r.err = &Stopped{s}
		return leave
	}
	select {
	case <-r.world.Changed:
		r.Log.Warn("workers failed as the membership changed", "error", r.err)
		return rejoin
	default:
	}
	if r.restarts >= r.MaxRestarts {
		return fail
	}
	r.restarts++
	r.Log.Warn("workers failed and are restarted", "error", r.err, "restart", r.restarts, "max_restarts",
		r.MaxRestarts)
	return rejoin
}

// signalled returns a signal that was received. One that has ended a worker may have been sent to all processes at
// once: then it waits for the agent's own, as the other agents should go on.
func (r *run) signalled() os.Signal {
	var wait time.Duration
	var f *Failure
	if errors.As(r.err, &f) && f.Code < 0 && slices.Contains(r.Signals, os.Signal(syscall.Signal(-f.Code))) {
		wait = time.Second
	}
	select {
	case s := <-r.signals:
		return s
	default:
	}
	select {
	case s := <-r.signals:
		return s
	case <-time.After(wait):
		return nil
	}
}

func rejoin(r *run) step {
	r.err, r.group = nil, nil
	return join
}

// finish waits for the others' success. The outcome of the wait does not change our own.
func finish(r *run) step {
	err := r.await(r.Barrier, r.backend.Finish)
	var stopped *Stopped
	if errors.As(err, &stopped) {
		r.err = stopped
		return leave
	}
	if err != nil {
		r.Log.Warn("waiting for the other agents' success", "error", err)
	}
	return nil
}

// fail ends the run for all.
func fail(r *run) step {
	var failure *Failure
	if errors.As(r.err, &failure) {
		if err := failure.write(r.ErrorFile); err != nil {
			r.Log.Warn("recording the failure", "error", err)
		}
	}
	if err := r.await(closing, r.backend.Fail); err != nil {
		r.Log.Warn("closing the run", "error", err)
	}
	return nil
}

// closing is how long the store may take for the last requests.
const closing = 10 * time.Second

func leave(r *run) step {
	// a signal was received: others do not matter
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), closing)
	defer cancel()
	if err := r.backend.Leave(ctx); err != nil {
		r.Log.Warn("leaving the run", "error", err)
	}
	return nil
}

// stop ends the remaining workers with their groups, and continues with next. Signals received meanwhile are forwarded
// to them, and end the agent.
func (r *run) stop(s os.Signal, next step) step {
	n, ok := s.(syscall.Signal)
	if !ok {
		n = syscall.SIGTERM
	}
	late := r.group.stop(n, r.Grace, r.signals)
	if err := r.group.release(); err != nil {
		r.Log.Warn("releasing workers", "error", err)
	}
	if late != nil && r.err == nil {
		r.err = &Stopped{late}
		return leave
	}
	return next
}

// await calls what waits for others, at most for a time unless that is 0, and has a signal end it. The error is then
// *Stopped.
func (r *run) await(limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	if limit > 0 {
		timed, release := context.WithTimeout(ctx, limit)
		defer release()
		ctx = timed
	}
	returned, watched := make(chan struct{}), make(chan *Stopped, 1)
	go func() {
		select {
		case s := <-r.signals:
			stopped := &Stopped{s}
			cancel(stopped)
			watched <- stopped
		case <-returned:
			watched <- nil
		}
	}()
	err := call(ctx)
	close(returned)
	if stopped := <-watched; stopped != nil {
		return stopped
	}
	return err
}
