package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/test/wait"
)

func TestMain(m *testing.M) {
	// The child of TestNoOrphans is this test binary.
	if mode := os.Getenv(orphanEnv); mode != "" {
		os.Exit(orphanParent(mode))
	}
	os.Exit(m.Run())
}

func TestProgramNames(t *testing.T) {
	tests := []struct {
		options Options
		want    []string
	}{
		{Options{}, []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}},
		{Options{NoScheduler: true}, []string{"etcd", "kube-apiserver", "kube-controller-manager", "kwok"}},
		{Options{NoControllers: true, NoScheduler: true}, []string{"etcd", "kube-apiserver", "kwok"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, programNames(tt.options)); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", tt.options, diff)
		}
	}
}

func TestArgs(t *testing.T) {
	gates := map[string]bool{"GenericWorkload": true, "GangScheduling": true, "AsyncAPICalls": false}
	const gateArg = "--feature-gates=AsyncAPICalls=false,GangScheduling=true,GenericWorkload=true"
	tests := []struct {
		reason  string
		program string
		options Options
		want    []string
		without []string
	}{
		{"gates in the order of their names", apiserver, Options{Gates: gates}, []string{gateArg}, nil},
		{"the same gates everywhere", controllerManager, Options{Gates: gates}, []string{gateArg}, nil},
		{"the same gates everywhere", scheduler, Options{Gates: gates}, []string{gateArg}, nil},
		{"etcd has gates of its own", etcd, Options{Gates: gates}, nil, []string{gateArg}},
		{"KWOK has none", kwok, Options{Gates: gates}, nil, []string{gateArg}},
		{"no gate, no flag", apiserver, Options{}, nil, []string{"--feature-gates", "--runtime-config"}},
		{
			"every API is switched on", apiserver,
			Options{APIs: []string{"a.k8s.io/v1alpha1", "b.k8s.io/v1beta1"}},
			[]string{"--runtime-config=a.k8s.io/v1alpha1=true,b.k8s.io/v1beta1=true"},
			nil,
		},
		{
			"without controllers nobody makes a ServiceAccount", apiserver,
			Options{NoControllers: true},
			[]string{"--disable-admission-plugins=TaintNodesByCondition,ServiceAccount"},
			nil,
		},
		{
			"the caller's take the place of ours: a list set twice would be both", controllerManager,
			Options{Args: map[string][]string{controllerManager: {"--controllers=job-controller"}}},
			[]string{"--leader-elect=false", "--controllers=job-controller"},
			[]string{"--controllers=*"},
		},
		{"ports are those of the layout", etcd, Options{}, []string{"--listen-client-urls=http://127.0.0.1:1001"}, nil},
	}
	l := layout{
		dir: t.TempDir(), etcdPort: 1001, peerPort: 1002, apiPort: 1003, cmPort: 1004, schedPort: 1005,
		kwokPort: 1006,
	}
	for _, tt := range tests {
		args := l.args(tt.program, tt.options)
		last := -1
		for _, want := range tt.want {
			at := slices.Index(args, want)
			if at <= last {
				t.Errorf("%s: %s has %q at %d, want it after %d, in %q", tt.reason, tt.program, want, at, last, args)
			}
			last = at
		}
		for _, arg := range args {
			for _, without := range tt.without {
				if strings.HasPrefix(arg, without) {
					t.Errorf("%s: %s has %q", tt.reason, tt.program, arg)
				}
			}
		}
	}
}

func TestNode(t *testing.T) {
	node, err := NodeOptions{GPUs: 2, CPU: "4", Labels: map[string]string{"rack": "a"}}.node(300)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"name": node.Name, "rack": node.Labels["rack"],
		"hostname": node.Labels[corev1.LabelHostname],
	}
	for name, quantity := range node.Status.Allocatable {
		got[string(name)] = quantity.String()
	}
	for _, address := range node.Status.Addresses {
		got[string(address.Type)] = address.Address
	}
	want := map[string]string{
		"name": "node-300", "rack": "a", "hostname": "node-300",
		"cpu": "4", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "2",
		"Hostname": "node-300", "InternalIP": "172.20.1.45",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := (NodeOptions{CPU: "much"}).node(0); err == nil || !strings.Contains(err.Error(), "cpu of node-0") {
		t.Errorf("a CPU of %q: got %v, want an error that names the resource", "much", err)
	}
}

