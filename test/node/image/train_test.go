//go:build linux

package image_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// log is what a program has printed so far.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// agent is a torchrun with one worker of train.py.
type agent struct {
	cmd *exec.Cmd
	log *log
}

// agents starts two of them, which meet in the first one's store and share a checkpoint.
func agents(t *testing.T, checkpoint string, words ...string) []agent {
	t.Helper()
	args := append([]string{
		"--nnodes=1:2", "--rdzv_id=" + filepath.Base(checkpoint), "--rdzv_backend=c10d", "--max_restarts=3",
		"--rdzv_endpoint=localhost:" + freePort(t), "--rdzv_conf=last_call_timeout=3",
		"--monitor_interval=1",
		workspace(t) + "/train.py", "--epochs=20",
	}, words...)
	out := make([]agent, 2)
	for i := range out {
		cmd, _ := program(t, []string{
			"PET_REDIRECTS=9:1", "PET_TEE=9:1", // as in the image: Debian's torch starts no worker without
			"CHECKPOINT_DIR=" + checkpoint, "GLOO_SOCKET_IFNAME=lo", "OMP_NUM_THREADS=1", "HOME=" + t.TempDir(),
		}, append([]string{"torchrun"}, args...)...)
		l := &log{}
		cmd.Stdout, cmd.Stderr = l, l
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out[i] = agent{cmd, l}
	}
	return out
}

// wait polls until something an agent prints is there.
func (a agent) wait(t *testing.T, what string, is func(event) bool) event {
	t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for time.Now().Before(deadline) {
		if all := events(t, a.log.String()); slices.ContainsFunc(all, is) {
			return all[slices.IndexFunc(all, is)]
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no %s after 90 seconds; it printed:\n%s", what, a.log)
	return event{}
}

// end waits until an agent has ended well, and returns what its worker said last.
func (a agent) end(t *testing.T) event {
	t.Helper()
	if err := a.cmd.Wait(); err != nil {
		t.Fatalf("torchrun: %v\n%s", err, a.log)
	}
	all := events(t, a.log.String())
	return all[len(all)-1]
}

// worker is the process that an agent started.
func (a agent) worker(t *testing.T) int {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		var pid, parent int
		var state string
		at := strings.LastIndex(string(text), ")") // a program's name may hold anything
		if _, err := fmt.Sscan(string(text[at+1:]), &state, &parent); err != nil || parent != a.cmd.Process.Pid {
			continue
		}
		if _, err := fmt.Sscan(filepath.Base(filepath.Dir(file)), &pid); err == nil {
			return pid
		}
	}
	t.Fatal("the agent has no worker")
	return 0
}

// TestTrain: a lost worker ends the others' processes at once, a new world goes on from the checkpoint, and all end
// after the same step, which a later run goes on from.
func TestTrain(t *testing.T) {
	if os.Getenv("TEGEN_TORCH") == "" {
		t.Skip("set TEGEN_TORCH=1 to train with this machine's torch, for half a minute")
	}
	needPython(t, "torch")
	if _, err := exec.LookPath("torchrun"); err != nil {
		t.Skip("no torchrun on this machine")
	}
	checkpoint := filepath.Join(t.TempDir(), "run")
	both := agents(t, checkpoint, "--steps=60", "--pause=0.05")
	at := func(step int) func(event) bool {
		return func(e event) bool { return e.Event == "step" && e.Step >= step && e.Size == 2 && e.Sum == 3 }
	}
	for _, a := range both {
		a.wait(t, "step 10 of two", at(10))
	}
	if err := syscall.Kill(both[1].worker(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := func(e event) bool { return e.Event == "join" && e.Restart == 1 }
	for _, a := range both {
		if e := a.wait(t, "second world", again); e.Size != 2 || e.Step < 10 {
			t.Errorf("the second world is %+v", e)
		}
	}
	var last event
	for i, a := range both {
		last = a.end(t)
		if last.Event != "done" || last.Step != 60 {
			t.Errorf("agent %d ended with %+v", i, last)
		}
	}
	first := both[0].wait(t, "loss", at(1)).Loss
	if last.Loss > first/10 {
		t.Errorf("the loss is %g, and was %g", last.Loss, first)
	}

	both = agents(t, checkpoint, "--steps=62")
	for _, a := range both {
		if e := a.wait(t, "resumed world", func(e event) bool { return e.Event == "join" }); e.Step != 60 {
			t.Errorf("it goes on from %+v", e)
		}
		if e := a.end(t); e.Step != 62 {
			t.Errorf("it ended with %+v", e)
		}
	}
}
