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
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/test/ports"
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

// arguments prints a program's arguments, a line each.
const arguments = `printf '%s\n' "$@"`

// shim is a directory with a program.
func shim(t *testing.T, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(ports.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// parameterServers runs an MXNet program in every role at once. serve is the command of the scheduler and the servers;
// nil means that of the workers. It returns the events of all roles and the errors of those that failed.
func parameterServers(t *testing.T, serve []string, servers int, workers ...string) (said []event, failed []string) {
	t.Helper()
	work := []string{python, workspace(t) + "/train_cifar10.py", "--kv-store=dist_sync"}
	if serve == nil {
		serve = work
	}
	shared := []string{
		"PATH=" + shim(t, "python", "exec "+python+` "$@"`) + ":" + os.Getenv("PATH"),
		"DMLC_PS_ROOT_URI=localhost", "DMLC_PS_ROOT_PORT=" + freePort(t), "DMLC_USE_KUBERNETES=1",
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
	for i, role := range slices.Backward(roles) { // the scheduler last: the others wait for it
		words := work
		if i <= servers {
			words = serve
		}
		cmd, out := program(t, append(role, shared...), words...)
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
	slices.SortFunc(said, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role),
			cmp.Compare(a.Rank, b.Rank))
	})
	for i := range said {
		said[i].Host = ""
	}
	return said, failed
}

// TestParameterServers: scheduler, servers and workers find each other by the variables alone, with the workers'
// command and with the image's entrypoint without arguments.
func TestParameterServers(t *testing.T) {
	needPython(t)
	want := []event{
		{Event: "mxnet", Role: "scheduler", Servers: 2},
		{Event: "mxnet", Role: "server", Rank: 0, Sum: 6},
		{Event: "mxnet", Role: "server", Rank: 1, Sum: 6},
		{Event: "mxnet", Role: "worker", Rank: 0, Sum: 6, Servers: 2},
		{Event: "mxnet", Role: "worker", Rank: 1, Sum: 6, Servers: 2},
		{Event: "mxnet", Role: "worker", Rank: 2, Sum: 6, Servers: 2},
	}
	for _, serve := range [][]string{nil, {"sh", workspace(t) + "/entrypoint"}} {
		said, failed := parameterServers(t, serve, 2, "2", "0", "1")
		if diff := gocmp.Diff(want, said); diff != "" || failed != nil {
			t.Errorf("served by %q: %q (-want +got):\n%s", serve, failed, diff)
		}
	}
}

// TestParameterServersOfOneNumber: ranks are those of addresses, not those that a variable of BytePS's names.
func TestParameterServersOfOneNumber(t *testing.T) {
	needPython(t)
	said, failed := parameterServers(t, nil, 1, "0", "0")
	var ranks []int
	for _, e := range said {
		if e.Role == "worker" {
			ranks = append(ranks, e.Rank)
		}
	}
	if diff := gocmp.Diff([]int{0, 1}, ranks); diff != "" || failed != nil {
		t.Errorf("%q (-want +got):\n%s", failed, diff)
	}
}

// TestHorovodrun: the stand-in's mpirun has the line that the real horovodrun was seen to run, of 0.28.1 and of 0.16.1.
func TestHorovodrun(t *testing.T) {
	needPython(t)
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("a.svc slots=2\nb.svc slots=2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env   []string
		words string
		want  string
	}{
		"horovod": {
			words: "-np 4 -p 12345 -H h:4 --start-timeout 600 --mpi --network-interfaces eth0 python train.py -p 7",
			want: "--allow-run-as-root --tag-output -np 4 -H h:4 -bind-to none -map-by slot -mca pml ob1 -mca btl " +
				"^openib " +
				"-mca plm_rsh_args '-p 12345' -mca btl_tcp_if_include eth0 -x NCCL_SOCKET_IFNAME=eth0 -x NAME… " +
				"python train.py -p 7",
		},
		"hosts of a file, interfaces found": {
			words: "-np 4 --hostfile " + hosts + " --mpi python train.py",
			want: "--allow-run-as-root --tag-output -np 4 -H a.svc:2,b.svc:2 -bind-to none -map-by slot -mca pml " +
				"ob1 -mca btl ^openib " +
				"-mca btl_tcp_if_include eth0 -x NCCL_SOCKET_IFNAME=eth0 -x NAME… python train.py",
		},
		"bytescheduler": {
			env:   []string{"USE_BYTESCHEDULER=1"},
			words: "-np 8 -p 2222 -H a.svc:4,b.svc:4 python benchmark.py --model vgg16",
			want: "--allow-run-as-root --tag-output -np 8 -H a.svc:4,b.svc:4 -bind-to none -map-by slot -mca pml " +
				"ob1 -mca btl ^openib " +
				"-mca plm_rsh_args '-p 2222' -mca btl_tcp_if_include eth0 -x NCCL_SOCKET_IFNAME=eth0 -x " +
				"NCCL_DEBUG=INFO -x NAME… python benchmark.py --model vgg16",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fakes := strings.Join([]string{
				shim(t, "mpirun",
					`for word; do `+
						`case $word in *" "*) printf "'%s' " "$word" ;; *) printf '%s ' "$word" ;; esac; done`),
				shim(t, "ip", "echo '2: eth0    inet 10.0.0.9/24 brd 10.0.0.255 scope global eth0'"),
				shim(t, "ssh", "echo lo eth0 docker0"),
			}, ":")
			env := append([]string{
				"PATH=" + fakes + ":" + os.Getenv("PATH"), "DIST_BACKEND=gloo", "HOSTNAME=own",
				"OLDPWD=/", "CUDA_VISIBLE_DEVICES=0",
			}, c.env...)
			cmd, out := program(t, env, append([]string{python, launcher(t)}, strings.Fields(c.words)...)...)
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			exported := regexp.MustCompile(`(-x [A-Za-z_0-9]+ )+`)
			got := strings.TrimSpace(out.String())
			if diff := gocmp.Diff(c.want, exported.ReplaceAllString(got, "-x NAME… ")); diff != "" {
				t.Errorf("mpirun's words (-want +got):\n%s", diff)
			}
			// Each host's own name goes to all, as do the others' devices in 0.16.
			for name, want := range map[string]bool{
				"DIST_BACKEND": true, "HOSTNAME": true, "OLDPWD": c.env != nil,
				"CUDA_VISIBLE_DEVICES": c.env != nil,
			} {
				if strings.Contains(got, "-x "+name+" ") != want {
					t.Errorf("%s is exported: %t, want %t: %s", name, !want, want, got)
				}
			}
		})
	}
}

