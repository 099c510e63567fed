package generators

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/contract"
	"github.com/tegen-dev/tegen/internal/podpatch"
	"github.com/tegen-dev/tegen/schema"
)

// torchJob is the default form: one Indexed Job.
func torchJob(job *schema.Job) []runtime.Object {
	return []runtime.Object{hashed(job, workerName(job), func(name string) *batchv1.Job {
		return workerJob(job, name, workerTemplate(job, torchWorker(job, inService(job, name+"-0", workerName(job)))))
	})}
}

// hashed names a Job after its immutable part where the author asks for it. The name may be part of the template, as it
// is of the c10d endpoint: the hash is of the template under the plain name.
func hashed(job *schema.Job, name string, build func(name string) *batchv1.Job) *batchv1.Job {
	j := build(name)
	if !job.Spec.HashedNames {
		return j
	}
	hash := contentHash(j.Spec.Template, j.Spec.PodFailurePolicy, j.Spec.SuccessPolicy, j.Spec.BackoffLimitPerIndex)
	j = build(name + "-" + hash)
	annotate(&j.ObjectMeta, contract.ContentHash, hash)
	return j
}

// workerJob is an Indexed Job: each worker keeps its index, and with it its name, when its pod is replaced.
func workerJob(job *schema.Job, name string, template corev1.PodTemplateSpec) *batchv1.Job {
	f := &job.Spec.Failure
	w := &batchv1.Job{
		ObjectMeta: meta(job, name, componentWorker),
		Spec: batchv1.JobSpec{
			Completions:          &job.Spec.Workers.Replicas, // equal to parallelism, so that both can be changed while it runs
			Parallelism:          &job.Spec.Workers.Replicas,
			CompletionMode:       ptr(batchv1.IndexedCompletion),
			BackoffLimit:         &f.Restarts,
			PodFailurePolicy:     podFailurePolicy(f),
			PodReplacementPolicy: ptr(batchv1.Failed), // two pods of one index would share a hostname
			Suspend:              suspended(job),
		},
	}
	maps.Copy(w.Labels, workloadLabels(job))
	if rule := success(job); rule != nil {
		w.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{*rule}}
	}
	if f.RestartsPerWorker != nil { // a worker that keeps failing is given up, the others train on
		w.Spec.BackoffLimit, w.Spec.BackoffLimitPerIndex = nil, f.RestartsPerWorker
	}
	if f.Deadline != nil {
		w.Spec.ActiveDeadlineSeconds = ptr(seconds(*f.Deadline))
	}
	if !job.Spec.GitOps { // a reconciler runs a Job again that deleted itself
		w.Spec.TTLSecondsAfterFinished = ptr(int32(seconds(job.Spec.TTLAfterFinished)))
	}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever // podFailurePolicy requires it
	template.Spec.Subdomain = workerName(job)               // with the Service of that name: <pod>.<subdomain> resolves
	w.Spec.Template = podpatch.Apply(template, job.Spec.PodTemplate)
	expect(job, &w.ObjectMeta, w.Spec.Template.Spec)
	return w
}

// success is when a job is complete, where that is not when all its workers have ended well; what is left then gets
// SIGTERM and gracePeriod.
func success(job *schema.Job) *batchv1.SuccessPolicyRule {
	switch min := job.Spec.Workers.Min; {
	case job.Spec.Horovodrun(): // workers only serve: they end when the launcher, beside worker 0, has
		return &batchv1.SuccessPolicyRule{SucceededIndexes: ptr("0")}
	case min < job.Spec.Workers.Max: // not the replicas, which change while it runs: this field cannot
		// Workers that were waiting for a place when training ended find no rendezvous and fail, though the job is done.
		// Those that trained leave together, within the 300 s of torchrun's exit barrier (pytorch#118891).
		return &batchv1.SuccessPolicyRule{SucceededCount: &min}
	}
	return nil
}

func podFailurePolicy(f *schema.Failure) *batchv1.PodFailurePolicy {
	var rules []batchv1.PodFailurePolicyRule
	if f.IgnoreDisruptions { // first, since the first rule that matches decides
		rules = append(rules, batchv1.PodFailurePolicyRule{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			},
		})
	}
	if len(f.FatalExitCodes) > 0 {
		rules = append(rules, batchv1.PodFailurePolicyRule{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: ptr(componentWorker),
				Operator:      batchv1.PodFailurePolicyOnExitCodesOpIn,
				Values:        sorted(f.FatalExitCodes), // the API requires order
			},
		})
	}
	if len(rules) == 0 {
		return nil
	}
	return &batchv1.PodFailurePolicy{Rules: rules}
}
