package generators_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/schema"
)

// TestStopSignal runs the preStop hook that the documentation recommends against processes of a torchrun's shape: its
// workers hear SIGTERM and may finish, it itself never does, and is killed. The shape is that of torch's agent, whose
// handler of SIGTERM ends the workers (torch/distributed/elastic/multiprocessing/api.py, _terminate_process_handler);
// here an agent only says that it heard.
func TestStopSignal(t *testing.T) {
	text, err := os.ReadFile("../fixtures/valid/stop-signal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := schema.Load([]schema.Source{{Name: "stop-signal.yaml", Data: text}})
	if err != nil {
		t.Fatal(err)
	}
	hook := worker(t, objects(jobs[0])).Lifecycle.PreStop.Exec.Command
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	dir := t.TempDir()
	script := filepath.Join(dir, "worker.sh")
	if err := os.WriteFile(script, []byte("trap 'sleep 1; echo saved >"+dir+"/checkpoint; exit 0' TERM\necho ready >"+
		dir+"/ready\nwhile :; do sleep 0.1; done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The name torchrun of this test alone: the hook looks at every process that it sees.
	name := "torchrun-" + filepath.Base(filepath.Dir(dir))
	agent := exec.CommandContext(ctx, "sh", "-c", "trap 'echo closed >"+dir+"/closed' TERM; sh "+script+" & wait; wait",
		name)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill() })
	await(t, filepath.Join(dir, "ready"))

	command := exec.CommandContext(ctx, hook[0], hook[1], strings.ReplaceAll(hook[2], "grep -qsa torchrun",
		"grep -qsa "+name))
	if out, err := command.CombinedOutput(); err != nil {
		t.Logf("hook: %v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "checkpoint")); err != nil {
		t.Errorf("the worker had no time for its checkpoint: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "closed")); err == nil {
		t.Error("the agent heard SIGTERM, by which it would close the run")
	}
	_ = agent.Wait()
	if status, ok := agent.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the agent ended with %v, want SIGKILL", agent.ProcessState)
	}
}

// await waits for a file.
func await(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
	t.Fatalf("no %s after 10 s", file)
}
