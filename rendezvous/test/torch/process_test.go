//go:build linux

package torch

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// marker is the environment variable that a process and all that it starts carry. Workers are in sessions of their own,
// and those of a killed agent belong to nobody: neither a process group nor a parent leads to them.
const marker = "TEGEN_TORCH_MARK"

// process is a program that runs beside the test.
type process struct {
	name, log, mark string
	cmd             *exec.Cmd
	done            chan struct{}
	killed          atomic.Bool
}

var started atomic.Int64

// spawn starts a program with nothing of our environment but what is listed. It is killed with all that it started when
// the test ends, which shows the end of its log if it has failed.
func spawn(t *testing.T, name string, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{name: name, done: make(chan struct{})}
	path := fmt.Sprintf("%s/%s.%d", shared, name, started.Add(1))
	p.log, p.mark = path+".log", path+"/" // no mark begins another
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir = shared
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/root", marker + "=" + p.mark}, env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	begun := make(chan error)
	go func() {
		defer close(p.done)
		defer log.Close() //nolint:errcheck // the program writes through a descriptor of its own
		// The kernel ends the program with the thread that started it, and Go may end a thread that no goroutine holds.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		begun <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is asked of its state
		}
	}()
	if err := <-begun; err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	t.Cleanup(func() {
		ended := p.ended()
		p.kill()
		if t.Failed() {
			state := "ran until the end"
			if ended && !p.killed.Load() {
				state = p.cmd.ProcessState.String()
			}
			t.Logf("%s (%s):\n%s", name, state, tail(p.log, 40))
		}
	})
	return p
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the program and all that it started at once, as the loss of their machine would.
func (p *process) kill() {
	if !p.ended() {
		p.killed.Store(true)
	}
	killMarked(p.mark)
	<-p.done
}

// wait returns the exit code, -1 for the end by a signal.
func (p *process) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatalf("%s has not ended after %v", p.name, limit)
		return 0
	}
}

// killMarked kills all processes whose mark begins so, until there is none, and counts them.
func killMarked(mark string) int {
	all := map[int]bool{}
	for {
		found := marked(mark)
		if len(found) == 0 {
			return len(all)
		}
		for _, pid := range found {
			all[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// marked are the ids of processes whose mark begins so. One that has ended, and nobody has waited for, has none.
func marked(mark string) []int {
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	var pids []int
	for _, path := range entries {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		for variable := range bytes.SplitSeq(text, []byte{0}) {
			if bytes.HasPrefix(variable, []byte(marker+"="+mark)) {
				if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
					pids = append(pids, pid)
				}
				break
			}
		}
	}
	return pids
}

// tail is the last lines of a file, indented.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "\t(" + err.Error() + ")"
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return "\t" + strings.Join(all[max(0, len(all)-lines):], "\n\t")
}
