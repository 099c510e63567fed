//go:build unix

package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous"
)

// TestSignalOfAll: a worker that was ended by a signal of the agent's may have got it together with the agent, which
// then waits for its own; any other failure is decided upon at once.
func TestSignalOfAll(t *testing.T) {
	for _, c := range []struct {
		reason string
		code   int
		want   os.Signal
	}{
		{"both got it", -int(syscall.SIGTERM), syscall.SIGTERM},
		{"it is none that ends agents", -int(syscall.SIGKILL), nil},
		{"no signal ended it", 1, nil},
	} {
		r := &run{Config: Config{Signals: DefaultSignals()}, signals: make(chan os.Signal, 1)}
		r.err = &Failure{Code: c.code}
		sent := time.AfterFunc(100*time.Millisecond, func() { r.signals <- syscall.SIGTERM })
		if got := r.signalled(); got != c.want {
			t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
		}
		sent.Stop()
	}
}

// stopParts are what this binary plays where processes are ended.
var stopParts = map[string]func(){
	"agent": playAgent,
	"polite": func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals)
		say("ready")
		say("got", signalName(next(signals)))
	},
	"asked twice": func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
		say("ready")
		say("got", signalName(next(signals)))
		say("got", signalName(next(signals)))
	},
	"stubborn": func() {
		signal.Ignore(syscall.SIGTERM)
		say("ready")
		time.Sleep(time.Minute)
	},
	"one fails, one is stubborn": func() {
		signal.Ignore(syscall.SIGTERM)
		dir := os.Getenv("TEST_DIR")
		if dir == "" { // or the file would be left where the tests are
			say("there is no TEST_DIR")
			os.Exit(1)
		}
		deaf := filepath.Join(dir, "deaf")
		if os.Getenv("LOCAL_RANK") == "0" {
			if err := os.WriteFile(deaf, nil, 0o600); err != nil {
				say(err)
			}
			time.Sleep(time.Minute)
		}
		for _, err := os.Stat(deaf); err != nil; _, err = os.Stat(deaf) {
			time.Sleep(10 * time.Millisecond)
		}
		say("failing")
		os.Exit(3)
	},
	"family": func() { // a worker with a child in its group, which ignores signals
		again("stubborn", nil)
		say("pid", os.Getpid())
		time.Sleep(time.Minute)
	},
	"failing family": func() {
		out := again("stubborn", nil)
		say("pid", out.Process.Pid)
		time.Sleep(300 * time.Millisecond)
		os.Exit(3)
	},
	"checkpoint": func() { // a worker that needs its child after the signal, as for PyTorch's data loaders
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		child := again("sleep", nil)
		next(signals)
		ended := make(chan struct{})
		go func() { _ = child.Wait(); close(ended) }()
		select {
		case <-ended:
			say("the child has been ended")
		case <-time.After(300 * time.Millisecond):
			say("the child lives")
		}
	},
	"shell": func() { // ends at once on a signal, as shells do; the program behind it does not
		again("slow", nil)
		time.Sleep(time.Minute)
	},
	"slow": func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		say("ready")
		next(signals)
		time.Sleep(300 * time.Millisecond)
		say("saved")
	},
	"daemon": func() { // leaves a process in a session of its own, whose parent ends
		again("forking", &syscall.SysProcAttr{Setsid: true})
		time.Sleep(time.Minute)
	},
	"forking": func() { again("orphan", nil) },
	"orphan": func() {
		for os.Getppid() != 1 && strconv.Itoa(os.Getppid()) != os.Getenv("AGENT") {
			time.Sleep(10 * time.Millisecond)
		}
		say("adopted by", os.Getppid())
		say("pid", os.Getpid())
	},
}

// playAgent is an agent as a process of its own, in a world of its own, that says in the end what it did.
func playAgent() {
	self := os.Args[1]
	f := &fake{join: func(context.Context, int) (rendezvous.World, error) { return world(nil), nil }}
	workers, _ := strconv.Atoi(os.Getenv("TEST_WORKERS"))
	grace, err := time.ParseDuration(os.Getenv("TEST_GRACE"))
	if err != nil {
		grace = 10 * time.Second
	}
	restarts, _ := strconv.Atoi(os.Getenv("TEST_RESTARTS"))
	err = Run(context.Background(), Config{
		Command: []string{self}, RunID: "imagenet",
		Environ: []string{
			"TEGEN_TEST_PART=" + os.Getenv("TEST_WORKER"), fmt.Sprintf("AGENT=%d", os.Getpid()),
			"TEST_DIR=" + os.Getenv("TEST_DIR"),
		},
		Agent: rendezvous.Agent{Role: "default", Workers: workers}, Signals: DefaultSignals(), Grace: grace,
		MaxRestarts: restarts,
		Guard:       []string{self, "guard"}, Log: slog.New(slog.DiscardHandler),
		Logs: Logs{Out: os.Stdout, Err: os.Stderr, Dir: os.Getenv("TEST_DIR")},
		Open: func(context.Context) (rendezvous.Backend, error) { return f, nil },
	})
	say("agent did", strings.Join(f.calls, " "))
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		os.Exit(coded.ExitCode())
	}
}

// again starts this binary once more, as a part, with its output into ours.
func again(part string, attr *syscall.SysProcAttr) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEGEN_TEST_PART="+part)
	cmd.Stdout, cmd.SysProcAttr = os.Stdout, attr
	if err := cmd.Start(); err != nil {
		say("cannot start", part, err)
		os.Exit(1)
	}
	return cmd
}

