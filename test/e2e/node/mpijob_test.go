package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/test/upstream"
)

const (
	// operatorsEnv names a folder with programs of others that are not built here, under their projects' names.
	operatorsEnv = "TEGEN_NODE_OPERATORS"
	// horovodEnv names a tar.gz of the real Horovod: bin/horovodrun, and its package with the compiled library and what
	// it imports in lib, for the Python and torch of the workers' image.
	horovodEnv = "TEGEN_NODE_HOROVOD"
)

// realHorovod is a job that fetches the real Horovod as its dataset, for the image has a stand-in. C is a controller.
const realHorovod = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: horovod-C, namespace: training}
spec:
  framework: horovod
  target: mpijob
  image: ghcr.io/acme/horovod-ssh:0.28.1
  script: {configMap: {name: hvd, key: hvd.py}}
  env:
    - {name: PATH, value: "/data/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    - {name: PYTHONPATH, value: "/data/lib:/workspace"}
  workers: {replicas: 2, processes: 2}
  resources: {cpu: 100m, memory: 1Gi, shm: 64Mi, ephemeralStorage: 1Gi}
  roles: {launcher: {resources: {cpu: 100m, memory: 512Mi}}}
  horovod: {controller: C}
  storage:
    - mountPath: /data
      efs: {fileSystem: fs-0123456789abcdef0, path: /}
      dataset: {url: "http://horovod.example/horovod.tar.gz"}
`

var bothAnswer = regexp.MustCompile(`^2 hosts answer after \d+ seconds$`)

// TestMPIJob: the real MPI operator makes launcher and workers, of a job that was suspended too, and Open MPI's mpirun
// starts the ranks on them by ssh, with the operator's keys, host file and variables.
func TestMPIJob(t *testing.T) {
	w := begin(t)
	w.takeTurn(t)
	w.startMPIOperator(t)

	const scenario = "14 MPIJob"
	j := w.job(t, scenario+", suspended", rendered(t, "horovod-mpijob-suspended", "kind"), "")
	j.apply()
	j.awaitMPI("Suspended")
	if pods := j.podsOf(""); len(pods) > 0 {
		t.Errorf("%d pods of a suspended job", len(pods))
	}
	resumed := time.Now()
	j.kubectl(t, "patch", "-n", j.namespace, "mpijob", j.name, "--type=merge",
		`--patch={"spec":{"runPolicy":{"suspend":false}}}`)
	j.runMPI("mpi", 1, resumed)

	j = w.job(t, scenario+", ByteScheduler", rendered(t, "bytescheduler-mpijob", "kind"), "")
	j.apply()
	j.runMPI("mpi", 4, j.applied)

	text := strings.Replace(mpiRanks, "  framework: mpi\n", "  framework: mpi\n  target: mpijob\n", 1)
	text = strings.Replace(text, `, --steps, "3000"`, "", 1)
	j = w.job(t, scenario+", mpirun", manifest(t, "ranks.yaml", text, "kind"), "")
	j.apply()
	j.runMPI("mpi", 2, j.applied)
}

// TestMPIJobHorovod: the same by the real horovodrun, whose library adds gradients and weights up, by gloo and by MPI.
func TestMPIJobHorovod(t *testing.T) {
	w := begin(t)
	w.takeTurn(t)
	archive := os.Getenv(horovodEnv)
	if archive == "" {
		t.Skipf("%s names no tar.gz of Horovod, compiled for the workers' image", horovodEnv)
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("hvd.py")
	if err != nil {
		t.Fatal(err)
	}
	w.startMPIOperator(t)
	w.serve(t, "http://horovod.example/horovod.tar.gz", content)
	w.enter(t, "training")
	w.provide(t, "training", "ConfigMap", "hvd", map[string]string{"hvd.py": string(program)})
	for _, controller := range []string{"gloo", "mpi"} {
		text := strings.ReplaceAll(realHorovod, "C}", controller+"}")
		text = strings.ReplaceAll(text, "horovod-C", "horovod-"+controller)
		j := w.job(t, "14 MPIJob, real horovodrun with "+controller, manifest(t, controller+".yaml", text, "kind"), "")
		j.apply()
		j.runMPI("horovod", 2, j.applied)
		for _, e := range j.all() {
			if e.Event == "horovod" && e.Fields[controller] != true {
				t.Errorf("rank %d does not have %s: %v", e.Rank, controller, e.Fields)
			}
		}
	}
}

// runMPI has two workers train in so many ranks each, and holds that all met, and that the launcher's end is the job's.
func (j *testJob) runMPI(said string, slots int, started time.Time) {
	j.t.Helper()
	var launcher string
	eventually(j.t, "a launcher", patience, func() error {
		pods := j.podsOf("launcher")
		if len(pods) != 1 {
			return fmt.Errorf("there are %d", len(pods))
		}
		launcher = pods[0].Name
		return nil
	})
	answered := j.awaitLine("both hosts to answer", patience, launcher, bothAnswer)
	j.took("start to both hosts answering", started, answered.at)
	summed := j.awaitRanksOn(said, map[string]int{j.name + "-worker-0": slots, j.name + "-worker-1": slots})
	j.took(fmt.Sprintf("start to the sum over %d ranks", 2*slots), started, summed)
	j.awaitMPI("Succeeded")
	eventually(j.t, "no worker to be left", patience, func() error {
		if pods := j.podsOf("worker"); len(pods) > 0 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	began := time.Now()
	j.kubectl(j.t, "delete", "-f", j.file)
	eventually(j.t, "nothing to be left of "+j.name, patience, func() error {
		left, err := j.left(nil)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there are %s", strings.Join(left, ", "))
		}
		return err
	})
	j.deleted = true
	j.took("kubectl delete until nothing is left", began, time.Now())
}

// awaitMPI waits until the MPIJob has a condition.
func (j *testJob) awaitMPI(condition string) {
	j.t.Helper()
	j.kubectl(j.t, "wait", "-n", j.namespace, "mpijob/"+j.name, "--for=condition="+condition,
		"--timeout="+(patience-time.Second).String())
}

// startMPIOperator runs the real program beside the cluster, with its definition, to the end of the test.
func (w *world) startMPIOperator(t *testing.T) {
	t.Helper()
	folder := os.Getenv(operatorsEnv)
	if folder == "" {
		t.Skipf("%s names no folder with the program mpi-operator, which 'go build ./cmd/mpi-operator' makes in a "+
			"checkout of kubeflow/mpi-operator", operatorsEnv)
	}
	definitions, err := upstream.Files(root)
	if err != nil && !errors.Is(err, upstream.ErrAbsent) {
		t.Fatal(err)
	}
	const definition = "kubeflow.org_mpijobs.yaml"
	for _, file := range definitions {
		if filepath.Base(file) == definition {
			w.kubectl(t, "apply", "--server-side", "-f", file)
		}
	}
	eventually(t, "the definition of MPIJobs", patience, func() error { // which kubectl refuses without any condition
		_, err := w.tryKubectl(t.Context(), "wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org")
		return err
	})
	const lock = "mpi-operator" // the namespace of its lease
	w.enter(t, lock)
	output, err := os.Create(filepath.Join(t.TempDir(), "mpi-operator.log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, filepath.Join(folder, "mpi-operator"), "-kubeConfig", w.Kubeconfig(),
		"-lock-namespace", lock, "-monitoring-port", "0")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // which gives the lease back
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting the MPI operator: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was told to end
		if text, err := os.ReadFile(output.Name()); t.Failed() {
			t.Logf("the MPI operator's log ends, %v:\n%s", err, text[max(0, len(text)-8<<10):])
		}
	})
}
