//go:build unix

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous"
)

// signals are those that torch's agents handle (torch/distributed/elastic/multiprocessing/api.py).
var signals = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// TestMain makes this binary all the processes of a test: the worker or the agent that the variable names, and the
// guard.
func TestMain(m *testing.M) {
	switch part := os.Getenv("TEGEN_TEST_PART"); {
	case len(os.Args) > 1 && os.Args[1] == "guard":
		if err := Guard(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case part != "":
		allParts()[part]()
	default:
		os.Exit(m.Run())
	}
}

// fake is a backend whose worlds a test makes.
type fake struct {
	mu    sync.Mutex
	calls []string
	join  func(ctx context.Context, n int) (rendezvous.World, error) // the nth call, from 0
	joins int
}

func (f *fake) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

func (f *fake) Join(ctx context.Context) (rendezvous.World, error) {
	f.note("join")
	n := f.joins
	f.joins++
	if f.join == nil {
		return world(nil), nil
	}
	return f.join(ctx, n)
}

func (f *fake) Finish(context.Context) error { f.note("finish"); return nil }
func (f *fake) Fail(context.Context) error   { f.note("fail"); return nil }
func (f *fake) Leave(context.Context) error  { f.note("leave"); return nil }
func (f *fake) Close() error                 { f.note("close"); return nil }

// world is that of the second of three agents.
func world(changed chan struct{}) rendezvous.World {
	return rendezvous.World{
		Version: 7, Rank: 1, Size: 3, Base: 4, Total: 9, RoleBase: 2, RoleTotal: 5, MasterAddr: "host-0",
		MasterPort: 4711, Changed: changed,
	}
}

// screen is what an agent shows.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newScreen() *screen { return &screen{more: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) lines() []string {
	all := strings.Split(strings.TrimSuffix(s.String(), "\n"), "\n")
	slices.Sort(all)
	return all
}

// await waits until it shows a text n times.
func (s *screen) await(t *testing.T, text string, n int) {
	t.Helper()
	for limit := time.After(20 * time.Second); strings.Count(s.String(), text) < n; {
		select {
		case <-s.more:
		case <-limit:
			t.Fatalf("%q has not been shown %d times:\n%s", text, n, s)
		}
	}
}

// config has this binary as its workers, which play a part.
func config(t *testing.T, f *fake, workers int, part string, args ...string) (cfg Config, out, errs *screen) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, errs = newScreen(), newScreen()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output:\n%s\nerrors:\n%s\ncalls: %v", out, errs, f.calls)
		}
	})
	return Config{
		Command: append([]string{self}, args...),
		Environ: []string{"TEGEN_TEST_PART=" + part, "KEPT=yes", "RANK=stale"}, RunID: "imagenet",
		Agent: rendezvous.Agent{ID: "a", Host: "host-1", Role: "trainer", Workers: workers}, Signals: signals,
		Grace:   10 * time.Second,
		Barrier: 10 * time.Second, Guard: []string{self, "guard"}, Log: slog.New(slog.NewTextHandler(errs, nil)),
		Logs: Logs{Out: out, Err: errs, Prefix: "[${rank}] ", Dir: t.TempDir()},
		Open: func(context.Context) (rendezvous.Backend, error) { return f, nil },
	}, out, errs
}

func runAgent(t *testing.T, cfg Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 40*time.Second, errors.New("the test's time is over"))
	defer cancel()
	return Run(ctx, cfg)
}

// parts are what this binary plays as another process.
var parts = map[string]func(){
	"environment": func() {
		say(strings.Join(append(os.Args[1:], os.Environ()...), "\n"))
	},
	"count": func() { // fails until the restart that its argument names
		say("restart", os.Getenv("TORCHELASTIC_RESTART_COUNT"), "of", os.Getenv("TORCHELASTIC_MAX_RESTARTS"))
		if os.Getenv("TORCHELASTIC_RESTART_COUNT") != os.Args[1] {
			os.Exit(3)
		}
	},
	"sleep": func() { say("ready"); time.Sleep(time.Minute) },
	"one fails": func() { // the others go on
		if os.Getenv("LOCAL_RANK") == "1" {
			os.Exit(3)
		}
		time.Sleep(time.Minute)
	},
	"first world ends": func() {
		if os.Getenv("WORLD_SIZE") == "9" {
			say("ready")
			time.Sleep(time.Minute)
		}
		say("world of", os.Getenv("WORLD_SIZE"), "restart", os.Getenv("TORCHELASTIC_RESTART_COUNT"))
	},
}