// next skips what Go sends itself.
func next(signals <-chan os.Signal) os.Signal {
	for s := range signals {
		if s != syscall.SIGURG && s != syscall.SIGCHLD {
			return s
		}
	}
	return nil
}

func allParts() map[string]func() {
	all := maps.Clone(parts)
	maps.Copy(all, stopParts)
	maps.Copy(all, errorParts)
	return all
}

func terminated() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	return signals
}

func send(t *testing.T, cmd *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// exit waits for the agent's end.
func exit(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the agent has not ended")
	}
	return cmd.ProcessState.ExitCode()
}

// pids are the processes that have said their numbers.
func pids(t *testing.T, text string) (all []int) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if number, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, n)
		}
	}
	return all
}

// awaitEnd waits until no process of these runs; with reaped, until none is a zombie either.
func awaitEnd(t *testing.T, reaped bool, pids ...int) {
	t.Helper()
	for limit := time.After(20 * time.Second); ; {
		left := 0
		for _, pid := range pids {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err == nil && (reaped || !strings.Contains(string(stat), ") Z ")) {
				left++
			}
		}
		if left == 0 {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-limit:
			t.Fatalf("%d of the processes %v are still there", left, pids)
		}
	}
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc, adopts orphans, and tells children of their parent's death")
	}
}

func TestSignalsReachWorkers(t *testing.T) {
	for name, s := range map[string]syscall.Signal{
		"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT,
		"SIGHUP": syscall.SIGHUP, "SIGQUIT": syscall.SIGQUIT,
	} {
		t.Run(name, func(t *testing.T) {
			cmd, out := startAgent(t, "polite", 2)
			out.await(t, "ready", 2)
			send(t, cmd, s)
			if code := exit(t, cmd); code != 128+int(s) {
				t.Errorf("exit code %d, want %d", code, 128+int(s))
			}
			want := []string{"agent did join leave close", "got " + name, "got " + name, "ready", "ready"}
			out.await(t, "agent did", 1)
			if diff := cmp.Diff(want, out.lines()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLaterSignalsReachWorkersToo(t *testing.T) {
	cmd, out := startAgent(t, "asked twice", 1)
	out.await(t, "ready", 1)
	send(t, cmd, syscall.SIGTERM)
	out.await(t, "got SIGTERM", 1)
	send(t, cmd, syscall.SIGINT)
	if code := exit(t, cmd); code != 143 {
		t.Errorf("exit code %d, want 143 of the first signal", code)
	}
	out.await(t, "got SIGINT", 1)
}

func TestGraceEnds(t *testing.T) {
	cmd, out := startAgent(t, "stubborn", 2, "TEST_GRACE=200ms")
	out.await(t, "ready", 2)
	send(t, cmd, syscall.SIGTERM)
	if code := exit(t, cmd); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	out.await(t, "agent did join leave close", 1)
}

func TestSignalDuringARestartStops(t *testing.T) {
	cmd, out := startAgent(t, "one fails, one is stubborn", 2, "TEST_GRACE=2s", "TEST_RESTARTS=5")
	out.await(t, "failing", 1)
	time.Sleep(200 * time.Millisecond)
	send(t, cmd, syscall.SIGTERM)
	if code := exit(t, cmd); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	out.await(t, "agent did join leave close", 1)
}

func TestWorkersKeepTheirChildrenWhileTheyEnd(t *testing.T) {
	cmd, out := startAgent(t, "checkpoint", 1)
	out.await(t, "ready", 1)
	send(t, cmd, syscall.SIGTERM)
	exit(t, cmd)
	out.await(t, "the child lives", 1)
}

func TestProgramBehindAShellHasTheGraceToo(t *testing.T) {
	onLinux(t)
	cmd, out := startAgent(t, "shell", 1)
	out.await(t, "ready", 1)
	send(t, cmd, syscall.SIGTERM)
	exit(t, cmd)
	out.await(t, "saved", 1)
}

func TestKilledAgentLeavesNoOrphans(t *testing.T) {
	onLinux(t)
	cmd, out := startAgent(t, "family", 2)
	out.await(t, "ready", 2)
	out.await(t, "pid", 2)
	send(t, cmd, syscall.SIGKILL)
	var all []int
	for _, worker := range pids(t, out.String()) {
		all = append(all, worker, -worker)
	}
	awaitGroupsEnd(t, all)
}

// awaitGroupsEnd waits for workers, and for groups where a number is negative.
func awaitGroupsEnd(t *testing.T, all []int) {
	t.Helper()
	groups := map[int]bool{}
	for _, pid := range all {
		if pid < 0 {
			groups[-pid] = true
			continue
		}
		awaitEnd(t, false, pid)
	}
	for limit := time.After(20 * time.Second); groupAlive(groups); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-limit:
			t.Fatalf("processes of the groups %v are still there", groups)
		}
	}
}

func TestFailedWorkersLeaveNoChildren(t *testing.T) {
	onLinux(t)
	cmd, out := startAgent(t, "failing family", 1, "TEST_GRACE=200ms", "TEST_RESTARTS=1")
	if code := exit(t, cmd); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	children := pids(t, out.String())
	if len(children) != 2 {
		t.Fatalf("children %v, want one of each attempt", children)
	}
	awaitEnd(t, false, children...)
}

func TestOrphansAreReaped(t *testing.T) {
	onLinux(t)
	cmd, out := startAgent(t, "daemon", 1)
	out.await(t, "pid", 1)
	out.await(t, fmt.Sprintf("adopted by %d\n", cmd.Process.Pid), 1)
	awaitEnd(t, true, pids(t, out.String())...)
	send(t, cmd, syscall.SIGTERM)
	exit(t, cmd)
}
