package importer_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// withMaster is a PyTorchJob of a Master and a Worker in which a shell reads the same text, with fields of its spec.
func withMaster(fields, text string) string {
	role := ": {replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, image: " +
		"'a/b:1', command: [bash, -c, '" + text + "'], resources: {limits: {nvidia.com/gpu: 8}}}]}}}"
	return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {" + fields +
		"pytorchReplicaSpecs: {Master" + role + ", Worker" + role + "}}\n"
}

// claim is what import is to say of a manifest.
type claim struct {
	in                         string
	reported, unreported, jobs []string // regular expressions
	silent                     []string // words that no job has
	invalid, lossy             bool
}

func (c claim) check(t *testing.T) {
	out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(c.in)}})
	for _, not := range c.silent {
		if strings.Contains(string(out.YAML), not) {
			t.Errorf("a job has %s", not)
		}
	}
	notes := lines(out.Notes)
	for _, want := range c.reported {
		if !regexp.MustCompile(want).MatchString(notes) {
			t.Errorf("no line like %s", want)
		}
	}
	for _, not := range c.unreported {
		if m := regexp.MustCompile(not).FindString(notes); m != "" {
			t.Errorf("a line says %s", m)
		}
	}
	for _, want := range c.jobs {
		if !regexp.MustCompile(want).Match(out.YAML) {
			t.Errorf("nothing in the job is like %s", want)
		}
	}
	if out.Jobs != 1 || out.Invalid != c.invalid || out.Lossy != c.lossy {
		t.Errorf("%d jobs, invalid %v, lossy %v: want 1, %v, %v", out.Jobs, out.Invalid, out.Lossy, c.invalid, c.lossy)
	}
	if !out.Invalid {
		renders(t, out.YAML)
	}
	if t.Failed() {
		t.Logf("%s%s", out.YAML, notes)
	}
}

func mpiJob(version, image string) string {
	return "apiVersion: kubeflow.org/" + version +
		"\nkind: MPIJob\nmetadata: {name: j}\nspec: {slotsPerWorker: 1, mpiReplicaSpecs: {" +
		"Launcher: {template: {spec: {containers: [{name: l, image: '" + image +
		"', command: [mpirun, -np, '2', -mca, pml, ob1, python, t.py]}]}}}, " +
		"Worker: {replicas: 2, template: {spec: {containers: [{name: w, image: '" + image + "'}]}}}}}\n"
}

// liveJobSet is a JobSet as kubectl get prints it, with what its controller makes.
func liveJobSet(order, operator string) string {
	const template = "{metadata: {}, spec: {backoffLimit: 6, completionMode: Indexed, completions: 1, " +
		"parallelism: 1, template: {spec: {restartPolicy: Never, " + trainsAlone + "}}}}"
	items := []string{
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j, namespace: training, " +
			"generation: 1, uid: 26468878-03a1-44dc-8a61-abe78cbe5aa6}, spec: {network: {enableDNSHostnames: true, " +
			"publishNotReadyAddresses: true}, replicatedJobs: [{groupName: default, name: worker, replicas: 1, " +
			"template: " + template + "}], startupPolicy: {startupPolicyOrder: " + order + "}, successPolicy: " +
			"{operator: " + operator + "}, suspend: false}, status: {replicatedJobsStatus: [{active: 1, failed: 0, " +
			"name: worker, ready: 1, succeeded: 0, suspended: 0}], restarts: 0}}",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: j-worker-0, namespace: training, " +
			ownedBy("jobset.x-k8s.io/v1alpha2", "JobSet", "j") + "}, spec: {completionMode: Indexed, completions: 1, " +
			"template: {spec: {subdomain: j, " + trainsAlone + "}}}, status: {active: 1}}",
		"{apiVersion: v1, kind: Service, metadata: {name: j, namespace: training, " +
			ownedBy("jobset.x-k8s.io/v1alpha2", "JobSet", "j") + "}, spec: {clusterIP: None}}",
		"{apiVersion: v1, kind: Pod, metadata: {generateName: j-worker-0-0-, name: j-worker-0-0-4gkzj, " +
			"namespace: training, " + ownedBy("batch/v1", "Job", "j-worker-0") + "}, spec: {" + trainsAlone + "}}",
	}
	return "apiVersion: v1\nkind: List\nitems: [" + strings.Join(items, ", ") + "]\n"
}

// queuedJob is a Job in a queue as kubectl get prints it, with its Workload.
func queuedJob(suspend, gates string) string {
	return `
apiVersion: batch/v1
kind: Job
metadata: {name: j-worker, namespace: training, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  suspend: ` + suspend + `
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: 3aa8639b-37f0-4e30-937b-b12d5e2cb0ce}}
  template:
    metadata:
      annotations: {kueue.x-k8s.io/workload: job-j-worker-19eae}
      labels:
        batch.kubernetes.io/controller-uid: 3aa8639b-37f0-4e30-937b-b12d5e2cb0ce
        kueue.x-k8s.io/cluster-queue-name: q
        kueue.x-k8s.io/local-queue-name: team
        kueue.x-k8s.io/podset: main
    spec: {restartPolicy: Never, schedulingGates: [` + gates + `], ` + trainsAlone + `}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: job-j-worker-19eae
  namespace: training
  finalizers: [kueue.x-k8s.io/resource-in-use]
  ` + ownedBy("batch/v1", "Job", "j-worker") + `
spec: {queueName: team, podSets: [{name: main, count: 2}]}
`
}

// ownedBy is metadata.ownerReferences with a controller.
func ownedBy(apiVersion, kind, name string) string {
	return "ownerReferences: [{apiVersion: " + apiVersion + ", kind: " + kind + ", name: " + name +
		", controller: true, blockOwnerDeletion: true, uid: 22b56e3f-f311-4538-a562-1cdfd8385ec0}]"
}
