package generators

import (
	"maps"
	"math"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/podpatch"
	"github.com/tegen-dev/tegen/schema"
)

// torchJob is the default form: one Indexed Job, and one for each group.
func torchJob(job *schema.Job) []runtime.Object {
	return groupedJobs(job)
}

// named is an object whose name may carry a hash.
type named interface {
	runtime.Object
	metav1.ObjectMetaAccessor
}

// hashed names an object after its immutable part where the author asks for it. The name may be part of that, as it is
// of the c10d endpoint: the hash is of what is immutable under the plain name.
func hashed[T named](job *schema.Job, name string, build func(name string) T) T {
	return hashedAll(job, func(suffix string) []T { return []T{build(name + suffix)} })[0]
}

// hashedAll names objects after the immutable parts of all of them, since roles of one run belong together.
func hashedAll[T named](job *schema.Job, build func(suffix string) []T) []T {
	all := build("")
	if !job.Spec.HashedNames {
		return all
	}
	var parts []any
	for _, o := range all {
		parts = append(parts, immutable(o)...)
	}
	hash := contentHash(parts...)
	all = build("-" + hash)
	for _, o := range all {
		m := o.GetObjectMeta()
		annotations := map[string]string{names.ContentHash: hash}
		maps.Copy(annotations, m.GetAnnotations())
		m.SetAnnotations(annotations)
	}
	return all
}

// objects is a list of what generators return.
func objects[T runtime.Object](list ...T) []runtime.Object {
	out := make([]runtime.Object, len(list))
	for i, o := range list {
		out[i] = o
	}
	return out
}

// jobImmutable is what no API server changes in a Job, but for its size.
func jobImmutable(j *batchv1.Job) []any {
	parts := []any{j.Spec.Template, j.Spec.PodFailurePolicy, j.Spec.SuccessPolicy, j.Spec.BackoffLimitPerIndex}
	if by := j.Spec.ManagedBy; by != nil {
		parts = append(parts, *by)
	}
	return parts
}

// workerJob is the Job of workers that go on when one of them is lost.
func workerJob(job *schema.Job, name string, template corev1.PodTemplateSpec) *batchv1.Job {
	template.Spec.Subdomain = workerName(job) // with the Service of that name: <pod>.<subdomain> resolves
	return roleJob(job, name, componentWorker, workerJobSpec(job, template))
}

// success is when a job is complete, where that is not when all its workers have ended well; what is left then gets
// SIGTERM and gracePeriod.
func success(job *schema.Job) *batchv1.SuccessPolicyRule {
	switch min := job.Spec.Workers.Min; {
	case job.Spec.HostLaunched(): // workers only serve: they end when the launcher, beside worker 0, has
		return &batchv1.SuccessPolicyRule{SucceededIndexes: ptr("0")}
	case min < job.Spec.Workers.Max: // not the replicas, which change while it runs: this field cannot
		// Workers that were waiting for a place when training ended find no rendezvous and fail, though the job is
		// done. Those that trained leave together, within the 300 s of torchrun's exit barrier (pytorch#118891).
		return &batchv1.SuccessPolicyRule{SucceededCount: &min}
	}
	return nil
}

// indexedJob is the Job of a role that ends with its first failure.
func indexedJob(job *schema.Job, name string, r role, template corev1.PodTemplateSpec) *batchv1.Job {
	template.Spec.Subdomain = roleName(job, r.component)
	return roleJob(job, name, r.component, indexedJobSpec(job, r, template))
}

// roleJob is a Job that stands by itself.
func roleJob(job *schema.Job, name, component string, spec batchv1.JobSpec) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: workloadMeta(job, name, component), Spec: spec}
	j.Spec.Suspend = suspended(job)
	j.Spec.ManagedBy = managedBy(job)
	j.Spec.ActiveDeadlineSeconds = deadline(job)
	j.Spec.TTLSecondsAfterFinished = expiry(job)
	resizable(job, component, &j.ObjectMeta)
	expect(job, &j.ObjectMeta, j.Spec.Template.Spec)
	return j
}

