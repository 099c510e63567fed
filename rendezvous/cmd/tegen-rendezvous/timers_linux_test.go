package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// timers are what a process has, and what it is.
type timers struct {
	PID   int
	Args  []string
	Extra []string // of the environment
	Late  time.Duration
}

func showTimers() {
	coarseTimers(os.Args)
	shown := make(chan timers)
	go func() {
		runtime.LockOSThread() // on a thread of its own
		// every Linux says
		late, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_TIMERSLACK, 0, 0)
		extra := slices.DeleteFunc(os.Environ(), func(v string) bool { return !strings.HasPrefix(v, restarted) })
		shown <- timers{os.Getpid(), os.Args[1:], extra, time.Duration(late)}
	}()
	if err := json.NewEncoder(os.Stdout).Encode(<-shown); err != nil {
		panic(err)
	}
}

// TestTimersAsEver: what cannot execute itself goes on with the timers that it had, on the thread that has tried it.
func TestTimersAsEver(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("one processor")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack := func() time.Duration {
		d, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_TIMERSLACK, 0, 0)
		return time.Duration(d)
	}
	was := slack()
	if was >= late {
		t.Skip("timers are late already")
	}
	coarseTimers([]string{os.Args[0], serveCommand, "\x00"}) // which no program can be given
	if is := slack(); is != was {
		t.Errorf("timers may be %s late, and were %s before", is, was)
	}
}

// TestTimers: a service has timers that may be late, in every thread, and is the process that was started, with its
// arguments; whatever else is started has timers as ever, and what cannot execute itself goes on.
func TestTimers(t *testing.T) {
	t.Parallel()
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("one processor")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		env  string
		late bool
	}{
		"a service":        {[]string{serveCommand, "--listen-c10d=:1", "a b"}, "", true},
		"another command":  {[]string{"run", serveCommand}, "", false},
		"without a word":   {nil, "", false},
		"a second attempt": {[]string{serveCommand}, restarted + "=1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), self, c.args...)
			isCommand := func(v string) bool { return strings.HasPrefix(v, itself) }
			cmd.Env = append(slices.DeleteFunc(os.Environ(), isCommand), timersRole+"=1", c.env)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, os.Stderr
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			var got timers
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, &out)
			}
			if got.PID != cmd.Process.Pid || !slices.Equal(got.Args, c.args) || len(got.Extra) > 0 {
				t.Errorf("process %d has become %+v", cmd.Process.Pid, got)
			}
			if is := got.Late >= late; is != c.late {
				t.Errorf("its timers may be %s late", got.Late)
			}
		})
	}
}
