//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous/keys"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// openStore starts an etcd with the v2 keys API before it, and returns where either is.
func openStore(t *testing.T) (v3, v2 string) {
	t.Helper()
	v3 = ports.Address(t)
	s, err := store.Embedded{Dir: t.TempDir(), Listen: v3}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k, err := keys.Open(t.Context(), s.Client, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	api := httptest.NewServer(k.Handler())
	t.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
		k.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return v3, api.Listener.Addr().String()
}

// member is an agent as a process of its own.
type member struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
}

func (m *member) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.out.Write(p)
}

func (m *member) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.out.String()
}

func startMember(t *testing.T, env []string, args ...string) *member {
	t.Helper()
	m := &member{cmd: exec.Command(os.Args[0], args...)}
	m.cmd.Env = append(os.Environ(), env...)
	m.cmd.Stdout, m.cmd.Stderr, m.cmd.WaitDelay = m, m, 5*time.Second
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("an agent showed:\n%s", m)
		}
	})
	return m
}

func (m *member) exit(t *testing.T) int {
	t.Helper()
	ended := make(chan struct{})
	go func() { _ = m.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(50 * time.Second):
		t.Fatal("an agent has not ended")
	}
	return m.cmd.ProcessState.ExitCode()
}

// ranks are those of the workers in worlds of a size, over all agents.
func ranks(agents []*member, size int) (all []string) {
	for _, a := range agents {
		for line := range strings.Lines(a.String()) {
			var prefix, rank, of, restarts int
			if n, _ := fmt.Sscanf(line, "[%d] rank %d of %d restart %d", &prefix, &rank, &of, &restarts); n == 4 &&
				of == size && prefix == rank && restarts == 0 {
				all = append(all, fmt.Sprint(rank))
			}
		}
	}
	slices.Sort(all)
	return all
}

func awaitRanks(t *testing.T, agents []*member, size int) {
	t.Helper()
	for limit := time.Now().Add(50 * time.Second); len(ranks(agents, size)) < size; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("of %d workers there are %v", size, ranks(agents, size))
		}
	}
}

// watched is how many others an agent says that it watches by a connection.
func watched(a *member) int {
	all := map[string]bool{}
	for line := range strings.Lines(a.String()) {
		if _, rest, ok := strings.Cut(line, `msg="watching a neighbour"`); ok {
			_, id, _ := strings.Cut(rest, "neighbour=")
			all[strings.Fields(id)[0]] = true
		}
	}
	return len(all)
}

// An agent goes, by a signal or without a word, and the others go on without having failed. By torch's protocol agents
// learn of one that was killed by their workers' failures alone, by etcd-v3 from its neighbours long before its lease
// ends.
func TestWorldGoesOnWithoutAnAgent(t *testing.T) {
	t.Parallel()
	v3, v2 := openStore(t)
	for name, c := range map[string]struct {
		backend, endpoint string
		signal            syscall.Signal
		code              int
	}{
		"etcd-v3, stopped": {"etcd-v3", v3, syscall.SIGTERM, 143},
		"etcd-v3, killed":  {"etcd-v3", v3, syscall.SIGKILL, -1},
		"etcd, stopped":    {"etcd", v2, syscall.SIGTERM, 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && c.signal == syscall.SIGKILL {
				t.Skip("only Linux ends the workers of an agent that was killed")
			}
			script := `echo "rank $RANK of $WORLD_SIZE restart $TORCHELASTIC_RESTART_COUNT"
				if [ $WORLD_SIZE = 6 ]; then exec sleep 60; fi`
			agents := make([]*member, 3)
			for i := range agents {
				agents[i] = startMember(t, []string{"LOGLEVEL=DEBUG"}, "run", "--nnodes=2:3", "--nproc-per-node=2",
					"--rdzv-backend="+c.backend, "--rdzv-endpoint="+c.endpoint,
					"--rdzv-id="+strings.ReplaceAll(name, ", ", "-"),
					"--rdzv-conf=join_timeout=45,last_call_timeout=1,ttl=3600", "--monitor-interval=0.5",
					"--", "sh", "-c", script)
			}
			awaitRanks(t, agents, 6)
			if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5"}, ranks(agents, 6)); diff != "" {
				t.Errorf("ranks of three agents (-want +got):\n%s", diff)
			}
			for limit := time.Now().Add(50 * time.Second); c.signal == syscall.SIGKILL && slices.ContainsFunc(agents,
				func(a *member) bool { return watched(a) < 2 }); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatal("not all agents watch two others")
				}
			}
			if err := agents[0].cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			if code := agents[0].exit(t); code != c.code {
				t.Errorf("the agent that went has exit code %d, want %d", code, c.code)
			}
			for _, a := range agents[1:] {
				if code := a.exit(t); code != 0 {
					t.Errorf("an agent that went on has exit code %d", code)
				}
			}
			if diff := cmp.Diff([]string{"0", "1", "2", "3"}, ranks(agents, 4)); diff != "" {
				t.Errorf("ranks of two agents (-want +got):\n%s", diff)
			}
		})
	}
}
