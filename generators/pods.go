package generators

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

// torchPods are the tutorial's bare pods. Nothing in a pod depends on how many there are but what must, so that one
// more worker leaves the others' objects as they are.
func torchPods(j *job.Job) []runtime.Object {
	var out []runtime.Object
	for _, i := range podWorkerNumbers(j) {
		// The pod's own hostname, so that worker 0 recognizes itself as the host of the store.
		template := workerTemplate(j, torchWorker(j, podWorkerName(j, j.Spec.Workers.FirstIndex)))
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		template.Spec.ActiveDeadlineSeconds = deadline(j)
		if j.Spec.Suspend {
			// A pod cannot be suspended otherwise.
			template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "tegen.dev/suspended"}}
		}
		template = patched(j, componentWorker, template)
		pod := &corev1.Pod{ObjectMeta: workloadMeta(j, podWorkerName(j, i), componentWorker), Spec: template.Spec}
		maps.Copy(pod.Labels, template.Labels)
		maps.Copy(pod.Labels, podWorkerLabels(j, i))
		labels, annotations := podRank(j, i)
		maps.Copy(pod.Labels, labels)
		for _, each := range []map[string]string{template.Annotations, annotations} {
			for k, v := range each {
				annotate(&pod.ObjectMeta, k, v)
			}
		}
		ofWorkload(j, &pod.ObjectMeta)
		expect(j, &pod.ObjectMeta, pod.Spec)
		out = append(out, pod)
	}
	return out
}
