package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/internal/names"
	"github.com/tegen-dev/tegen/rendezvous/proxystore"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// Process has the environment and the streams of the command.
type Process struct {
	Environ  []string // the proxy's own; the command does not inherit etcd's password
	In       io.Reader
	Out, Err io.Writer
}

// flushLimit is how long the proxy waits after the command has ended until its last writes are in the etcd.
const flushLimit = 10 * time.Second

// exitError is an error with the exit code of the command.
type exitError struct {
	text string
	code int
}

func (e exitError) Error() string { return e.text }
func (e exitError) ExitCode() int { return e.code }

func bySignal(s os.Signal, what string) error {
	number, _ := s.(syscall.Signal)
	return exitError{fmt.Sprintf("%s: %s", what, s), 128 + int(number)}
}

func secret(name string) bool { return name == names.RendezvousPassword }

// Run starts the command once the etcd answers, and returns how it ended. The options are complete.
func (o *Options) Run(p Process) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	return o.start(p, signals)
}

func (o *Options) start(p Process, signals chan os.Signal) error {
	if _, err := exec.LookPath(o.launcher.args[0]); err != nil {
		return fmt.Errorf("finding the command: %w", err)
	}
	log := slog.New(slog.NewTextHandler(p.Err, nil)).With("run", o.run)
	client, err := o.connect(signals, log)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is under way
	if err := o.permitted(client); err != nil {
		return err
	}
	if o.silence > 0 && o.minNodes == 0 {
		log.Warn("silent nodes are not evicted: the command does not show how many nodes a world needs. " +
			"Set PET_NNODES to torchrun's --nnodes")
	}
	var command command
	options := o.engine(log)
	options.Stop = func() {
		if n := killWorkers(int(command.process.Load()), o.run); n > 0 {
			log.Warn("killed workers that were still running after the eviction of a node", "workers", n,
				"grace", o.grace.String())
		}
	}
	options.Restart = func() {
		killWorkers(int(command.process.Load()), o.run) // they would outlive it
		if command.kill() {
			log.Warn("killed the command: it waits for a node that was evicted before it had written its rank")
		}
	}
	options.Signalled = command.signalled.Load
	engine, err := proxystore.New(client.Client, options)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for the command: %w", err)
	}
	s := tcpstore.NewFor(engine, tcpstore.DefaultLimits(), log, tcpstore.Observer{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	for {
		err = o.child(p, listener.Addr().(*net.TCPAddr).Port, signals, &command)
		if !command.endedByKill(err) {
			break
		}
		log.Info("starting the command anew")
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), flushLimit, errors.New("the etcd does not answer"))
	defer cancel()
	if closeErr := errors.Join(s.Close(), <-served, engine.Close(ctx)); closeErr != nil {
		log.Warn("ending the proxy", "error", closeErr)
	}
	return err
}

// permitted checks the permissions of the etcd user before the command is started.
func (o *Options) permitted(client *store.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	return proxystore.Permitted(ctx, client.Client, o.engine(nil))
}

// connect tries until the etcd answers or a signal arrives. An etcd often starts together with its clients.
func (o *Options) connect(signals chan os.Signal, log *slog.Logger) (*store.Store, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type result struct {
		store *store.Store
		err   error
	}
	for {
		opened := make(chan result, 1)
		go func() {
			s, err := o.etcd.Open(ctx)
			opened <- result{s, err}
		}()
		var r result
		select {
		case r = <-opened:
		case sig := <-signals:
			return nil, bySignal(sig, "the command was not started")
		}
		if r.err == nil || errors.Is(r.err, store.ErrRefused) {
			return r.store, r.err
		}
		log.Warn("the etcd does not answer yet", "error", r.err)
		select {
		case <-time.After(time.Second):
		case sig := <-signals:
			return nil, bySignal(sig, "the command was not started")
		}
	}
}

// command is the state of the command that other goroutines read.
type command struct {
	process   atomic.Int64 // the process ID while it runs, otherwise 0
	signalled atomic.Bool  // one of ending was forwarded
	killed    atomic.Bool  // kill was called
}

// kill kills the command so that it is started anew, unless it is to end.
func (c *command) kill() bool {
	pid := int(c.process.Load())
	if pid == 0 || c.signalled.Load() || c.killed.Swap(true) {
		return false
	}
	p, err := os.FindProcess(pid)
	return err == nil && p.Kill() == nil
}

// endedByKill reports whether the command ended because kill was called, and not by itself at that moment.
func (c *command) endedByKill(err error) bool {
	var exit exitError
	return c.killed.Swap(false) && !c.signalled.Load() && errors.As(err, &exit) && exit.code == 128+int(syscall.SIGKILL)
}

// ending are the signals by which torchrun ends.
var ending = []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT}

// child runs the command to its end, and forwards signals to it.
func (o *Options) child(p Process, port int, signals chan os.Signal, command *command) error {
	args, env := o.launcher.through(port, p.Environ)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, p.In, p.Out, p.Err
	cmd.SysProcAttr = apart
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the command: %w", err)
	}
	command.process.Store(int64(cmd.Process.Pid))
	defer command.process.Store(0) // another process may get the number
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			if slices.Contains(ending, sig) {
				command.signalled.Store(true)
			}
			_ = handOn(cmd.Process, sig) // it may just have ended
		case err := <-ended:
			return outcome(args[0], err)
		}
	}
}

// outcome returns nil for success, or an error with the exit code. For a signal that is 128 plus its number.
func outcome(name string, err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return bySignal(status.Signal(), name+" was ended by a signal")
	}
	return exitError{fmt.Sprintf("%s ended with exit code %d", name, exit.ExitCode()), exit.ExitCode()}
}
