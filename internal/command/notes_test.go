package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/cli"
)

// TestNotes: a note goes to standard error, with a position, and changes neither manifests nor the exit code.
func TestNotes(t *testing.T) {
	const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: mnist, namespace: ml}
spec: {framework: dlrover, target: elasticjob, image: "x:1", command: [python, train.py], workers: {replicas: 2},
  suspend: true}
`
	for _, command := range []string{"render", "vet"} {
		out, msg, code := tegen(job, command, "-")
		if code != cli.ExitOK || strings.Contains(out, "note:") {
			t.Errorf("%s: exit %d, standard output:\n%s", command, code, out)
		}
		want := "<stdin>:1:1: note: spec.suspend: DLRover starts the job's master all the same"
		if !strings.HasPrefix(msg, want) {
			t.Errorf("%s: %q on standard error, want %q", command, msg, want)
		}
	}
}

// TestUnfilled: an id that was not filled in keeps the jobs that it reaches from being rendered, and no others. What
// only speaks of them notes it.
func TestUnfilled(t *testing.T) {
	atRoot(t)
	const found = "spec.storage[0].efs.fileSystem: fs-00000000000000000 is the id of nothing: put in yours, in the " +
		"job or in its Environment\n"
	for command, want := range map[string]string{
		"render --overlay overlays/eks": "overlays/eks/resnet.yaml:1:1: " + found,
		"vet --overlay overlays/eks":    "overlays/eks/resnet.yaml:1:1: " + found,
		// these have volumes of their own
		"render fixtures/valid/gitops.yaml --overlay overlays/eks":            "",
		"vet fixtures/valid/minimal.yaml --overlay overlays/eks":              "",
		"vet fixtures/valid/storage-efs.yaml fixtures/valid/storage-fsx.yaml": "",
	} {
		out, msg, code := tegen("", strings.Fields(command)...)
		switch {
		case want == "" && code != cli.ExitOK:
			t.Errorf("%s: exit %d: %s", command, code, msg)
		case want != "" && (code != cli.ExitError || out != "" || !strings.HasSuffix(msg, want)):
			t.Errorf("%s: exit %d, %q, want %q", command, code, msg, want)
		}
	}
	for _, command := range []string{"plan --overlay overlays/eks", "runbook --overlay overlays/eks"} {
		out, msg, code := tegen("", strings.Fields(command)...)
		if code != cli.ExitOK || out == "" || !strings.HasSuffix(msg, "overlays/eks/resnet.yaml:1:1: note: "+found) {
			t.Errorf("%s: exit %d: %s", command, code, msg)
		}
	}
	const jobs = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: NAME, namespace: ml}\n" +
		"spec: {image: 'x:1', command: [python, train.py], workers: {replicas: 1}, storage: [{mountPath: /d, FIELD}]}\n"
	for _, c := range []struct{ field, want string }{
		{"efs: {fileSystem: fs-00000000}", "fs-00000000 is"},
		{"efs: {fileSystem: fs-00000001}", ""},
		{"efs: {fileSystem: fs-10000000}", ""},
		{"efs: {fileSystem: fs-12345678, accessPoint: fsap-00000000000000000}", "fsap-00000000000000000 is"},
		{"fsx: {provision: {subnet: subnet-00000000, securityGroups: [sg-1234abcd]}}", "subnet: subnet-00000000 is"},
		{"fsx: {provision: {subnet: subnet-1234abcd, securityGroups: [sg-00000000]}}", "Groups[0]: sg-00000000 is"},
		{
			"claim: x}], identity: {irsa: {role: 'arn:aws:iam::000000000000:role/x'}}, env: [{name: A, value: b",
			"role: 000000000000 is",
		},
		{
			"claim: x}], images: {aws: '000000000000.dkr.ecr.eu-west-1.amazonaws.com/a:1'}, env: [{name: A, value: b",
			"spec.images.aws: 000000000000 is",
		},
		{
			"claim: x}], podTemplate: {spec: {volumes: [{name: v, awsElasticBlockStore: {volumeID: vol-00000000}}]}}" +
				", env: [{name: A, value: b", "volumeID: vol-00000000 is",
		},
		// what a program is told, and what only looks like an id
		{"claim: x}], args: ['--data=/data/vol-00000000.tar', 'fs-00000000', '--run=sg-00000000'], env: [{name: A, " +
			"value: b", ""},
		{"claim: x}], env: [{name: A, value: 'i-00000000,i-00000001'", ""},
		{"claim: x}], env: [{name: A, value: 'arn:aws:sns:us-east-1:000000000000:t'", ""},
		{"claim: x}], podTemplate: {spec: {containers: [{name: worker, env: [{name: A, value: vol-00000000}]}]}}, " +
			"env: [{name: B, value: b", ""},
		{"claim: x}], images: {aws: '000000000000.dkr.ecr.us-east-1.localhost.localstack.cloud:4566/x:1'}, " +
			"env: [{name: A, value: b", ""},
		{"claim: x}], workingDir: /data/vol-00000000, env: [{name: A, value: b", ""},
	} {
		field, want := c.field, c.want
		job := strings.NewReplacer("NAME", "mnist", "FIELD", field).Replace(jobs)
		_, msg, code := tegen(job, "vet", "-")
		if want == "" && code != cli.ExitOK || want != "" && !strings.Contains(msg, want) {
			t.Errorf("%s: exit %d: %q, want %q", field, code, msg, want)
		}
	}
	many := strings.Replace(jobs, "FIELD", "efs: {fileSystem: fs-00000000}", 1)
	_, msg, _ := tegen(strings.Replace(many, "NAME", "a", 1)+"---\n"+strings.Replace(many, "NAME", "b", 1), "vet", "-")
	if strings.Count(msg, "\n") != 1 || !strings.HasSuffix(msg, "(and 1 more)\n") {
		t.Errorf("one value of two jobs: %q", msg)
	}
}

// TestDeadlineNotes: the training operator sets no clock for a deadline, others do.
func TestDeadlineNotes(t *testing.T) {
	for target, noted := range map[string]bool{
		"target: pytorchjob": true, "target: mxjob, framework: mxnet": true, "target: trainjob": false,
		"target: job": false,
	} {
		for _, deadline := range []string{", failure: {deadline: 1h}", ""} {
			text := "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: mnist, namespace: ml}\n" +
				"spec: {image: 'x:1', command: [python, train.py], workers: {replicas: 2}, " + target + deadline + "}\n"
			_, msg, code := tegen(text, "vet", "-")
			got := strings.Contains(msg, "note: spec.failure.deadline: the operator of this target sets no clock")
			if code != cli.ExitOK || got != (noted && deadline != "") {
				t.Errorf("%s%s: exit %d: %s", target, deadline, code, msg)
			}
		}
	}
}

// TestGangNotes: a feature that is off by default in a cluster is noted where a gang depends on it, and nowhere else.
func TestGangNotes(t *testing.T) {
	const head = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: mnist, namespace: ml}\n" +
		"spec: {image: 'x:1', command: [python, train.py], workers: {replicas: 2}, "
	const gang = "<stdin>:1:1: note: spec.gang.scheduler: "
	for _, c := range []struct{ spec, want string }{
		{
			"framework: horovod, target: mpijob, gang: {scheduler: volcano}",
			gang + "the MPI operator must have been started with --gang-scheduling=volcano, ",
		},
		{
			"framework: horovod, target: mpijob, gang: {scheduler: coscheduling}",
			gang + "the MPI operator must have been started with --gang-scheduling=scheduler-plugins-scheduler, ",
		},
		{"framework: horovod, target: mpijob, gang: {scheduler: koordinator, mode: NonStrict}", ""},
		{
			"target: pytorchjob, gang: {scheduler: kueue, queue: q}",
			gang + "Kueue's integration kubeflow.org/pytorchjob is off by default",
		},
		{"target: pytorchjob, gang: {scheduler: volcano}", ""},
		{"target: job, gang: {scheduler: kueue, queue: q}", ""},
		{
			"kubernetesVersion: '1.36', gang: {scheduler: kubernetes}",
			gang + "the feature gates GenericWorkload and GangScheduling",
		},
		{"kubernetesVersion: '1.37', gang: {scheduler: kubernetes}", gang + "the feature gate GenericWorkload,"},
		{"framework: mxnet, target: mxjob", "<stdin>:1:1: note: spec.target: training-operator 1.8.1 is the last " +
			"release"},
	} {
		_, msg, code := tegen(head+c.spec+"}\n", "vet", "-")
		if code != cli.ExitOK || c.want == "" && msg != "" || !strings.HasPrefix(msg, c.want) {
			t.Errorf("%s: exit %d, %q on standard error, want %q", c.spec, code, msg, c.want)
		}
	}
}

// TestNoteOfDeadline: pods that a lost pod leaves behind are noted where nothing ends them.
func TestNoteOfDeadline(t *testing.T) {
	const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: mnist, namespace: ml}
spec: {framework: mxnet, image: "x:1", command: [python, train.py], workers: {replicas: 2}, failure: {%}}
`
	for failure, noted := range map[string]bool{"": true, "deadline: 1h": false} {
		_, msg, code := tegen(strings.Replace(job, "%", failure, 1), "vet", "-")
		if code != cli.ExitOK || strings.Contains(msg, "note: spec.failure.deadline: none is set") != noted {
			t.Errorf("failure {%s}: exit %d, %q on standard error", failure, code, msg)
		}
	}
}

