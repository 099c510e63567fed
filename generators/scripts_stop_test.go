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
	hook := stopHook(t)
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
	launcher := filepath.Join(dir, name)
	if err := os.WriteFile(launcher, []byte("trap 'echo closed >"+dir+"/closed' TERM\nsh "+script+" & wait; wait\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	agent := exec.CommandContext(ctx, python(t, dir), launcher)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill() })
	await(t, filepath.Join(dir, "ready"))

	if last := len(hook) - 1; hook[last] != "torchrun" {
		t.Fatalf("the hook ends with %q, not with a word of the launcher's command line", hook[last])
	}
	command := exec.CommandContext(ctx, hook[0], append(hook[1:len(hook)-1:len(hook)-1], name)...)
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

// stopHook is the preStop hook of the fixture that is about it.
func stopHook(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../fixtures/valid/stop-signal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := schema.Load([]schema.Source{{Name: "stop-signal.yaml", Data: text}})
	if err != nil {
		t.Fatal(err)
	}
	return worker(t, objects(jobs[0])).Lifecycle.PreStop.Exec.Command
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

// python is a shell that a process list shows as python, whose first word is a script, as it is of torchrun.
func python(t *testing.T, dir string) string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "python3.12")
	if err := os.Symlink(sh, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestStopSignalAmongOthers: processes of a PID namespace whose arguments hold the launcher's name are none: workers
// with lower numbers than their launcher as text, a worker that is a copy of it, and a sidecar.
func TestStopSignalAmongOthers(t *testing.T) {
	need(t, "unshare")
	namespace := []string{"unshare", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"}
	try := exec.CommandContext(t.Context(), namespace[0], append(namespace[1:], "true")...)
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("no PID namespace here: %v: %s", err, out)
	}
	for _, shell := range []string{"sh", "bash", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			need(t, shell)
			if shell == "busybox" {
				shell = "busybox sh"
			}
			dir := t.TempDir()
			for name, text := range map[string]string{
				"torchrun-fsdp/train.sh": `trap 'sleep 1; echo saved >"$1.saved"; exit 0' TERM
echo >"$1.ready"; while :; do sleep 0.1; done`,
				// numbers of one digit are its own, and of two its workers'
				"torchrun": `for i in 1 2 3 4 5 6 7 8 9; do (:); done
sh torchrun-fsdp/train.sh 1 --launcher torchrun & ./python3.12 torchrun-fsdp/train.sh 2 &
(trap 'sleep 1; echo saved >3.saved; exit 0' TERM; echo >3.ready; while :; do sleep 0.1; done) &
wait`,
				"drive.sh": `./python3.12 -u torchrun & agent=$!
sh -c 'while :; do sleep 0.1; done' logger --of torchrun & sidecar=$!
./python3.12 torchrun_main.py & other=$!
for i in 1 2 3; do while ! [ -e $i.ready ]; do sleep 0.1; done; done
$SHELL_OF_HOOK -c "$(cat hook)" save TERM 20 torchrun
kill -0 $sidecar && kill -0 $other && echo others live
wait $agent; echo launcher ended with $?`,
				"torchrun_main.py": "while :; do sleep 0.1; done",
			} {
				write(t, filepath.Join(dir, name), text+"\n")
			}
			_ = python(t, dir)
			write(t, filepath.Join(dir, "hook"), stopHook(t)[2])
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			command := exec.CommandContext(ctx, namespace[0], append(namespace[1:], "sh", "drive.sh")...)
			command.Dir, command.Env = dir, append(os.Environ(), "SHELL_OF_HOOK="+shell)
			out, err := command.CombinedOutput()
			if err != nil {
				t.Errorf("%v", err)
			}
			for _, want := range []string{"others live", "launcher ended with 137"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("nobody said %q:\n%s", want, out)
				}
			}
			for _, worker := range []string{"1", "2", "3"} {
				if !exists(filepath.Join(dir, worker+".saved")) {
					t.Errorf("worker %s wrote no checkpoint:\n%s", worker, out)
				}
			}
		})
	}
}

// TestStopSignalLaunchers: a launcher is known by where its name stands.
func TestStopSignalLaunchers(t *testing.T) {
	functions, _, found := strings.Cut(stopHook(t)[2], "agents=")
	if !found {
		t.Fatal("the hook has no list of agents")
	}
	for _, c := range []struct {
		line, word string
		want       bool
	}{
		{"/opt/conda/bin/python3.11 /opt/conda/bin/torchrun --nnodes=2 train.py", "torchrun", true},
		{"python -X dev -W ignore -u -m torch.distributed.run train.py", "torch.distributed.run", true},
		{"torchrun train.py", "torchrun", true},
		{"bash -c torchrun_train.py", "torchrun", false},
		{"bash -c torchrun", "torchrun", false},
		{"python torchrun_main.py", "torchrun", false},
		{"python train.py --launcher torchrun", "torchrun", false},
		{"python torchrun/train.py", "torchrun", false},
		{"python -c pass torchrun", "torchrun", false},
		{"fluent-bit --of torchrun", "torchrun", false},
		{"python -m torch_distributed_run train.py", "torch.distributed.run", false},
		{"python", "torchrun", false},
		{"", "torchrun", false},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "1", "cmdline"), strings.ReplaceAll(c.line, " ", "\x00")+"\x00")
		script := strings.Replace(functions, "cd /proc", "cd "+dir, 1) + `launches 1 "$1"`
		out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "-", c.word).CombinedOutput()
		if (err == nil) != c.want {
			t.Errorf("%q is a launcher: %t, want %t: %s", c.line, err == nil, c.want, out)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