// TestOldHorovodrun: what came after 0.16.1 is refused where ByteScheduler's runs.
func TestOldHorovodrun(t *testing.T) {
	needPython(t)
	for _, option := range []string{
		"--start-timeout=5", "--hostfile=hosts", "--network-interfaces=eth0", "--gloo",
		"--mpi",
	} {
		cmd, out := program(t, []string{"USE_BYTESCHEDULER=1"}, python, launcher(t), "-np", "2", "-H", "localhost:2",
			option, "true")
		if err := cmd.Run(); err == nil || !strings.Contains(out.String(), "unrecognized arguments: "+option) {
			t.Errorf("%s: %v: %s", option, err, out)
		}
	}
}

// TestRanks: every rank that the launcher starts adds its own to the sum, by either controller.
func TestRanks(t *testing.T) {
	for controller, needs := range map[string][]string{"mpi": {"mpi4py"}, "gloo": nil} {
		t.Run(controller, func(t *testing.T) {
			needPython(t, needs...)
			for _, name := range []string{"mpirun", "ip"} {
				if _, err := exec.LookPath(name); err != nil {
					t.Skip("this machine has no " + name)
				}
			}
			env := []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "HOME=" + t.TempDir()}
			cmd, out := program(t, env, python, launcher(t), "-np", "3", "-H", "localhost:3", "--"+controller,
				python, workspace(t)+"/train.py")
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var ranks []int
			for line := range strings.Lines(out.String()) { // behind what says whose it is
				for _, e := range events(t, line[max(0, strings.IndexByte(line, '{')):]) {
					if e.Event == controller && e.Size == 3 && e.Sum == 6 {
						ranks = append(ranks, e.Rank)
					}
				}
			}
			slices.Sort(ranks)
			if diff := gocmp.Diff([]int{0, 1, 2}, ranks); diff != "" {
				t.Errorf("ranks that know the sum (-want +got):\n%s\n%s", diff, out)
			}
		})
	}
}

// TestGlooFails: with the first process that fails all end, and the launcher's status is 1, whatever theirs was.
func TestGlooFails(t *testing.T) {
	needPython(t)
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("this machine has no ip")
	}
	const script = `[ "$HOROVOD_RANK" = 1 ] && exit 7; sleep 60`
	cmd, out := program(t, nil, python, launcher(t), "-np", "2", "-H", "localhost:2", "--gloo", "sh", "-c", script)
	began := time.Now()
	err := cmd.Run()
	if err == nil || err.Error() != "exit status 1" ||
		!strings.Contains(out.String(), "Process 1 exit with status code 7.") || time.Since(began) > 30*time.Second {
		t.Errorf("%v after %v: %s", err, time.Since(began), out)
	}
}

// TestEntrypoint: training starts with the script's own arguments, once its data is there. Other arguments run as a
// command. Without arguments and without a role it fails.
func TestEntrypoint(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the image's programs are for Linux")
	}
	full, empty := t.TempDir(), t.TempDir()
	if err := os.WriteFile(full+"/image.jpeg", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(words ...string) (string, error) {
		cmd, out := program(t, []string{"PATH=" + shim(t, "torchrun", arguments) + ":" + os.Getenv("PATH")},
			append([]string{"sh", workspace(t) + "/entrypoint"}, words...)...)
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
		if out, err := run(script, "--input_path", dir); err == nil ||
			!strings.Contains(out, "the training data is missing: "+dir) {
			t.Errorf("without data: %v, %q", err, out)
		}
	}
	if out, err := run("echo", "hello"); err != nil || out != "hello\n" {
		t.Errorf("another command: %v, %q", err, out)
	}
	// A pod with nothing to run must not succeed.
	if out, err := run(); err == nil || !strings.Contains(out, "nothing to run") {
		t.Errorf("no command: %v, %q", err, out)
	}
}