// TestNoteOfStore: a store of c10d, in a companion or in worker 0, takes all workers with it, and where that ends the
// job it is told. The workers are as many as run now: an elastic job that grows is rendered again.
func TestNoteOfStore(t *testing.T) {
	const head = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: mnist, namespace: ml}\n" +
		"spec: {image: 'x:1', command: [python, train.py], images: {rendezvous: 'r:1'}, "
	const low, perWorker = "<stdin>:1:1: note: spec.failure.restarts: ", ", or failure.restartsPerWorker in its place"
	for _, c := range []struct{ spec, want string }{
		{"workers: {replicas: 6}", ""},
		{"workers: {replicas: 7}", low + "6 is too low for 7 workers: "},
		{"workers: {replicas: 7}", "set it to 7 or more for each loss that the job is to survive" + perWorker +
			", or give a companion (rendezvous.store) storage or an etcd: torchrun then waits behind a proxy"},
		{"workers: {replicas: 3, min: 1, max: 9}", ""},
		{"workers: {replicas: 7}, failure: {restarts: 7}", ""},
		{"workers: {replicas: 4}, failure: {restarts: 3}", low + "3 is too low for 4 workers: "},
		{"workers: {replicas: 7}, failure: {restarts: 0}", ""},
		{"workers: {replicas: 7}, failure: {restartsPerWorker: 1}", ""},
		{"workers: {replicas: 7}, rendezvous: {store: worker}", low + "6 is too low for 7 workers: when worker 0, "},
		{"workers: {replicas: 6}, rendezvous: {store: worker}", ""},
		{"workers: {replicas: 7}, rendezvous: {store: external, endpoint: 'store:29400'}", ""},
		{"workers: {replicas: 6}, target: trainjob", low + "6 is too low for 6 workers: when any of them is lost, "},
		{"workers: {replicas: 6}, target: trainjob", "set it to 7 or more for each loss that the job is to survive" +
			perWorker + "\n"},
		{"workers: {replicas: 5}, target: trainjob", ""},
		{"workers: {replicas: 7}, target: trainjob, launcher: entrypoint", ""},
		{"workers: {replicas: 7}, rendezvous: {backend: etcd}", ""},
		{"workers: {replicas: 7}, target: pods", ""},
		{"workers: {replicas: 7}, target: jobset", "set it to 7 or more for each loss that the job is to survive" +
			perWorker},
		{"workers: {replicas: 6}, target: vcjob", ""},
		{"workers: {replicas: 7}, target: vcjob", "survive, or give a companion"},
		{"workers: {replicas: 7}, rendezvous: {companion: {storage: {size: 1Gi}}}", ""},
		{"workers: {replicas: 5}, target: pytorchjob", ""},
		{"workers: {replicas: 6}, target: pytorchjob", "set it to 7 or more for each loss that the job is to " +
			"survive, or give a companion"},
	} {
		_, msg, code := tegen(head+c.spec+"}\n", "vet", "-")
		if code != cli.ExitOK || c.want == "" && msg != "" || !strings.Contains(msg, c.want) {
			t.Errorf("%s: exit %d, %q on standard error, want %q", c.spec, code, msg, c.want)
		}
	}
}