func TestAwait(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs are started on Linux only")
	}
	tests := []struct {
		reason    string
		script    string
		want      []string
		portTaken bool
	}{
		{
			"the message has the end of the log", "echo one; echo two; exit 3",
			[]string{"waiting for sh", "exit status 3", "\tone\n\ttwo"},
			false,
		},
		{
			"a taken port is worth another try", "echo 'listen tcp 127.0.0.1:1: bind: address already in use'; exit 1",
			[]string{"already in use"},
			true,
		},
	}
	for _, tt := range tests {
		p, err := startProcess("sh", filepath.Join(t.TempDir(), "log"), "sh", []string{"-c", tt.script})
		if err != nil {
			t.Fatal(err)
		}
		err = await(t.Context(), p, func(context.Context) error { return errors.New("no") })
		if err == nil {
			t.Errorf("%s: a program that ended counts as ready", tt.reason)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in %q", tt.reason, want, err)
			}
		}
		if got := errors.Is(err, errPortTaken); got != tt.portTaken {
			t.Errorf("%s: port taken %v, want %v", tt.reason, got, tt.portTaken)
		}
	}
}

func TestStopIsExpected(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs are started on Linux only")
	}
	for _, end := range []struct {
		reason string
		how    func(*Process) error
	}{{"Stop", (*Process).Stop}, {"Kill", (*Process).Kill}} {
		p, err := startProcess("sleep", filepath.Join(t.TempDir(), "log"), "sleep", []string{"600"})
		if err != nil {
			t.Fatal(err)
		}
		if err := end.how(p); err != nil {
			t.Errorf("%s: %v", end.reason, err)
		}
		if p.alive() || running(p.Pid()) || !p.expected.Load() {
			t.Errorf("%s: alive %v, running %v, expected %v", end.reason, p.alive(), running(p.Pid()),
				p.expected.Load())
		}
		if err := p.Stop(); err != nil {
			t.Errorf("Stop of a process that has ended: %v", err)
		}
	}
}

// TestPausedHearsStop: a paused program would not see that it is to end, and be killed with its work undone.
func TestPausedHearsStop(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs are started on Linux only")
	}
	log := filepath.Join(t.TempDir(), "log")
	const script = `trap 'echo ended; exit' TERM; echo begun; while :; do sleep 0.02; done`
	p, err := startProcess("sh", log, "sh", []string{"-c", script})
	if err != nil {
		t.Fatal(err)
	}
	wrote := func(want string) func() error {
		return func() error {
			if text, err := os.ReadFile(log); err != nil || string(text) != want {
				return fmt.Errorf("it wrote %q (%w)", text, err)
			}
			return nil
		}
	}
	eventually(t, "the script to begin", wrote("begun\n"))
	if err := p.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the script to be paused", func() error {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid())); err != nil ||
			!strings.Contains(string(text), ") T ") {
			return fmt.Errorf("it is not (%w): %s", err, text)
		}
		return nil
	})
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := wrote("begun\nended\n")(); err != nil {
		t.Error(err)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := tail(path, 2), "\tline 19998\n\tline 19999"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := tail(path+".none", 2); !strings.Contains(got, "no such file") {
		t.Errorf("got %q, want the reason why nothing was read", got)
	}
}

// running says whether a process runs; one that has ended and that nobody has asked about yet does not.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The state follows the name, which is in parentheses and may hold anything.
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// eventually waits for something that comes within seconds.
func eventually(t *testing.T, what string, probe func() error) {
	t.Helper()
	wait.Until(t, what, time.Minute, pollInterval, probe)
}
