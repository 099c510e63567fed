package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a program may take to end on SIGTERM.
	stopGrace = 5 * time.Second
	// killGrace is how long the kernel may take to end a killed one: a guard against waiting forever, never reached.
	killGrace = 10 * time.Second
	// tailLines is how much of a log goes into a message.
	tailLines = 15
)

// Process is a program that runs beside the test.
type Process struct {
	name  string
	log   string
	cmd   *exec.Cmd
	done  chan struct{}
	grace time.Duration // for Stop
}

// Run starts a further program beside the control plane, with its output appended to logs/<name>.log and KUBECONFIG
// set. The context bounds the start alone: the program lives until Stop, Kill or Down, so that it outlives the context
// of a test, which ends before its cleanups run. A name is free again once its program has ended.
func (c *Cluster) Run(ctx context.Context, name, program string, args ...string) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := startProcess(name, c.logPath(name), program, args, func(cmd *exec.Cmd) {
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	})
	if err != nil {
		return nil, err
	}
	c.others = append(c.others, p)
	return p, nil
}

// startProcess starts a program whose output is appended to a file, in a process group of its own: an interrupt on the
// terminal reaches only us, who stop the programs in their order.
func startProcess(
	name, log, program string, args []string, with func(*exec.Cmd),
) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Process{
		name: name, log: log, cmd: exec.Command(program, args...), done: make(chan struct{}), grace: stopGrace,
	}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	with(p.cmd)
	p.cmd.SysProcAttr = diesWithUs()
	started := make(chan error)
	go func() {
		defer close(p.done)
		defer file.Close() //nolint:errcheck // the program writes through a descriptor of its own
		// The kernel ends the program with the thread that started it, and Go may end a thread that no goroutine holds.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			// How it ended is in its log; that it ended is what done says.
			_ = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// Pid is the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log is the path of the file that its output goes to.
func (p *Process) Log() string { return p.log }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop asks the process to end and kills it where it has not after some seconds. It returns when the process has ended.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(p.grace):
		return p.Kill()
	}
}

// Kill ends the process at once, without a chance to clean up. It returns when the process has ended.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(killGrace):
		return fmt.Errorf("%s (process %d) still runs %v after it was killed", p.name, p.Pid(), killGrace)
	}
}

func (p *Process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to %s (process %d): %w", s, p.name, p.Pid(), err)
	}
	return nil
}

func (p *Process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// tail is the last lines of a file, indented, or why it cannot be read. Only the last tailBytes are looked at: a log
// that grew for an hour is not for a message.
func tail(path string) string {
	const tailBytes = 16 << 10
	file, err := os.Open(path)
	if err != nil {
		return "\t(" + err.Error() + ")"
	}
	defer file.Close() //nolint:errcheck // it was only read
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		// Where this fails, reading starts at the front.
		_, _ = file.Seek(-tailBytes, io.SeekEnd)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return "\t(" + err.Error() + ")"
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return "\t" + strings.Join(all[max(0, len(all)-tailLines):], "\n\t")
}