// noted are the notes about a job, without positions. An Environment behind it is given as such.
func noted(t *testing.T, text string) string {
	t.Helper()
	args := []string{"vet", "-"}
	text, environment, found := strings.Cut(text, "---\n")
	if found {
		file := filepath.Join(t.TempDir(), "environment.yaml")
		if err := os.WriteFile(file, []byte(environment), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--environment", file)
	}
	_, msg, code := tegen(text, args...)
	if code != cli.ExitOK {
		t.Errorf("exit %d:\n%s\nof:\n%s", code, msg, text)
	}
	return strings.ReplaceAll(msg, "<stdin>:1:1: note: ", "")
}

const (
	jobHead = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: mnist, namespace: ml}\nspec: {"
	place   = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: laptop}\nspec: "
)

// TestNoteOfTaken: a note names what an environment takes away from the author's own values, and no default.
func TestNoteOfTaken(t *testing.T) {
	const spec = jobHead + "image: 'x:1', command: [python, train.py], workers: {replicas: 2}, resources: {%}}\n" +
		place
	const head = "spec.resources: the Environment leaves "
	for _, c := range []struct{ resources, env, want string }{
		{
			"gpu: 8, cpu: 1, memory: 4Gi", "{overrides: {resources: {gpu: 0}}}",
			head + "gpu 0 of 8 to each worker, which runs with workers.processes 1: a script that needs an " +
				"accelerator fails here\n",
		},
		{"gpu: 8, cpu: 1, memory: 4Gi", "{overrides: {resources: {gpu: 2}}}", head + "gpu 2 of 8 to each worker\n"},
		{
			"cpu: 8, memory: 32Gi", "{caps: {cpu: 200m, memory: 1Gi}}",
			head + "cpu 200m of 8, memory 1Gi of 32Gi to each worker\n",
		},
		{"memory: 32Gi", "{overrides: {resources: {memory: 2Gi}}}", head + "memory 2Gi of 32Gi to each worker\n"},
		{"", "{caps: {cpu: 200m}, overrides: {resources: {gpu: 0}}}", ""},
		{"cpu: 8, memory: 32Gi, gpu: 1", "{caps: {cpu: 8, memory: 32Gi}}", ""},
		{"cpu: 2", "{overrides: {resources: {cpu: 4}}}", ""},
	} {
		if got := noted(t, strings.Replace(spec, "%", c.resources, 1)+c.env+"\n"); got != c.want {
			t.Errorf("resources {%s} at %s: got %q, want %q", c.resources, c.env, got, c.want)
		}
	}
}