func TestEnvironmentOfWorkers(t *testing.T) {
	f := &fake{}
	cfg, out, _ := config(t, f, 2, "environment", "--shard=${local_rank}")
	cfg.MaxRestarts = 3
	if err := runAgent(t, cfg); err != nil {
		t.Fatal(err)
	}
	for local, rank := range []int{4, 5} {
		got := map[string]string{}
		for _, line := range out.lines() {
			if text, ok := strings.CutPrefix(line, fmt.Sprintf("[%d] ", rank)); ok {
				key, value, _ := strings.Cut(text, "=")
				got[key] = value
			}
		}
		file := got["TORCHELASTIC_ERROR_FILE"]
		if want := fmt.Sprintf("/attempt_0/%d/error.json", local); !strings.HasPrefix(file, cfg.Logs.Dir) ||
			!strings.HasSuffix(file, want) {
			t.Errorf("the error file is %q, not %q below %s", file, want, cfg.Logs.Dir)
		}
		delete(got, "TORCHELASTIC_ERROR_FILE")
		want := map[string]string{
			"--shard": fmt.Sprint(local), "TEGEN_TEST_PART": "environment", "KEPT": "yes",
			"LOCAL_RANK": fmt.Sprint(local), "RANK": fmt.Sprint(rank), "GROUP_RANK": "1",
			"ROLE_RANK": fmt.Sprint(2 + local), "ROLE_NAME": "trainer",
			"LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "9", "GROUP_WORLD_SIZE": "3", "ROLE_WORLD_SIZE": "5",
			"MASTER_ADDR": "host-0", "MASTER_PORT": "4711",
			"TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RUN_ID": "imagenet",
			"TORCHELASTIC_USE_AGENT_STORE": "False", "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
			"NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "OMP_NUM_THREADS": "1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("worker %d (-want +got):\n%s", rank, diff)
		}
	}
	if diff := cmp.Diff([]string{"join", "finish", "close"}, f.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestEnvironmentKeepsWhatIsSet(t *testing.T) {
	cfg, out, _ := config(t, &fake{}, 1, "environment")
	cfg.Environ = append(cfg.Environ, "TORCH_NCCL_ASYNC_ERROR_HANDLING=0")
	if err := runAgent(t, cfg); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.Contains(text, "[4] TORCH_NCCL_ASYNC_ERROR_HANDLING=0\n") ||
		strings.Contains(text, "[4] NCCL_ASYNC_ERROR_HANDLING") {
		t.Error("what was set of NCCL has been changed")
	}
	if strings.Contains(text, "OMP_NUM_THREADS") {
		t.Error("the only worker of a machine has been given one thread")
	}
}

func TestFailuresUseUpRestarts(t *testing.T) {
	for _, c := range []struct {
		max   int
		calls []string
		code  int
		lines []string
	}{
		{
			2,
			[]string{"join", "join", "join", "finish", "close"},
			0,
			[]string{"[4] restart 0 of 2", "[4] restart 1 of 2", "[4] restart 2 of 2"},
		},
		{1, []string{"join", "join", "fail", "close"}, 3, []string{"[4] restart 0 of 1", "[4] restart 1 of 1"}},
		{0, []string{"join", "fail", "close"}, 3, []string{"[4] restart 0 of 0"}},
	} {
		f := &fake{}
		cfg, out, _ := config(t, f, 1, "count", "2")
		cfg.MaxRestarts = c.max
		err := runAgent(t, cfg)
		var failure *Failure
		switch errors.As(err, &failure); {
		case c.code == 0 && err != nil:
			t.Errorf("max %d: %v", c.max, err)
		case c.code != 0 && (failure == nil || failure.Code != c.code || failure.ExitCode() != 1):
			t.Errorf("max %d: %v, want a worker's exit code %d and 1 of the agent's", c.max, err, c.code)
		}
		if diff := cmp.Diff(c.calls, f.calls); diff != "" {
			t.Errorf("max %d: calls (-want +got):\n%s", c.max, diff)
		}
		if diff := cmp.Diff(c.lines, out.lines()); diff != "" {
			t.Errorf("max %d: output (-want +got):\n%s", c.max, diff)
		}
	}
}

func TestOneFailureEndsTheGroup(t *testing.T) {
	f := &fake{}
	cfg, _, _ := config(t, f, 3, "one fails")
	err := runAgent(t, cfg)
	var failure *Failure
	if !errors.As(err, &failure) || failure.Rank != 5 || failure.LocalRank != 1 || failure.Code != 3 ||
		failure.Others != 0 {
		t.Errorf("got %v, want worker 5 alone with code 3", err)
	}
}

func TestMembershipChangeIsNoAttempt(t *testing.T) {
	changed := make(chan struct{})
	f := &fake{join: func(_ context.Context, n int) (rendezvous.World, error) {
		w := world(changed)
		if n == 1 {
			w.Version, w.Total, w.Changed = 8, 2, nil
		}
		return w, nil
	}}
	cfg, out, _ := config(t, f, 2, "first world ends")
	go func() {
		out.await(t, "ready", 2)
		close(changed)
	}()
	if err := runAgent(t, cfg); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"[4] ready", "[4] world of 2 restart 0", "[5] ready", "[5] world of 2 restart 0"},
		out.lines()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"join", "join", "finish", "close"}, f.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// A lost agent breaks the connections of the others' workers before it is known to be lost.
func TestFailureInAnEndedWorldIsNoAttempt(t *testing.T) {
	over := make(chan struct{})
	close(over)
	f := &fake{join: func(_ context.Context, n int) (rendezvous.World, error) {
		if n < 3 {
			return world(over), nil
		}
		return rendezvous.World{}, rendezvous.ErrClosed
	}}
	cfg, _, _ := config(t, f, 1, "count", "never")
	if err := runAgent(t, cfg); !errors.Is(err, rendezvous.ErrClosed) {
		t.Errorf("got %v, want that the run is closed", err)
	}
	if diff := cmp.Diff([]string{"join", "join", "join", "join", "close"}, f.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestJoiningInVain(t *testing.T) {
	for _, want := range []error{rendezvous.ErrClosed, rendezvous.ErrTimeout} {
		f := &fake{join: func(context.Context, int) (rendezvous.World, error) {
			return rendezvous.World{}, fmt.Errorf("after all: %w", want)
		}}
		cfg, _, _ := config(t, f, 1, "sleep")
		if err := runAgent(t, cfg); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if diff := cmp.Diff([]string{"join", "close"}, f.calls); diff != "" {
			t.Errorf("%v: calls (-want +got):\n%s", want, diff)
		}
	}
}

func TestSignalWhileJoining(t *testing.T) {
	f := &fake{join: func(ctx context.Context, _ int) (rendezvous.World, error) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return rendezvous.World{}, err
		}
		<-ctx.Done()
		return rendezvous.World{}, context.Cause(ctx)
	}}
	cfg, _, _ := config(t, f, 1, "sleep")
	err := runAgent(t, cfg)
	var stopped *Stopped
	if !errors.As(err, &stopped) || stopped.ExitCode() != 143 {
		t.Errorf("got %v, want SIGTERM's 143", err)
	}
	if diff := cmp.Diff([]string{"join", "leave", "close"}, f.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestCommandThatCannotStart(t *testing.T) {
	f := &fake{}
	cfg, _, _ := config(t, f, 2, "sleep")
	cfg.Command = []string{"/does/not/exist"}
	if err := runAgent(t, cfg); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the file does not exist", err)
	}
	if diff := cmp.Diff([]string{"join", "fail", "close"}, f.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// process starts an agent that is a process of its own, with workers of some part.
func startAgent(t *testing.T, part string, workers int, settings ...string) (*exec.Cmd, *screen) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := newScreen()
	cmd := exec.Command(self, self)
	cmd.Env = append(os.Environ(), "TEGEN_TEST_PART=agent", "TEST_WORKER="+part,
		fmt.Sprintf("TEST_WORKERS=%d", workers), "TEST_DIR="+t.TempDir())
	cmd.Env = append(cmd.Env, settings...)
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(out, read) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if t.Failed() {
			t.Logf("the agent showed:\n%s", out)
		}
	})
	return cmd, out
}

// say is what a part prints.
func say(words ...any) { _, _ = fmt.Fprintln(os.Stdout, words...) }
