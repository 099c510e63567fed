package refs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/refs"
)

// TestCustomMistakes: a custom resource whose values cannot be read is no resource without pods, but a mistake.
func TestCustomMistakes(t *testing.T) {
	text := func(worker string) string {
		return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a, namespace: ml}\n" +
			"spec: {pytorchReplicaSpecs: {Worker: {" + worker + "}}}\n"
	}
	cpu := func(amount string) string {
		return text("template: {spec: {containers: [{name: pytorch, resources: {limits: {cpu: '" + amount + "'}}}]}}")
	}
	for in, want := range map[string]string{
		text("replicas: 2"):          "",
		text("replicas: two"):        "spec.pytorchReplicaSpecs.Worker.replicas: value: got a string, want a number",
		text("template: []"):         "spec.pytorchReplicaSpecs.Worker.template: value: got a list, want a mapping",
		cpu("1"):                     "",
		cpu("one"):                   "value: quantities must match",
		cpu(strings.Repeat("7", 99)): "resources.limits.cpu: quantity: ",
	} {
		objects, err := manifest.Read("x.yaml", []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range refs.Check(objects) {
			got = append(got, b.String())
		}
		if all := strings.Join(got, "\n"); (all == "") != (want == "") || !strings.Contains(all, want) {
			t.Errorf("%s\n got %q\nwant %q", in, got, want)
		}
	}
}

// TestCustomResources: the pods and Services that a controller makes of a custom resource count like any others, and
// what its pods name must be there.
func TestCustomResources(t *testing.T) {
	const jobSet = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: net, namespace: ml}
spec:
  replicatedJobs:
  - name: worker
    template:
      spec:
        parallelism: 2
        template:
          metadata: {labels: {app: net}}
          spec:
            containers:
            - name: worker
              env:
              - {name: MASTER_ADDR, value: HOST}
              - {name: RUN, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}}
            volumes:
            - {name: data, persistentVolumeClaim: {claimName: CLAIM}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: net, namespace: ml}
spec: {selector: {matchLabels: {app: APP}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: ml}
`
	for _, tc := range []struct {
		name string
		set  []string
		want []string // To of what is broken
	}{
		{"whole", nil, nil},
		{"no such pod", []string{"HOST", "net-worker-0-2.net"}, []string{"Pod ml/net-worker-0-2"}},
		{"no such Service", []string{"HOST", "net-worker-0-0.other"}, []string{"Service ml/other"}},
		{"a pod's name alone", []string{"HOST", "net-worker-0-0"}, []string{"Service ml/net-worker-0-0"}},
		{"no such claim", []string{"CLAIM", "date"}, []string{"PersistentVolumeClaim ml/date"}},
		{"no such pods", []string{"APP", "nets"}, []string{"pods ml/app=nets"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.NewReplacer(append(tc.set, "HOST", "net-worker-0-0.net", "CLAIM", "data", "APP",
				"net")...).Replace(jobSet)
			got := unresolved(t, text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("broken (-want +got):\n%s", diff)
			}
		})
	}
}

// TestControllersOfJobs: what a controller of Jobs names and labels counts, and nothing that it does not.
func TestControllersOfJobs(t *testing.T) {
	const launcher = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: net, namespace: ml}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: mpi}]}}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: mpi, env: [{name: MASTER_ADDR, value: HOST}]}]}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set, namespace: ml}
spec:
  replicatedJobs:
  - name: worker
    template: {spec: {parallelism: 2, completions: 4, template: {spec: {containers: [{name: worker}]}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: net, namespace: ml}
spec: {selector: {matchLabels: {LABEL}}}
`
	const job = "batch.kubernetes.io/job-name: "
	for _, tc := range []struct{ name, host, label, want string }{
		{"the launcher", "net-launcher.net", job + "net-launcher", ""},
		{"no launcher by number", "net-launcher-0.net", job + "net-launcher", "Pod ml/net-launcher-0"},
		{"a pod of a later completion", "set-worker-0-3.set", job + "set-worker-0", ""},
		{"no such completion", "set-worker-0-4.set", job + "set-worker-0", "Pod ml/set-worker-0-4"},
		{"an index", "net-worker-1.net", job + "set-worker-0, batch.kubernetes.io/job-completion-index: '3'", ""},
		{"no such Job", "net-worker-1.net", job + "set-worker-1", "pods ml/batch.kubernetes.io/job-name=set-worker-1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.NewReplacer("HOST", tc.host, "LABEL", tc.label).Replace(launcher)
			got := unresolved(t, text)
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("broken: %q, want %q", got, tc.want)
			}
		})
	}
}

// unresolved is what references of a set of objects lead to that is not there.
func unresolved(t *testing.T, text string) (to []string) {
	t.Helper()
	objects, err := manifest.Read("bundle.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range refs.Check(objects) {
		to = append(to, b.To)
	}
	return to
}