// TestNoteOfChange: a note says what to do for a new image where the API server refuses the changed object.
func TestNoteOfChange(t *testing.T) {
	const spec = jobHead + "image: 'x:1', command: [python, train.py], workers: {replicas: 2}, "
	for more, want := range map[string]string{
		"gitops: false":                "",
		"gitops: true":                 "",
		"gitops: true, target: jobset": "",
		"gitops: true, hashedNames: false": "spec.hashedNames: without it the API server refuses a new image or " +
			"command as long as the old Job is there",
		"gitops: true, target: pods": "spec.target: the API server refuses a new command for pods that are there",
		"gitops: true, target: pytorchjob": "spec.target: a new image or command reaches only pods that are made " +
			"from then on: delete the PyTorchJob",
		"gitops: true, target: jobset, placement: {nodeSelector: {long: name}}": "spec.hashedNames: ",
		"gitops: true, hashedNames: true":                                       "",
		"hashedNames: false":                                                    "",
		"target: pytorchjob":                                                    "",
		"gitops: true, framework: horovod":                                      "",
		"framework: horovod, target: mpijob":                                    "",
		"ttlAfterFinished: 1h, gitops: false":                                   "",
		"ttlAfterFinished: 59m, framework: horovod, target: mpijob": "spec.ttlAfterFinished: 59m deletes the " +
			"launcher's Job, and where the MPI operator has not seen its end by then",
		"ttlAfterFinished: 1h, framework: horovod, target: mpijob":   "",
		"ttlAfterFinished: none, framework: horovod, target: mpijob": "",
		"ttlAfterFinished: 0s, framework: horovod":                   "",
	} {
		text := spec + more + "}\n"
		if strings.Contains(more, "long") { // whose pods' names have no room for a hash behind this one
			text = strings.Replace(text, "name: mnist,", "name: a-name-of-forty-characters-or-nearly-so,", 1)
		}
		if got := noted(t, text); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", more, got, want)
		}
	}
}

