package main

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

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/agent"
)

const runLong = `run starts the workers of this machine, and keeps them in step with those of
other machines: with torchrun's flags, its PET_* variables and its environment
for workers, for any program. Flags win over variables; - and _ are the same.

Each worker finds RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
torchrun's other variables in its environment. ${local_rank} in an argument is
replaced. When a worker fails, those of this machine are started anew, as often
as --max-restarts says; when machines come or go, all are, and that does not
count. Signals are handed on to the workers, which have --shutdown-timeout to
end; then this agent leaves, and the others go on. Under Kubernetes keep it
some seconds below terminationGracePeriodSeconds.

--rdzv-backend etcd speaks PyTorch's own protocol, in one world with torchrun
--rdzv_backend=etcd, by etcd's v2 API or 'tegen-rendezvous serve'. etcd-v3 is
for worlds of tegen-rendezvous alone: it needs an etcd, and is much faster. The
password of the user in --rdzv-conf may be in TEGEN_RENDEZVOUS_PASSWORD instead.

Exit codes: 0 all workers succeeded, 1 the job failed, 2 wrong command line,
128+n ended by signal n.`

const runExample = `  # Two workers on this machine, with nothing installed
  tegen-rendezvous run --standalone --nproc-per-node 2 -- python train.py

  # One of two to four machines
  tegen-rendezvous run --nnodes 2:4 --nproc-per-node gpu --max-restarts 3 \
    --rdzv-backend etcd-v3 --rdzv-endpoint etcd:2379 --rdzv-id imagenet -- python train.py`

func newRunCmd(s streams) *cobra.Command {
	o := newRunOptions()
	cmd := &cobra.Command{
		Use:     "run [flags] [--] COMMAND [ARGUMENT...]",
		Short:   "Start the workers of this machine, in step with those of others",
		Long:    runLong,
		Example: runExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.guard {
				return agent.Guard(s.in)
			}
			if err := o.complete(cmd.Flags(), os.LookupEnv); err != nil {
				return usageError{err}
			}
			if len(args) == 0 {
				return usagef("no command given: tegen-rendezvous run [flags] -- COMMAND")
			}
			if _, err := exec.LookPath(args[0]); err != nil { // before others wait for us
				return fmt.Errorf("finding the command: %w", err)
			}
			return runRun(cmd.Context(), s, o, args)
		},
	}
	o.add(cmd.Flags())
	return cmd
}

func runRun(ctx context.Context, s streams, o *runOptions, command []string) error {
	if ctx == nil {
		ctx = context.Background()
	}
	var mu sync.Mutex // standard output and error may be one pipe, and a log's line may come into a worker's
	out, errs := lockedWriter{&mu, s.out}, lockedWriter{&mu, s.err}
	log := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: logLevel(os.Getenv("LOGLEVEL"))}))
	if o.standalone {
		o.rdzvID = "standalone-" + strings.ToLower(rand.Text()[:8])
	}
	host, _ := os.Hostname()
	self := rendezvous.Agent{
		ID: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:8])), Host: o.address(), Role: o.role, Workers: o.workers,
	}
	guard, err := guardCommand()
	if err != nil {
		return err
	}
	err = agent.Run(ctx, agent.Config{
		Command: command, Environ: workersEnviron(os.Environ()), RunID: o.rdzvID, Agent: self, MaxRestarts: o.maxRestarts, Signals: o.signalList,
		Grace: o.shutdown.Duration, Barrier: o.conf.barrier, ErrorFile: os.Getenv("TORCHELASTIC_ERROR_FILE"), Guard: guard, Log: log.With("run", o.rdzvID),
		Logs: agent.Logs{
			Out: out, Err: errs, Prefix: o.prefix, Show: o.show(), Dir: o.logDir, Redirects: o.redirectStreams, Tee: o.teeStreams,
		},
		Open: func(ctx context.Context) (rendezvous.Backend, error) { return o.open(ctx, self, log) },
	})
	switch {
	case errors.Is(err, rendezvous.ErrClosed):
		return fmt.Errorf("%w; one that has ended is not joined again: give another --rdzv-id", err)
	case errors.Is(err, rendezvous.ErrTimeout):
		return fmt.Errorf("%w; --nnodes asks for at least %d, and join_timeout in --rdzv-conf says how long they have", err, o.least)
	}
	return err
}

// workersEnviron is what workers inherit: all but the store's password, which is for this agent alone.
func workersEnviron(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool { return strings.HasPrefix(v, passwordVariable+"=") })
}

// guardCommand is this binary again. PID 1 needs none: with it ends all that runs in its container.
func guardCommand() ([]string, error) {
	if os.Getpid() == 1 {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return []string{self, "run", "--guard"}, nil
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

// logLevel reads torch's variable: Python's names, in any case.
func logLevel(name string) slog.Level {
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
