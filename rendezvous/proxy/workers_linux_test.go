package proxy

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestKillWorkers: of what a command has started the workers of its run are killed, and neither what they have started
// nor what belongs to another run.
func TestKillWorkers(t *testing.T) {
	t.Parallel()
	const script = `TORCHELASTIC_RUN_ID=mine sleep 1000 &
TORCHELASTIC_RUN_ID=mine sh -c "sleep 1001 & wait" &
TORCHELASTIC_RUN_ID=theirs sleep 1002 &
wait`
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // all of them
		_ = cmd.Wait()                                      // it was killed
	})
	started := func(run string) (n int) {
		for pid := range descendants(cmd.Process.Pid) {
			if ofRun(pid, run) {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(time.Minute); started("mine") < 3 || started("theirs") < 1; {
		if time.Now().After(end) {
			t.Fatalf("%d processes of the run and %d of another have started", started("mine"), started("theirs"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := killWorkers(cmd.Process.Pid, "mine"); n != 2 {
		t.Errorf("%d workers were killed, want 2", n)
	}
	if n := started("theirs"); n != 1 {
		t.Errorf("%d processes of the other run are left, want 1", n)
	}
}

// TestKillNoCommand: before a command was started there is nothing to kill. Every process descends from PID 0.
func TestKillNoCommand(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{"TORCHELASTIC_RUN_ID=" + t.Name()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	if n := killWorkers(0, t.Name()); n != 0 {
		t.Errorf("%d workers were killed", n)
	}
}