// TestNoteOfAccount: Flux cannot apply bare pods whose account is rendered with them.
func TestNoteOfAccount(t *testing.T) {
	const spec = jobHead + "image: 'x:1', command: [python, train.py], workers: {replicas: 2}, "
	for more, want := range map[string]bool{
		"gitops: true, target: pods":                                                                   false,
		"gitops: true, target: pods, identity: {nodeRole: {}}":                                         false,
		"gitops: true, target: pods, identity: {serviceAccount: mine}":                                 false,
		"gitops: true, target: pods, identity: {podIdentity: {}}":                                      true,
		"gitops: true, target: pods, identity: {irsa: {role: 'arn:aws:iam::123456789012:role/train'}}": true,
		"gitops: true, target: job, identity: {podIdentity: {}}":                                       false,
		"gitops: false, target: pods, identity: {podIdentity: {}}":                                     false,
	} {
		got := noted(t, spec+more+"}\n")
		if strings.Contains(got, "spec.identity: Flux does not apply pods together with their ServiceAccount") != want {
			t.Errorf("%s: %q, want the note: %t", more, got, want)
		}
	}
}

// TestNoteOfScript: a path is started as a program, which only its image can say whether it is.
func TestNoteOfScript(t *testing.T) {
	const want = "spec.command[0]: ./train.py is started as a program: it must be executable and name Python in a " +
		"first line of #!, or write [python, ./train.py]\n"
	for command, told := range map[string]bool{
		"./train.py, --lr=1": true, "python, ./train.py": false,
		"/opt/train": false,
	} {
		got := noted(t, jobHead+"image: 'x:1', command: ["+command+"], workers: {replicas: 2}}\n")
		if (got == want) != told || !told && got != "" {
			t.Errorf("[%s]: %q", command, got)
		}
	}
}

// TestNoteOfImage: images of Docker Hub that lack a program which the job starts.
func TestNoteOfImage(t *testing.T) {
	for _, c := range []struct{ image, spec, lacks string }{
		{"python:3.12-slim", "", "torchrun"},
		{"docker.io/library/python:3.12", "", "torchrun"},
		{"nvidia/cuda:12.4.1-runtime-ubuntu22.04", "", "torchrun"},
		{"ghcr.io/acme/python:3.12", "", ""},
		{"acme/python:3.12", "", ""},
		{"pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime", "", ""},
		{"python:3.12-slim", "launcher: entrypoint, ", ""},
		{"alpine:3.20", "framework: mxnet, ", ""},
		{"pytorch/pytorch:2.4.0", "launcher: entrypoint, args: [--lr=1], ", ""},
		{"pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime", "framework: horovod, ", "horovodrun"},
		{"pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime", "framework: dlrover, target: elasticjob, ", "dlrover-run"},
		{"horovod/horovod:0.28.1", "framework: horovod, ", ""},
		{"horovod/horovod-ray:0.28.1", "framework: horovod, ", "sshd"},
	} {
		command := "command: [python, train.py], "
		if strings.Contains(c.spec, "args:") { // of the image's own entrypoint
			command = ""
		}
		text := jobHead + c.spec + command + "image: '" + c.image +
			"', workers: {replicas: 2}, failure: {deadline: 1h}}\n"
		if strings.Contains(c.spec, "dlrover") {
			text = strings.Replace(text, "failure: {deadline: 1h}", "suspend: false", 1)
		}
		want := ""
		if c.lacks != "" {
			want = "spec.image: " + c.image + " comes without " + c.lacks +
				": build an image on it that has it (docs/images.md)\n"
		}
		if got := noted(t, text); got != want {
			t.Errorf("%s {%s}: got %q, want %q", c.image, c.spec, got, want)
		}
	}
}

