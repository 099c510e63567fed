package image_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// python is Debian's own, whose modules the image has.
const python = "/usr/bin/python3"

// event is a line that a program of the image prints.
type event struct {
	Event, Role, Host, Master, Script, Path string
	Rank, Size, Sum, Step, Restart, Servers int
	Loss                                    float64
}

// workspace is the image's working directory.
func workspace(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("root/workspace")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// launcher is the stand-in for Horovod's, which pods find on their search path.
func launcher(t *testing.T) string {
	t.Helper()
	return filepath.Join(workspace(t), "../usr/local/bin/horovodrun")
}

// needPython skips a test where this machine's Python lacks a module that the image has.
func needPython(t *testing.T, modules ...string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the image's programs are for Linux")
	}
	if err := exec.Command(python, "-c", "import "+strings.Join(append(modules, "sys"), ",")).Run(); err != nil {
		t.Skipf("no %s with %v on this machine: %v", python, modules, err)
	}
}

// program is one of the image's, run here with nothing of our environment but the path.
func program(t *testing.T, env []string, words ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1"}, env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second // what a program started may still hold its output
	return cmd, &out
}

// events are the lines of JSON in what a program printed.
func events(t *testing.T, out string) []event {
	t.Helper()
	var all []event
	for line := range strings.Lines(out) {
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// shim is a directory with a program that prints its arguments, a line each.
func shim(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // only its number was of interest
	return l.Addr().(*net.TCPAddr).Port
}

// parameterServers runs a program of MXNet's in every role at once. It returns what each said, or how it ended.
func parameterServers(t *testing.T, servers int, workers ...string) (said []event, failed []string) {
	t.Helper()
	shared := []string{
		"DMLC_PS_ROOT_URI=localhost", fmt.Sprintf("DMLC_PS_ROOT_PORT=%d", freePort(t)), "DMLC_USE_KUBERNETES=1",
		fmt.Sprintf("DMLC_NUM_SERVER=%d", servers), fmt.Sprintf("DMLC_NUM_WORKER=%d", len(workers)),
	}
	roles := [][]string{{"DMLC_ROLE=scheduler"}}
	for range servers {
		roles = append(roles, []string{"DMLC_ROLE=server"})
	}
	for _, id := range workers {
		roles = append(roles, []string{"DMLC_ROLE=worker", "DMLC_WORKER_ID=" + id})
	}
	type running struct {
		cmd *exec.Cmd
		out *bytes.Buffer
	}
	var all []running
	for _, role := range slices.Backward(roles) { // the scheduler last: the others wait for it
		cmd, out := program(t, append(role, shared...), python, workspace(t)+"/train_cifar10.py", "--kv-store=dist_sync")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, running{cmd, out})
	}
	for _, r := range all {
		if err := r.cmd.Wait(); err != nil {
			failed = append(failed, fmt.Sprintf("%v: %s", err, r.out))
		}
		said = append(said, events(t, r.out.String())...)
	}
	slices.SortFunc(said, func(a, b event) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Rank, b.Rank)) })
	for i := range said {
		said[i].Host = ""
	}
	return said, failed
}

// TestParameterServers: scheduler, servers and workers find each other by the variables alone.
func TestParameterServers(t *testing.T) {
	needPython(t)
	said, failed := parameterServers(t, 2, "2", "0", "1")
	want := []event{
		{Event: "mxnet", Role: "scheduler", Servers: 2},
		{Event: "mxnet", Role: "server", Rank: 0, Sum: 6},
		{Event: "mxnet", Role: "server", Rank: 1, Sum: 6},
		{Event: "mxnet", Role: "worker", Rank: 0, Sum: 6, Servers: 2},
		{Event: "mxnet", Role: "worker", Rank: 1, Sum: 6, Servers: 2},
		{Event: "mxnet", Role: "worker", Rank: 2, Sum: 6, Servers: 2},
	}
	if diff := gocmp.Diff(want, said); diff != "" || failed != nil {
		t.Errorf("%q (-want +got):\n%s", failed, diff)
	}
}

// TestParameterServersOfOneRank: workers that are told the same number are noticed, and nobody waits for the missing one.
func TestParameterServersOfOneRank(t *testing.T) {
	needPython(t)
	said, failed := parameterServers(t, 1, "0", "0")
	if len(said) != 0 || len(failed) != 4 || !strings.Contains(strings.Join(failed, ""), "ranks of workers are [0, 0]") {
		t.Errorf("said %v, failed %q", said, failed)
	}
}

