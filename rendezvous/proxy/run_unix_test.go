//go:build unix

package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/internal/names"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// etcd starts one that ends with the test.
func etcd(t *testing.T) string {
	t.Helper()
	address := ports.Address(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := store.Embedded{Dir: t.TempDir(), Listen: address}.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return address
}

// shell are options for a script of sh in the place of torchrun.
func shell(t *testing.T, endpoint, script string) *Options {
	t.Helper()
	o, err := complete([]string{"--endpoints", endpoint}, []string{"sh", "-c", script},
		map[string]string{"PET_RDZV_ID": t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func code(t *testing.T, err error) int {
	t.Helper()
	var coded interface{ ExitCode() int }
	if !errors.As(err, &coded) {
		t.Fatalf("%v has no exit code", err)
	}
	return coded.ExitCode()
}

// TestRun: the command has its store for as long as it runs, and its exit code is the proxy's.
func TestRun(t *testing.T) {
	address := etcd(t)
	for name, c := range map[string]struct {
		script string
		code   int
		out    string
	}{
		"success":  {`echo "$PET_RDZV_BACKEND $PET_RDZV_CONF"`, 0, "c10d is_host=0,read_timeout=600\n"},
		"its code": {"exit 7", 7, ""},
		"signal":   {"kill -KILL $$", 137, ""},
		"input":    {"cat", 0, "said"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := shell(t, address, c.script).Run(Process{
				Environ: os.Environ(), In: strings.NewReader("said"), Out: &out, Err: io.Discard,
			})
			if c.code == 0 && err != nil || c.code != 0 && code(t, err) != c.code {
				t.Errorf("got %v, want code %d", err, c.code)
			}
			if out.String() != c.out {
				t.Errorf("got %q, want %q", out.String(), c.out)
			}
		})
	}
}

// TestUnknownNodes: a command that does not show how many nodes it needs is started with a warning, unless eviction is
// disabled or the environment has the number.
func TestUnknownNodes(t *testing.T) {
	address := etcd(t)
	for name, c := range map[string]struct {
		flags    []string
		env      map[string]string
		warnings int
	}{
		"unknown":  {warnings: 1},
		"disabled": {flags: []string{"--evict-after", "0"}},
		"variable": {env: map[string]string{"PET_NNODES": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"PET_RDZV_ID": t.Name()}
			maps.Copy(env, c.env)
			o, err := complete(append(c.flags, "--endpoints", address), []string{"true"}, env)
			if err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			if err := o.Run(Process{Environ: os.Environ(), Out: io.Discard, Err: &errs}); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(errs.String(), "PET_NNODES"); n != c.warnings {
				t.Errorf("%d warnings, want %d: %s", n, c.warnings, errs.String())
			}
		})
	}
}

// TestStartedAnew: a command that is killed because it waits for a lost node is started again, and one that ends by
// itself is not.
func TestStartedAnew(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		again  bool
	}{
		"killed":         {"exec sleep 60", true},
		"ends by itself": {"exit 3", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := shell(t, "127.0.0.1:1", c.script)
			var command command
			ended := make(chan error, 1)
			go func() { ended <- o.child(Process{Out: io.Discard, Err: io.Discard}, 7, nil, &command) }()
			if c.again {
				for !command.kill() {
					time.Sleep(time.Millisecond)
				}
			} else {
				command.killed.Store(true) // kill came when it had just ended
			}
			if err := <-ended; command.endedByKill(err) != c.again {
				t.Errorf("it ended with %v: started anew %t, want %t", err, !c.again, c.again)
			}
		})
	}
}

// TestEnded: the process ID of a command is not used after the command has ended.
func TestEnded(t *testing.T) {
	o := shell(t, "127.0.0.1:1", "exit 0")
	var command command
	if err := o.child(Process{Out: io.Discard, Err: io.Discard}, 7, nil, &command); err != nil {
		t.Fatal(err)
	}
	if pid := command.process.Load(); pid != 0 {
		t.Errorf("the process ID is still %d", pid)
	}
}

// notes hands on lines as they are written.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
	told chan struct{}
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text.Write(p)
	select {
	case n.told <- struct{}{}:
	default:
	}
	return len(p), nil
}

// await returns once a text was written.
func (n *notes) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		n.mu.Lock()
		found := strings.Contains(n.text.String(), text)
		n.mu.Unlock()
		if found {
			return
		}
		select {
		case <-n.told:
		case <-limit:
			t.Fatalf("nobody has written %q", text)
		}
	}
}

