package generators_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

const (
	inEtcd  = "rendezvous: {backend: etcd, store: etcd}"
	dlrover = "framework: dlrover"
)

// TestStartElasticJobs: starting a suspended job changes one field of one object.
func TestStartElasticJobs(t *testing.T) {
	for target, c := range map[string]struct{ spec, want string }{
		"pytorchjob": {"launcher: torchrun", "PyTorchJob/resnet spec.runPolicy.suspend"},
		"elasticjob": {dlrover, "ElasticJob/resnet spec.suspend"},
	} {
		for _, more := range []string{
			"gang: {scheduler: koordinator}", "gang: {scheduler: volcano}",
			"storage: [{mountPath: /data, dataset: {url: 'http://x.org/a.zip'}}]",
		} {
			before := controllerJob(t, target, c.spec, more, "suspend: true")
			after := controllerJob(t, target, c.spec, more)
			if diff := cmp.Diff([]string{c.want}, changed(t, objects(before), objects(after))); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", target, more, diff)
			}
		}
	}
}

// TestScaleElasticJobs: another number of workers is another number, and no other template.
func TestScaleElasticJobs(t *testing.T) {
	for target, c := range map[string]struct{ spec, workers, want string }{
		"pytorchjob": {
			"launcher: torchrun", "workers: {replicas: %d, min: 1, max: 8}",
			"PyTorchJob/resnet spec.pytorchReplicaSpecs.Worker.replicas",
		},
		"elasticjob": {
			inEtcd, "workers: {replicas: %d, min: 1, max: 8}",
			"ElasticJob/resnet spec.replicaSpecs.Worker.replicas",
		},
	} {
		at := func(n int) *job.Job { return controllerJob(t, target, c.spec, fmt.Sprintf(c.workers, n)) }
		if diff := cmp.Diff([]string{c.want}, changed(t, objects(at(2)), objects(at(3)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	at := func(n int) *job.Job {
		return controllerJob(t, "elasticjob", dlrover, fmt.Sprintf("workers: {replicas: %d, min: 1}", n))
	}
	want := []string{"ElasticJob/resnet spec.replicaSpecs.worker.replicas"}
	if diff := cmp.Diff(want, changed(t, objects(at(2)), objects(at(3)))); diff != "" {
		t.Errorf("DLRover (-want +got):\n%s", diff)
	}
}

// TestVariablesOfPyTorchJob: the operator adds torchrun's variables and PYTHONUNBUFFERED, and a name twice would be its
// word against ours.
func TestVariablesOfPyTorchJob(t *testing.T) {
	for name := range env(t, worker(t, objects(controllerJob(t, "pytorchjob")))) {
		if strings.HasPrefix(name, "PET_") || name == "PYTHONUNBUFFERED" {
			t.Errorf("%s is the operator's to set", name)
		}
	}
}

// TestElasticJobArgs: the controller puts its options first, so ours come next, then the program, whoever starts it.
func TestElasticJobArgs(t *testing.T) {
	own := []string{"--max_restarts=3", "--nproc_per_node=1", "--rdzv_conf=last_call_timeout=30,timeout=600"}
	for what, c := range map[string]struct{ spec, command, args []string }{
		"command": {nil, []string{"torchrun"}, append(slices.Clone(own), "--no_python", "python", "train.py")},
		"script": {
			[]string{"command: []", "script: {image: /main.py}", "args: [-v]"},
			[]string{"torchrun"},
			append(slices.Clone(own), "/main.py", "-v"),
		},
		"torchrun": {
			[]string{"command: [torchrun]", "args: [--max-restarts, '9', train.py]"},
			[]string{"torchrun"},
			append(slices.Clone(own[1:]), "--max-restarts", "9", "train.py"),
		},
		"entrypoint": {
			[]string{"launcher: entrypoint", "command: []", "args: [train.py]"},
			[]string{},
			append(slices.Clone(own), "train.py"),
		},
		"wrapper": {
			[]string{"launcher: entrypoint", "command: [start]", "args: [train.py]"},
			[]string{"start"},
			append(slices.Clone(own), "train.py"),
		},
	} {
		got := worker(t, objects(controllerJob(t, "elasticjob", append(c.spec, inEtcd)...)))
		if diff := cmp.Diff([][]string{c.command, c.args}, [][]string{got.Command, got.Args}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// TestDLRoverScript runs what starts dlrover-run: words of the author's stay words, and the upper bound is the
// master's.
func TestDLRoverScript(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dlrover-run"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	c := worker(t, objects(controllerJob(t, "elasticjob", dlrover, "workers: {replicas: 4, min: 3}",
		`command: [python, "a b;c", "$HOME"]`)))
	run := func(variables ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), c.Command[0], append(c.Command[1:], c.Args...)...)
		cmd.Env = append(variables, "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.Output()
		return string(out), err
	}
	got, err := run("NODE_NUM=4")
	want := "--nnodes=3:4\n--max_restarts=3\n--nproc_per_node=1\n" +
		"--rdzv_conf=join_timeout=600,lastcall_timeout=30\n--no_python\npython\na b;c\n$HOME\n"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if out, err := run(); err == nil {
		t.Errorf("without NODE_NUM, which the master sets: no failure, but %q", out)
	}
}

// TestDLRoverMaster: the controller gives the master's pod the labels of the job, so no selector of workers may match
// them, and it may do in its namespace what it does.
func TestDLRoverMaster(t *testing.T) {
	objs := objects(controllerJob(t, "elasticjob", dlrover))
	sets := all[*apis.DLRoverJob](objs)[0].PodSets()
	if len(sets) != 2 || !sets[0].Foreign ||
		sets[0].Template.Labels["app.kubernetes.io/component"] ==
			sets[1].Template.Labels["app.kubernetes.io/component"] {
		t.Errorf("pods: %+v", sets)
	}
	// The Service of the master selects it.
	if got := sets[0].Template.Labels["app.kubernetes.io/name"]; got != "elasticjob" {
		t.Errorf("the job's label app.kubernetes.io/name is %q", got)
	}
	if got := all[*rbacv1.Role](objs); len(got) != 1 {
		t.Errorf("%d roles outside namespace dlrover", len(got))
	}
	at := strings.Replace(jobText(dlrover, "target: elasticjob"), "namespace: ml", "namespace: dlrover", 1)
	if got := all[*rbacv1.Role](objects(load(t, at))); len(got) != 0 {
		t.Errorf("%d roles in namespace dlrover, whose account has one", len(got))
	}
}
