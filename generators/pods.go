package generators

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema"
)

// torchPods are the tutorial's bare pods. Nothing in a pod depends on how many there are but what must, so that one
// more worker leaves the others' objects as they are.
func torchPods(job *schema.Job) []runtime.Object {
	var out []runtime.Object
	for _, i := range podWorkerNumbers(job) {
		// The pod's own hostname, so that worker 0 recognizes itself as the host of the store.
		template := workerTemplate(job, torchWorker(job, podWorkerName(job, job.Spec.Workers.FirstIndex)))
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		template.Spec.ActiveDeadlineSeconds = deadline(job)
		if job.Spec.Suspend {
			// A pod cannot be suspended otherwise.
			template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "tegen.dev/suspended"}}
		}
		template = patched(job, componentWorker, template)
		pod := &corev1.Pod{ObjectMeta: workloadMeta(job, podWorkerName(job, i), componentWorker), Spec: template.Spec}
		maps.Copy(pod.Labels, template.Labels)
		maps.Copy(pod.Labels, podWorkerLabels(job, i))
		labels, annotations := podRank(job, i)
		maps.Copy(pod.Labels, labels)
		for _, each := range []map[string]string{template.Annotations, annotations} {
			for k, v := range each {
				annotate(&pod.ObjectMeta, k, v)
			}
		}
		ofWorkload(job, &pod.ObjectMeta)
		expect(job, &pod.ObjectMeta, pod.Spec)
		out = append(out, pod)
	}
	return out
}
