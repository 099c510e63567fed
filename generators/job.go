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
	return hashed(job, func(suffix string) []*batchv1.Job {
		name := workerName(job) + suffix
		return []*batchv1.Job{workerJob(job, name, workerTemplate(job, torchWorker(job, inService(job, name+"-0", workerName(job)))))}
	})
}

// hashed names Jobs after their immutable parts where the author asks for it: all of them after all parts, since roles
// of one run belong together. The name may be part of a template, as it is of the c10d endpoint: the hash is of the
// templates under the plain names, which have no suffix.
func hashed(job *schema.Job, build func(suffix string) []*batchv1.Job) (out []runtime.Object) {
	jobs := build("")
	if job.Spec.HashedNames {
		var parts []any
		for _, j := range jobs {
			parts = append(parts, j.Spec.Template, j.Spec.PodFailurePolicy, j.Spec.SuccessPolicy, j.Spec.BackoffLimitPerIndex)
		}
		hash := contentHash(parts...)
		jobs = build("-" + hash)
		for _, j := range jobs {
			annotate(&j.ObjectMeta, contract.ContentHash, hash)
		}
	}
	for _, j := range jobs {
		out = append(out, j)
	}
	return out
}

// workerJob is the Indexed Job of workers that go on when one of them is lost.
func workerJob(job *schema.Job, name string, template corev1.PodTemplateSpec) *batchv1.Job {
	f, w := &job.Spec.Failure, indexedJob(job, name, workersOnly(job)[0], template)
	w.Spec.BackoffLimit = &f.Restarts
	w.Spec.PodFailurePolicy = podFailurePolicy(f)
	if min := job.Spec.Workers.Min; min < job.Spec.Workers.Max { // not the replicas, which change while it runs: this field cannot
		// Workers that were waiting for a place when training ended find no rendezvous and fail, though the job is done.
		// Those that trained leave together, within the 300 s of torchrun's exit barrier (pytorch#118891); what is left
		// then gets SIGTERM and gracePeriod.
		w.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: &min}}}
	}
	if f.RestartsPerWorker != nil { // a worker that keeps failing is given up, the others train on
		w.Spec.BackoffLimit, w.Spec.BackoffLimitPerIndex = nil, f.RestartsPerWorker
	}
	return w
}

// indexedJob is the Job of one role: each pod keeps its index, and with it its name, when it is replaced. The first
// failure ends it.
func indexedJob(job *schema.Job, name string, r role, template corev1.PodTemplateSpec) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: meta(job, name, r.component),
		Spec: batchv1.JobSpec{
			Completions:          &r.replicas, // equal to parallelism, so that both can be changed while it runs
			Parallelism:          &r.replicas,
			CompletionMode:       ptr(batchv1.IndexedCompletion),
			BackoffLimit:         ptr[int32](0),
			PodReplacementPolicy: ptr(batchv1.Failed), // two pods of one index would share a hostname
			Suspend:              suspended(job),
		},
	}
	maps.Copy(j.Labels, workloadLabels(job))
	if d := job.Spec.Failure.Deadline; d != nil {
		j.Spec.ActiveDeadlineSeconds = ptr(seconds(*d))
	}
	if !job.Spec.GitOps { // a reconciler runs a Job again that deleted itself
		j.Spec.TTLSecondsAfterFinished = ptr(int32(seconds(job.Spec.TTLAfterFinished)))
	}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever // podFailurePolicy requires it
	template.Spec.Subdomain = roleName(job, r.component)    // with the Service of that name: <pod>.<subdomain> resolves
	if r.component == componentWorker {
		template = podpatch.Apply(template, job.Spec.PodTemplate)
	}
	j.Spec.Template = template
	expect(job, &j.ObjectMeta, template.Spec)
	return j
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
