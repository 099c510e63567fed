package main

import (
	"strings"
	"testing"
)

// TestNotes: what is no mistake is told on standard error, with a position, and changes neither manifests nor success.
func TestNotes(t *testing.T) {
	const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: mnist, namespace: ml}
spec: {framework: dlrover, target: elasticjob, image: "x:1", command: [python, train.py], workers: {replicas: 2}, suspend: true}
`
	for _, command := range []string{"render", "vet"} {
		out, msg, code := tegen(job, command, "-")
		if code != exitOK || strings.Contains(out, "note:") {
			t.Errorf("%s: exit %d, standard output:\n%s", command, code, out)
		}
		if want := "<stdin>:1:1: note: spec.suspend: DLRover starts the job's master all the same"; !strings.HasPrefix(msg, want) {
			t.Errorf("%s: %q on standard error, want %q", command, msg, want)
		}
	}
}

// TestGangNotes: what is off by default in a cluster is told wherever a gang depends on it, and nowhere else.
func TestGangNotes(t *testing.T) {
	const head = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: mnist, namespace: ml}\nspec: {image: 'x:1', command: [python, train.py], workers: {replicas: 2}, "
	const gang = "<stdin>:1:1: note: spec.gang.scheduler: "
	for _, c := range []struct{ spec, want string }{
		{"framework: horovod, target: mpijob, gang: {scheduler: volcano}", gang + "the MPI operator must have been started with --gang-scheduling=volcano, "},
		{"framework: horovod, target: mpijob, gang: {scheduler: coscheduling}", gang + "the MPI operator must have been started with --gang-scheduling=scheduler-plugins-scheduler, "},
		{"framework: horovod, target: mpijob, gang: {scheduler: koordinator, mode: NonStrict}", ""},
		{"target: pytorchjob, gang: {scheduler: kueue, queue: q}", gang + "Kueue's integration kubeflow.org/pytorchjob is off by default"},
		{"target: pytorchjob, gang: {scheduler: volcano}", ""},
		{"target: job, gang: {scheduler: kueue, queue: q}", ""},
		{"kubernetesVersion: '1.36', gang: {scheduler: kubernetes}", gang + "the feature gates GenericWorkload and GangScheduling"},
		{"kubernetesVersion: '1.37', gang: {scheduler: kubernetes}", gang + "the feature gate GenericWorkload,"},
		{"framework: mxnet, target: mxjob", "<stdin>:1:1: note: spec.target: training-operator 1.8.1 is the last release"},
	} {
		_, msg, code := tegen(head+c.spec+"}\n", "render", "-")
		if code != exitOK || c.want == "" && msg != "" || !strings.HasPrefix(msg, c.want) {
			t.Errorf("%s: exit %d, %q on standard error, want %q", c.spec, code, msg, c.want)
		}
	}
}

// TestNoteOfDeadline: what a lost pod leaves behind is told where nothing ends it.
func TestNoteOfDeadline(t *testing.T) {
	const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: mnist, namespace: ml}
spec: {framework: mxnet, image: "x:1", command: [python, train.py], workers: {replicas: 2}, failure: {%}}
`
	for failure, noted := range map[string]bool{"": true, "deadline: 1h": false} {
		_, msg, code := tegen(strings.Replace(job, "%", failure, 1), "vet", "-")
		if code != exitOK || strings.Contains(msg, "note: spec.failure.deadline: none is set") != noted {
			t.Errorf("failure {%s}: exit %d, %q on standard error", failure, code, msg)
		}
	}
}

// TestNoteOfStore: a c10d companion takes all workers with it, and where that ends the job it is told. The workers are as
// many as run now: an elastic job that grows is rendered again.
func TestNoteOfStore(t *testing.T) {
	const head = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: mnist, namespace: ml}\n" +
		"spec: {image: 'x:1', command: [python, train.py], images: {rendezvous: 'r:1'}, "
	const low, perWorker = "<stdin>:1:1: note: spec.failure.restarts: ", ", or failure.restartsPerWorker in its place"
	for _, c := range []struct{ spec, want string }{
		{"workers: {replicas: 6}", ""},
		{"workers: {replicas: 7}", low + "6 is too low for 7 workers: "},
		{"workers: {replicas: 7}", "set it to 7 or more for each loss that the job is to survive" + perWorker + ", or use launcher: tegen"},
		{"workers: {replicas: 3, min: 1, max: 9}", ""},
		{"workers: {replicas: 7}, failure: {restarts: 7}", ""},
		{"workers: {replicas: 4}, failure: {restarts: 3}", low + "3 is too low for 4 workers: "},
		{"workers: {replicas: 7}, failure: {restarts: 0}", ""},
		{"workers: {replicas: 7}, failure: {restartsPerWorker: 1}", ""},
		{"workers: {replicas: 7}, rendezvous: {store: worker}", ""},
		{"workers: {replicas: 7}, rendezvous: {backend: etcd}", ""},
		{"workers: {replicas: 7}, launcher: tegen, rendezvous: {backend: etcd, companion: {storage: {size: 1Gi}}}", ""},
		{"workers: {replicas: 7}, target: pods", ""},
		{"workers: {replicas: 7}, target: jobset", "set it to 7 or more for each loss that the job is to survive" + perWorker},
		{"workers: {replicas: 6}, target: vcjob", ""},
		{"workers: {replicas: 7}, target: vcjob", "survive, or use launcher: tegen"},
		{"workers: {replicas: 5}, target: pytorchjob", ""},
		{"workers: {replicas: 6}, target: pytorchjob", "set it to 7 or more for each loss that the job is to survive, or use launcher: tegen"},
	} {
		_, msg, code := tegen(head+c.spec+"}\n", "vet", "-")
		if code != exitOK || c.want == "" && msg != "" || !strings.Contains(msg, c.want) {
			t.Errorf("%s: exit %d, %q on standard error, want %q", c.spec, code, msg, c.want)
		}
	}
}

// TestNoteOfWorkingDirectory: what ByteScheduler's own images need before they run here is told of its jobs alone.
func TestNoteOfWorkingDirectory(t *testing.T) {
	const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: mnist, namespace: ml}
spec: {image: "x:1", command: [python, train.py], workers: {replicas: 2}, security: {runAsUser: 1234}, %}
`
	for spec, noted := range map[string]bool{
		"framework: bytescheduler":                 true,
		"framework: bytescheduler, target: mpijob": true,
		"framework: bytescheduler, bytescheduler: {mode: byteps}, servers: {command: [bpslaunch]}": false,
		"framework: horovod, horovod: {controller: mpi}":                                           false,
	} {
		_, msg, code := tegen(strings.Replace(job, "%", spec, 1), "vet", "-")
		if code != exitOK || strings.Contains(msg, "note: spec.image: ByteScheduler's own Dockerfiles end in a working directory under /root, which user 1234 cannot enter") != noted {
			t.Errorf("%s: exit %d, %q on standard error, want the note: %t", spec, code, msg, noted)
		}
	}
}
