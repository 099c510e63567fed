package apis

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/itchyny/gojq"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestWrittenByOthers deletes the fields as Argo CD does before it compares (argo-cd v3.2.11,
// util/argo/normalizers/diff_normalizer.go): of what is in a queue each one, of anything else none but a pod's
// tolerations.
func TestWrittenByOthers(t *testing.T) {
	for _, tc := range []struct {
		name, object, want string
	}{
		{
			"Job in a queue",
			`{apiVersion: batch/v1, kind: Job, metadata: {labels: {kueue.x-k8s.io/queue-name: a}},
			  spec: {suspend: false, parallelism: 2, completions: 3,
			         template: {spec: {tolerations: [{}], nodeSelector: {a: b}}}}}`,
			`{completions: 3, template: {spec: {nodeSelector: {a: b}}}}`,
		},
		{
			"Job of nobody's queue",
			`{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {suspend: true, parallelism: 2}}`,
			`{suspend: true, parallelism: 2}`,
		},
		{
			"Pod",
			`{apiVersion: v1, kind: Pod, metadata: {labels: {a: b}},
			  spec: {tolerations: [{}], schedulingGates: [{name: a}]}}`,
			`{schedulingGates: [{name: a}]}`,
		},
		{
			"Pod in a queue",
			`{apiVersion: v1, kind: Pod, metadata: {labels: {kueue.x-k8s.io/queue-name: a}},
			  spec: {hostname: a, nodeSelector: {a: b}, schedulingGates: [{name: a}]}}`,
			`{hostname: a}`,
		},
		{
			"JobSet in a queue",
			`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet,
			  metadata: {labels: {kueue.x-k8s.io/queue-name: a}},
			  spec: {suspend: true, replicatedJobs: [{name: w, template: {spec: {template: {
			    metadata: {labels: {a: b}, annotations: {a: b}},
			  spec: {tolerations: [{}], nodeSelector: {a: b}, schedulingGates: [{}], containers: []}}}}}]}}`,
			`{replicatedJobs: [{name: w, template: {spec: {template: {metadata: {}, spec: {containers: []}}}}}]}`,
		},
		{
			"JobSet with nothing in it",
			`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {labels: {kueue.x-k8s.io/queue-name: a}},
			  spec: {}}`,
			`{}`,
		},
		{
			"TrainJob in a queue",
			`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob,
			  metadata: {labels: {kueue.x-k8s.io/queue-name: a}},
			  spec: {suspend: true, trainer: {numNodes: 2}}}`,
			`{trainer: {numNodes: 2}}`,
		},
		{
			"PyTorchJob in a queue",
			`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {labels: {kueue.x-k8s.io/queue-name: a}},
			  spec: {runPolicy: {suspend: true},
			    pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {tolerations: [{}]}}}}}}`,
			`{runPolicy: {}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {}}}}}`,
		},
		{
			"MPIJob in a queue",
			`{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {labels: {kueue.x-k8s.io/queue-name: a}},
			  spec: {runPolicy: {suspend: true}, mpiReplicaSpecs: {Launcher: {template: {spec: {tolerations: [{}]}}}}}}`,
			`{runPolicy: {}, mpiReplicaSpecs: {Launcher: {template: {spec: {}}}}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var want any
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(tc.object), &object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, without(t, object)["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// without deletes the fields of an object that others write.
func without(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	u := unstructured.Unstructured{Object: object}
	for _, w := range WrittenByOthers() {
		if w.GroupKind != u.GroupVersionKind().GroupKind() {
			continue
		}
		for _, path := range w.Paths {
			query, err := gojq.Parse("del(" + path + ")")
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			result, ok := query.Run(object).Next()
			if err, isErr := result.(error); isErr || !ok {
				t.Fatalf("%s: %v", path, errors.Join(err))
			}
			object = result.(map[string]any)
		}
	}
	return object
}