// TestHorovodrun: what the launcher is told of hosts, port and program reaches mpirun, and its environment the processes.
func TestHorovodrun(t *testing.T) {
	needPython(t)
	for _, c := range []struct {
		name  string
		words []string
		want  []string // words that stand next to each other
	}{
		{
			"horovod",
			[]string{"-np", "16", "-p", "12345", "--hostfile", "/tegen/ssh/hostfile", "--start-timeout", "600", "--gloo", "python", "train.py", "-p", "7"},
			[]string{"-np 16", "plm_rsh_args -p 12345 ", "--hostfile /tegen/ssh/hostfile", "-x DIST_BACKEND", "python train.py -p 7"},
		},
		{
			"bytescheduler",
			[]string{"-np", "8", "-p", "2222", "-H", "a.b:4,c.d:4", "--start-timeout", "5", "python", "benchmark.py", "--model", "vgg16"},
			[]string{"-np 8", "plm_rsh_args -p 2222 ", "-H a.b:4,c.d:4", "-x DIST_BACKEND", "python benchmark.py --model vgg16"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := []string{"PATH=" + shim(t, "mpirun") + ":" + os.Getenv("PATH"), "DIST_BACKEND=gloo", "HOSTNAME=own"}
			cmd, out := program(t, env, append([]string{python, launcher(t)}, c.words...)...)
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got := strings.Join(strings.Fields(out.String()), " ")
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in: %s", want, got)
				}
			}
			if strings.Contains(got, "-x HOSTNAME") {
				t.Errorf("one host's name is handed to all: %s", got)
			}
		})
	}
}

// TestMPI: every rank that the launcher starts adds its own to the sum.
func TestMPI(t *testing.T) {
	needPython(t, "mpi4py")
	if _, err := exec.LookPath("mpirun"); err != nil {
		t.Skip("no mpirun on this machine")
	}
	env := []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "HOME=" + t.TempDir()}
	cmd, out := program(t, env, python, launcher(t), "-np", "3", "-H", "localhost:3", "--mpi", python, workspace(t)+"/train.py")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var ranks []int
	for _, e := range events(t, out.String()) {
		if e.Event == "mpi" && e.Size == 3 && e.Sum == 6 {
			ranks = append(ranks, e.Rank)
		}
	}
	slices.Sort(ranks)
	if diff := gocmp.Diff([]int{0, 1, 2}, ranks); diff != "" {
		t.Errorf("ranks that know the sum (-want +got):\n%s\n%s", diff, out)
	}
}

// TestEntrypoint: training starts with the script's own arguments, once its data is there, and anything else is run.
func TestEntrypoint(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the image's programs are for Linux")
	}
	full, empty := t.TempDir(), t.TempDir()
	if err := os.WriteFile(full+"/image.jpeg", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(words ...string) (string, error) {
		cmd, out := program(t, []string{"PATH=" + shim(t, "torchrun") + ":" + os.Getenv("PATH")}, append([]string{"sh", workspace(t) + "/entrypoint"}, words...)...)
		err := cmd.Run()
		return out.String(), err
	}
	const script = "s3://bucket/main.py"
	for _, where := range [][]string{{"--input_path", full}, {"--input_path=" + full}} {
		out, err := run(append(append([]string{script}, where...), "--epochs", "10")...)
		first, rest, _ := strings.Cut(out, "\n")
		want := strings.Join(append(append([]string{"/workspace/train.py"}, where...), "--epochs", "10", ""), "\n")
		if diff := gocmp.Diff(want, rest); diff != "" || err != nil {
			t.Errorf("%v: torchrun's arguments: %v (-want +got):\n%s", where, err, diff)
		}
		if diff := gocmp.Diff([]event{{Event: "data", Script: script, Path: full}}, events(t, first)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", where, diff)
		}
	}
	for _, dir := range []string{empty, full + "/none"} {
		if out, err := run(script, "--input_path", dir); err == nil || !strings.Contains(out, "the training data is missing: "+dir) {
			t.Errorf("without data: %v, %q", err, out)
		}
	}
	if out, err := run("echo", "hello"); err != nil || out != "hello\n" {
		t.Errorf("another command: %v, %q", err, out)
	}
}
