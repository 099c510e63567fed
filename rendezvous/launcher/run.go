package launcher

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/agent"
	"github.com/tegen-dev/tegen/rendezvous/internal/names"
)

// Process is what an agent is started in.
type Process struct {
	Command  []string // of the workers
	Environ  []string // what workers inherit, but for the store's password
	Guard    []string // a program that calls agent.Guard; nil for none
	Out, Err io.Writer
}

// Run joins the run and starts the workers, until all have ended. The options are complete.
func (o *Options) Run(ctx context.Context, p Process) error {
	if _, err := exec.LookPath(p.Command[0]); err != nil { // before others wait for us
		return fmt.Errorf("finding the command: %w", err)
	}
	if o.standalone {
		o.rdzvID = "standalone-" + random()
	}
	host, _ := os.Hostname()
	self := rendezvous.Agent{
		ID: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), random()), Host: o.address(), Role: o.role, Workers: o.workers,
	}
	err := agent.Run(ctx, o.config(p, self))
	switch {
	case errors.Is(err, rendezvous.ErrClosed):
		return fmt.Errorf("%w; one that has ended is not joined again: give another --rdzv-id", err)
	case errors.Is(err, rendezvous.ErrTimeout):
		return fmt.Errorf("%w; --nnodes asks for at least %d, and join_timeout in --rdzv-conf says how long they have",
			err, o.least)
	}
	return err
}

func random() string { return strings.ToLower(rand.Text()[:8]) }

func (o *Options) config(p Process, self rendezvous.Agent) agent.Config {
	var mu sync.Mutex // both may be one pipe, and a log's line may come into a worker's
	out, errs := lockedWriter{&mu, p.Out}, lockedWriter{&mu, p.Err}
	log := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: parseLogLevel(o.logLevel)}))
	return agent.Config{
		Command: p.Command, Environ: workersEnviron(p.Environ), RunID: o.rdzvID, Agent: self,
		MaxRestarts: o.maxRestarts, Signals: o.signalList, Grace: o.shutdown.Duration, Barrier: o.conf.barrier,
		ErrorFile: o.errorFile, Guard: p.Guard, Log: log.With("run", o.rdzvID),
		Logs: agent.Logs{
			Out: out, Err: errs, Prefix: o.prefix, Show: o.show(), Dir: o.logDir,
			Redirects: o.redirectStreams, Tee: o.teeStreams,
		},
		Open: func(ctx context.Context) (rendezvous.Backend, error) { return o.open(ctx, self, log) },
	}
}

// show reports whose lines are shown; nil for all.
func (o *Options) show() func(int) bool {
	if o.shown == nil {
		return nil
	}
	return func(local int) bool { return slices.Contains(o.shown, local) }
}

// workersEnviron is what workers inherit: all but the store's password, which is for this agent alone.
func workersEnviron(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool {
		return strings.HasPrefix(v, names.RendezvousPassword+"=")
	})
}

// lockedWriter is one of several that take turns.
type lockedWriter struct {
	mu *sync.Mutex
	to io.Writer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// parseLogLevel reads torch's variable: Python's names, in any case.
func parseLogLevel(name string) slog.Level {
	switch strings.ToUpper(name) {
	case "DEBUG":
		return slog.LevelDebug
	case "WARNING", "WARN":
		return slog.LevelWarn
	case "ERROR", "CRITICAL", "FATAL":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}
