package generators

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

// torchJobSet is a JobSet of one Job, the same that target job renders. Its controller makes the headless Service, and
// the names of the pods: <jobset>-worker-0-<index>.
func torchJobSet(job *schema.Job) []runtime.Object {
	return objects(hashed(job, job.Metadata.Name, func(name string) *apis.JobSet {
		template := workerTemplate(job, torchWorker(job, inService(job, name+"-"+componentWorker+"-0-0", name)))
		spec := jobSetSpec(job, componentWorker, workerJobSpec(job, template))
		child := &spec.ReplicatedJobs[0].Template.Spec
		child.ActiveDeadlineSeconds = deadline(job)
		spec.Suspend = suspended(job)
		spec.TTLSecondsAfterFinished = expiry(job)
		set := apis.New(apis.JobSetKind, workloadMeta(job, name, componentWorker), spec)
		expect(job, &set.ObjectMeta, child.Template.Spec)
		return set
	}, func(set *apis.JobSet) []any {
		return []any{
			set.Spec.ReplicatedJobs,
			set.Spec.Network,
		}
	})) // its size too: ElasticJobSet is off by default
}

// jobSetSpec is a JobSet of one Job. A failed Job fails it, since no failure policy restarts it: how often pods may
// fail is the Job's to count.
func jobSetSpec(job *schema.Job, name string, child batchv1.JobSpec) apis.JobSetSpec {
	return apis.JobSetSpec{
		ReplicatedJobs: []apis.ReplicatedJob{{
			Name:     name,
			Replicas: 1,
			Template: batchv1.JobTemplateSpec{Spec: child},
		}},
		Network: &apis.JobSetNetwork{
			EnableDNSHostnames:       ptr(true),
			PublishNotReadyAddresses: ptr(true), // peers are looked up while they start (jobset#504)
		},
	}
}