// indexedJobSpec is an Indexed Job: each pod keeps its index, and with it its name, when it is replaced. What starts
// and ends the whole is left to the object that it becomes part of.
func indexedJobSpec(job *schema.Job, r role, template corev1.PodTemplateSpec) batchv1.JobSpec {
	template.Spec.RestartPolicy = restartPolicy(job, r.component)
	template = patched(job, r.component, template)
	return batchv1.JobSpec{
		Completions:          &r.replicas, // equal to parallelism, so that both can be changed while it runs
		Parallelism:          &r.replicas,
		CompletionMode:       ptr(batchv1.IndexedCompletion),
		BackoffLimit:         ptr[int32](0),
		PodReplacementPolicy: ptr(batchv1.Failed), // two pods of one index would share a hostname
		Template:             template,
	}
}

// restartPolicy is Never, as podFailurePolicy requires, unless the kubelet is to start workers again in their pods.
func restartPolicy(job *schema.Job, component string) corev1.RestartPolicy {
	if job.Spec.FailureOf(component).InPlace && (component == componentWorker || isGroup(job, component)) {
		return corev1.RestartPolicyOnFailure
	}
	return corev1.RestartPolicyNever
}

// workerJobSpec is the Indexed Job of workers that go on when one of them is lost.
func workerJobSpec(job *schema.Job, template corev1.PodTemplateSpec) batchv1.JobSpec {
	w := lastingJobSpec(job, workersOnly(job)[0], template)
	if rule := success(job); rule != nil {
		w.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{*rule}}
	}
	return w
}

// lastingJobSpec is an Indexed Job that replaces failed pods, as often as the job's author says.
func lastingJobSpec(job *schema.Job, r role, template corev1.PodTemplateSpec) batchv1.JobSpec {
	f, w := job.Spec.FailureOf(r.component), indexedJobSpec(job, r, template)
	w.BackoffLimit = f.Restarts.OrNil()
	if f.RestartAllInPlace { // or JobSet's webhook refuses it: no Job of the set may ever fail
		w.BackoffLimit = ptr[int32](math.MaxInt32)
	}
	w.PodFailurePolicy = podFailurePolicy(job, r.component)
	if f.RestartsPerWorker != nil { // a pod that keeps failing is given up, the others go on
		w.BackoffLimit, w.BackoffLimitPerIndex = nil, f.RestartsPerWorker
	}
	return w
}

// patched merges the author's escape hatch of a role, in which the role's own container is called like the role, and
// then gives that container the name that the target's API expects, and the first place, where some controllers and
// people look.
func patched(job *schema.Job, role string, template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	own := template.Spec.Containers[0].Name
	if role == own || schema.Trains(role) {
		own = job.Spec.ContainerOf(role)
	}
	template.Spec.Containers[0].Name = role
	template = podpatch.Apply(template, job.Spec.Role(role).PodTemplate)
	var all []corev1.Container
	for _, c := range template.Spec.Containers {
		if c.Name == role {
			c.Name = own
			all = append([]corev1.Container{c}, all...)
		} else {
			all = append(all, c)
		}
	}
	template.Spec.Containers = all
	return template
}

// deadline is when a job is given up, nil for never.
func deadline(job *schema.Job) *int64 {
	d := job.Spec.Failure.Deadline
	if d == nil {
		return nil
	}
	return ptr(seconds(*d))
}

// cleanPods is the policy of Kubeflow's operators and TorchElastic's, whose words start with a capital letter.
func cleanPods(job *schema.Job) string {
	word := job.Spec.CleanPods
	return strings.ToUpper(word[:1]) + word[1:]
}

// expiry is how long a finished job is kept; nil is for ever: a reconciler runs a job again that deleted itself.
func expiry(job *schema.Job) *int32 {
	if job.Spec.GitOps || job.Spec.TTLAfterFinished.None {
		return nil
	}
	return ptr(int32(seconds(job.Spec.TTLAfterFinished.Duration)))
}

func podFailurePolicy(job *schema.Job, component string) *batchv1.PodFailurePolicy {
	f := job.Spec.FailureOf(component)
	var rules []batchv1.PodFailurePolicyRule
	if f.IgnoreDisruptions { // first, since the first rule that matches decides
		action := batchv1.PodFailurePolicyActionIgnore
		if !f.ReplacesAlone() { // the pod that took its place would find the others in the middle of their work
			action = batchv1.PodFailurePolicyActionFailJob
		}
		rules = append(rules, batchv1.PodFailurePolicyRule{
			Action: action,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			},
		})
	}
	if len(f.FatalExitCodes) > 0 && (component == componentWorker || isGroup(job, component)) {
		rules = append(rules, batchv1.PodFailurePolicyRule{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: ptr(job.Spec.ContainerOf(component)),
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
