package meaning

import (
	"fmt"
	"testing"
)

// TestPatched: what a TrainJob patches of its runtime is the same in the runtime itself.
func TestPatched(t *testing.T) {
	t.Parallel()
	job := func(patches, pod string) string {
		return fmt.Sprintf("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j}\nspec: "+
			"{runtimeRef: {name: r}, runtimePatches: [%s]}\n---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: "+
			"ClusterTrainingRuntime\nmetadata: {name: r}\nspec: {mlPolicy: {numNodes: 1, torch: {}}, template: {spec: "+
			"{replicatedJobs: [{name: node, template: {spec: {template: {spec: {%s}}}}}]}}}\n", patches, pod)
	}
	patch := func(pod string) string {
		return "{manager: m, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: " +
			"{template: {spec: {" + pod + "}}}}}]}}}}"
	}
	const one, two = "nodeSelector: {a: b}, containers: [{name: node, image: i}]",
		"nodeSelector: {a: b, c: d}, containers: [{name: node, image: i, volumeMounts: [{name: v, mountPath: /v}]}]"
	const more = "nodeSelector: {c: d}, containers: [{name: node, volumeMounts: [{name: v, mountPath: /v}]}]"
	if all := Compare(job(patch(more), one), job("", two)); len(all) > 0 {
		t.Errorf("a patch and its result: %v", all)
	}
	if all := Compare(job(patch(more), one), job("", one)); len(all) != 2 {
		t.Errorf("a patch that is lost: %v", all)
	}
	const label = "{manager: m, trainingRuntimeSpec: {template: {metadata: {labels: {team: t}}}}}"
	if all := Compare(job(label, one), job("", one)); len(all) != 1 {
		t.Errorf("a label of the JobSet that is lost: %v", all)
	}
}