// TestSignals: they reach the command, which ends as it likes.
func TestSignals(t *testing.T) {
	o := shell(t, etcd(t), `trap "exit 9" TERM; echo ready; while :; do sleep 0.1; done`)
	out, signals := &notes{told: make(chan struct{}, 1)}, make(chan os.Signal, 1)
	ended := make(chan error, 1)
	go func() { ended <- o.start(Process{Environ: os.Environ(), Out: out, Err: io.Discard}, signals) }()
	out.await(t, "ready")
	signals <- syscall.SIGTERM
	if got := code(t, <-ended); got != 9 {
		t.Errorf("got code %d, want 9", got)
	}
}

// TestInterrupt: what a terminal sends by its keys reaches what a script has started, too.
func TestInterrupt(t *testing.T) {
	o := shell(t, etcd(t), `sh -c 'trap "echo told; exit 3" INT; echo ready; while :; do sleep 0.1; done'; exit 4`)
	out, signals := &notes{told: make(chan struct{}, 1)}, make(chan os.Signal, 1)
	ended := make(chan error, 1)
	go func() { ended <- o.start(Process{Environ: os.Environ(), Out: out, Err: io.Discard}, signals) }()
	out.await(t, "ready")
	signals <- os.Interrupt
	out.await(t, "told")
	if got := <-ended; got == nil {
		t.Error("an interrupted command has succeeded")
	}
}

// TestNoEtcd: without an etcd the command is not started, and a signal ends the wait for one.
func TestNoEtcd(t *testing.T) {
	o := shell(t, ports.Address(t), "echo started")
	out, errs := &notes{told: make(chan struct{}, 1)}, &notes{told: make(chan struct{}, 1)}
	signals, ended := make(chan os.Signal, 1), make(chan error, 1)
	go func() { ended <- o.start(Process{Environ: os.Environ(), Out: out, Err: errs}, signals) }()
	errs.await(t, "the etcd does not answer yet")
	signals <- syscall.SIGTERM
	if got := code(t, <-ended); got != 128+15 {
		t.Errorf("got code %d, want 143", got)
	}
	if out.text.Len() > 0 {
		t.Errorf("the command was started: %s", out.text.String())
	}
}

// TestForbidden: an etcd that lets its user in and not to the run's keys is an error, and nothing is started.
func TestForbidden(t *testing.T) {
	address := etcd(t)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // nothing is under way
	end := clientv3.GetPrefixRangeEnd("/tegen/c10d/mine/")
	may := clientv3.PermissionType(clientv3.PermReadWrite)
	for _, step := range []func() error{
		func() error { _, err := c.RoleAdd(t.Context(), "root"); return err },
		func() error { _, err := c.UserAdd(t.Context(), "root", "r"); return err },
		func() error { _, err := c.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := c.RoleAdd(t.Context(), "run"); return err },
		func() error {
			_, err := c.RoleGrantPermission(t.Context(), "run", "/tegen/c10d/mine/", end, may)
			return err
		},
		func() error { _, err := c.UserAdd(t.Context(), "me", "m"); return err },
		func() error { _, err := c.UserGrantRole(t.Context(), "me", "run"); return err },
		func() error { _, err := c.AuthEnable(t.Context()); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	for run, want := range map[string]string{"mine": "", "theirs": `"me" may not read and write /tegen/c10d/theirs/`} {
		o, err := complete([]string{"--endpoints", address, "--user", "me"}, []string{"sh", "-c", "echo started"},
			map[string]string{"PET_RDZV_ID": run, names.RendezvousPassword: "m"})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = o.Run(Process{Environ: os.Environ(), Out: &out, Err: io.Discard})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", run, err, want)
		}
		if started := out.Len() > 0; started != (want == "") {
			t.Errorf("%s: started: %v", run, started)
		}
	}
}

// TestNoCommand: what cannot be started is said before anybody waits for an etcd.
func TestNoCommand(t *testing.T) {
	o, err := complete(nil, []string{"./no-such-program"},
		map[string]string{"PET_RDZV_ID": "a", "PET_RDZV_ENDPOINT": ports.Address(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Run(Process{Err: io.Discard}); err == nil || !strings.Contains(err.Error(), "finding the command") {
		t.Errorf("got %v", err)
	}
}