// TestNoteOfRun: a note says so where two runs of one content have one name and the store outlives the job.
func TestNoteOfRun(t *testing.T) {
	const spec = jobHead + "image: 'x:1', command: [python, train.py], workers: {replicas: 2}, images: {rendezvous: " +
		"'r:1'}, "
	const head = "spec.rendezvous.id: applied again as it is, workers meet the run that has ended, which the store " +
		"remembers "
	for more, want := range map[string]string{
		"rendezvous: {backend: etcd, store: etcd}":                    "",
		"target: pods, rendezvous: {store: companion}":                "",
		"target: pods, rendezvous: {backend: etcd, store: companion}": "",
		"target: pods, rendezvous: {backend: etcd, store: etcd}": head +
			"for two hours, and end at once: set another id ",
		"target: pods, rendezvous: {store: external, endpoint: 'store.infra.svc:29400'}": head + "as long as it runs",
		"target: pytorchjob, rendezvous: {backend: etcd-v2, store: etcd}":                head + "for two hours",
		"target: elasticjob, rendezvous: {backend: etcd, store: etcd}": head +
			"for two hours, and end at once: give the job another name",
		"target: pods, rendezvous: {backend: etcd, store: companion, companion: {etcd: {endpoints: " +
			"['http://e.infra:2379']}}}": "",
	} {
		if got := noted(t, spec+more+"}\n"); want == "" && got != "" || !strings.Contains("\n"+got, "\n"+want) {
			t.Errorf("%s: got %q, want %q", more, got, want)
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
		if code != cli.ExitOK || strings.Contains(msg, "note: spec.image: ByteScheduler's own Dockerfiles end in a "+
			"working directory under /root, which user 1234 cannot enter") != noted {
			t.Errorf("%s: exit %d, %q on standard error, want the note: %t", spec, code, msg, noted)
		}
	}
}

// TestManyNotes: what more than a few jobs have in common is said once, with their number, and what one of them has
// alone is said too.
func TestManyNotes(t *testing.T) {
	const pods = "spec.target: the API server refuses a new command for pods that are there"
	for jobs, want := range map[int]string{3: "", 4: " (and of 3 more jobs)", 40: " (and of 39 more jobs)"} {
		var text []string
		for i := range jobs {
			command := "[python, a.py]"
			if i == 1 {
				command = "[./a.py]"
			}
			text = append(text, fmt.Sprintf("apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\n"+
				"metadata: {name: j%d}\nspec: {image: 'x:1', command: %s, workers: {replicas: 1}, target: pods, "+
				"gitops: true}\n", i, command))
		}
		_, msg, code := tegen(strings.Join(text, "---\n"), "vet", "-")
		lines := map[bool]int{true: jobs, false: 1}[want == ""]
		if code != cli.ExitOK || strings.Count(msg, pods) != lines || !strings.Contains(msg, want) {
			t.Errorf("%d jobs: exit %d: %s", jobs, code, msg)
		}
		if strings.Count(msg, "is started as a program") != 1 {
			t.Errorf("%d jobs: another note is lost: %s", jobs, msg)
		}
	}
}
