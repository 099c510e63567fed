package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// host starts and reaps processes. Their orphans become children of this process, be it PID 1 or not, and are reaped as
// well.
type host struct {
	starts chan func()
	guard  *guard
	closed chan struct{}

	adopting sync.WaitGroup

	mu   sync.Mutex
	ours map[int]bool // processes that we have started and not reaped yet
}

const prSetChildSubreaper = 36 // prctl(2)

func newHost(guardCommand []string) (*host, error) {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return nil, fmt.Errorf("becoming the subreaper of orphans: %w", errno)
	}
	h := &host{starts: make(chan func()), closed: make(chan struct{}), ours: map[int]bool{}}
	go h.thread()
	h.adopting.Go(h.adopt)
	var err error
	h.guard, err = newGuard(guardCommand, h.spawn)
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// thread starts all processes: the kernel sends them their parent's death signal when the thread that started them
// ends, so it must be one that lives as long as they do.
func (h *host) thread() {
	runtime.LockOSThread() // for good: the thread ends with this function
	for start := range h.starts {
		start()
	}
}

// spawn starts a process on the thread, and keeps adopt from reaping it as an orphan.
func (h *host) spawn(cmd *exec.Cmd) error {
	result := make(chan error)
	h.starts <- func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		err := cmd.Start()
		if err == nil {
			h.ours[cmd.Process.Pid] = true
		}
		result <- err
	}
	return <-result
}

// start starts a worker.
func (h *host) start(cmd *exec.Cmd) error {
	if err := h.spawn(cmd); err != nil {
		return err
	}
	h.guard.send("+", cmd.Process.Pid)
	return nil
}

// reap reaps a process that has exited. Its group is empty by then.
func (h *host) reap(cmd *exec.Cmd) error {
	h.guard.send("-", cmd.Process.Pid)
	err := cmd.Wait()
	h.mu.Lock()
	delete(h.ours, cmd.Process.Pid)
	h.mu.Unlock()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

func (h *host) close() {
	h.guard.close()
	close(h.closed)
	h.adopting.Wait() // or it would take the processes of the next host for orphans
	close(h.starts)
}

// adopt reaps orphans whenever children have ended.
func (h *host) adopt() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		select {
		case <-ended:
			h.reapOrphans()
			select { // many exit at once, and each scan reads all of /proc
			case <-time.After(100 * time.Millisecond):
			case <-h.closed:
			}
		case <-h.closed:
			return
		}
	}
}

func (h *host) reapOrphans() {
	h.mu.Lock()
	defer h.mu.Unlock()
	self := os.Getpid()
	for _, p := range processes() {
		if p.parent == self && p.state == 'Z' && !h.ours[p.pid] {
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// process is a line of /proc/<pid>/stat (proc(5)).
type process struct {
	pid, parent, group int
	state              byte
}

// processes are all visible ones; none where /proc is not mounted.
func processes() (all []process) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has exited meanwhile
		}
		p := process{pid: pid}
		rest := stat[bytes.LastIndexByte(stat, ')')+1:] // the name before it may hold anything
		if _, err := fmt.Sscanf(string(rest), " %c %d %d", &p.state, &p.parent, &p.group); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// groupAlive says whether any process of these groups still runs.
func groupAlive(groups map[int]bool) bool {
	for _, p := range processes() {
		if groups[p.group] && p.state != 'Z' && p.state != 'X' {
			return true
		}
	}
	return false
}

// attributes make a worker the leader of a group, and have the kernel kill it when this process dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func signalProcess(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }

func signalGroup(pid int, s syscall.Signal) error { return syscall.Kill(-pid, s) }

// childInfo is siginfo_t of SIGCHLD (sigaction(2)), 128 bytes.
type childInfo struct {
	signo, errno, code int32
	child              struct {
		_      [0]uintptr // the kernel's union is aligned for pointers
		pid    int32
		uid    uint32
		status int32
	}
	_ [128]byte // more than its rest
}

const (
	idPid   = 1 // P_PID of waitid(2)
	exited  = 1 // CLD_EXITED of sigaction(2); all other ends are by signals
	wExited = 4
	wNoReap = 0x01000000 // WNOWAIT
)

// exitCode waits for the end of a process, and leaves it to be reaped.
func exitCode(cmd *exec.Cmd) int {
	var info childInfo
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idPid, uintptr(cmd.Process.Pid),
			uintptr(unsafe.Pointer(&info)), wExited|wNoReap, 0, 0)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			return -int(syscall.SIGKILL) // cannot happen: nobody else reaps it
		case info.code == exited:
			return int(info.child.status)
		}
		return -int(info.child.status)
	}
}
