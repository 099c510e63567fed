package agent

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// worker is one process and the process group that it leads. After its exit it stays a zombie until release, so that no
// other process can get its number, and with it its signals.
type worker struct {
	host        *host
	local, rank int
	errorFile   string
	output      *output
	cmd         *exec.Cmd

	mu     sync.Mutex
	gone   bool // exited
	status status
}

// status is how a process ended.
type status struct {
	code int // exit code; -n for signal n, as Python has it
	at   time.Time
}

func (s status) String() string {
	if s.code < 0 {
		return fmt.Sprintf("was ended by %s", signalName(syscall.Signal(-s.code)))
	}
	return fmt.Sprintf("exited with code %d", s.code)
}

// start starts the process, and sends the worker to exits when it has ended.
func (w *worker) start(cmd *exec.Cmd, exits chan<- *worker) error {
	cmd.SysProcAttr = attributes()
	if err := w.host.start(cmd); err != nil {
		return err
	}
	w.cmd = cmd
	go func() {
		code := exitCode(cmd)
		w.mu.Lock()
		w.gone, w.status = true, status{code, time.Now()}
		w.mu.Unlock()
		exits <- w
	}()
	return nil
}

// signal sends one to the worker unless it has exited. The rest of its group gets none: PyTorch's data loaders would
// die of it while their worker still writes its checkpoint.
func (w *worker) signal(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gone {
		_ = signalProcess(w.cmd.Process.Pid, s) // it may just have exited
	}
}

// kill ends whatever still runs in the group.
func (w *worker) kill() { _ = signalGroup(w.cmd.Process.Pid, syscall.SIGKILL) }

// release reaps the process, and waits until its last output has been written.
func (w *worker) release() error {
	err := w.host.reap(w.cmd)
	w.output.wait(time.Second) // processes outside of the group may hold its streams for ever
	return err
}

// signalName is SIGTERM, where the standard library says "terminated".
func signalName(s os.Signal) string {
	if n, ok := s.(syscall.Signal); ok {
		if name, ok := names[n]; ok {
			return name
		}
	}
	return s.String()
}

// names are those of the signals that end processes of jobs, and the numbers that all Unixes give them.
var names = map[syscall.Signal]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 8: "SIGFPE", 9: "SIGKILL",
	11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
}
