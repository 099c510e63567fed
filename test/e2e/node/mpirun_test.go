package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// mpiMark is a value that no shell on its way may change.
const mpiMark = `a b'c"d $HOME;e`

// mpiRanks is a job of framework mpi, two ranks on each of two hosts, with a sidecar that never ends by itself.
const mpiRanks = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: ranks, namespace: training}
spec:
  framework: mpi
  image: ghcr.io/acme/ranks-openmpi:4.1
  command: [python, mpi.py, --steps, "3000"]
  env: [{name: MARK, value: "a b'c\"d $HOME;e"}]
  workers: {replicas: 2, processes: 2}
  resources: {cpu: 100m, memory: 512Mi, shm: 64Mi, ephemeralStorage: 1Gi}
  sidecars:
    - name: watcher
      image: ghcr.io/acme/ranks-openmpi:4.1
      command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1; done"]
      resources: {cpu: 10m, memory: 32Mi}
`

// TestMPIRun is scenario 15: Open MPI's own mpirun, in the pod of worker 0, starts the ranks of two hosts over ssh. One
// host is lost, all ranks end with it, and the Job's next pods form the same world. No pod waits for its sidecar's end.
func TestMPIRun(t *testing.T) {
	w := begin(t)
	w.takeTurn(t)
	j := w.job(t, "15 mpirun", manifest(t, "ranks.yaml", mpiRanks, "kind"), "")
	j.apply()
	answered := j.awaitLine("both hosts to answer", patience, j.podAt("worker", 0).Name, bothAnswer)
	j.took("apply to both hosts answering", j.applied, answered.at)
	first := j.awaitWorld(4, j.applied, patience)
	j.took("apply to four ranks on two hosts", j.applied, first.stepped)
	j.checkMPIWorld(first)

	launcher, lost := j.podAt("worker", 0), j.podAt("worker", 1)
	at, _ := j.deletePod(lost.Name, 0)
	second := j.awaitWorld(4, at, patience)
	j.took("pod of worker 1 deleted to four ranks again", at, second.stepped)
	j.checkMPIWorld(second)
	if again := j.awaitReplaced(&launcher, patience); again.Name == second.joins[0].Pod {
		j.logf("%s launches in place of %s", again.Name, launcher.Name)
	} else {
		t.Errorf("rank 0 is told of by %s, and the launcher is %s", second.joins[0].Pod, again.Name)
	}

	j.stop(j.awaitReplaced(&lost, patience).Name)
	j.awaitComplete(j.name+"-worker", patience)
	j.checkSidecarEnded(second.joins[0].Pod, "watcher")
	j.checkKeyUnsaid()
	j.deleteByLabel(patience)
}

// checkMPIWorld holds that each host has two ranks, and that all have the variable as the author wrote it.
func (j *testJob) checkMPIWorld(g generation) {
	j.t.Helper()
	on := map[string]int{}
	for _, e := range g.joins {
		on[e.Host]++
		if e.Fields["mark"] != mpiMark {
			j.t.Errorf("rank %d on %s has MARK %q, want %q", e.Rank, e.Host, e.Fields["mark"], mpiMark)
		}
	}
	if diff := cmp.Diff(map[string]int{j.name + "-worker-0": 2, j.name + "-worker-1": 2}, on); diff != "" {
		j.t.Errorf("ranks by host (-want +got):\n%s", diff)
	}
}

// checkSidecarEnded holds that a pod has succeeded, and its sidecar, which ran all the time, has ended with it.
func (j *testJob) checkSidecarEnded(pod, sidecar string) {
	j.t.Helper()
	p := j.pod(pod)
	if p.Status.Phase != corev1.PodSucceeded {
		j.t.Errorf("pod %s is %s, want Succeeded", pod, p.Status.Phase)
	}
	for _, c := range p.Status.InitContainerStatuses {
		if c.Name == sidecar && c.RestartCount == 0 && c.State.Terminated != nil {
			return
		}
	}
	j.t.Errorf("the init containers of pod %s are %v, want %s once and ended", pod, p.Status.InitContainerStatuses,
		sidecar)
}
