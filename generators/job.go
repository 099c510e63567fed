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
	"github.com/tegen-dev/tegen/schema/job"
)

// torchJob is the default form: one Indexed Job, and one for each group.
func torchJob(j *job.Job) []runtime.Object {
	return groupedJobs(j)
}

// named is an object whose name may carry a hash.
type named interface {
	runtime.Object
	metav1.ObjectMetaAccessor
}

// hashed names an object after its immutable part where the author asks for it. The name may be part of that, as it is
// of the c10d endpoint: the hash is of what is immutable under the plain name.
func hashed[T named](j *job.Job, name string, build func(name string) T) T {
	return hashedAll(j, func(suffix string) []T { return []T{build(name + suffix)} })[0]
}

// hashedAll names objects after the immutable parts of all of them, since roles of one run belong together.
func hashedAll[T named](j *job.Job, build func(suffix string) []T) []T {
	all := build("")
	if !j.Spec.HashedNames {
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
func workerJob(j *job.Job, name string, template corev1.PodTemplateSpec) *batchv1.Job {
	template.Spec.Subdomain = workerName(j) // with the Service of that name: <pod>.<subdomain> resolves
	return roleJob(j, name, componentWorker, workerJobSpec(j, template))
}

// success is when a job is complete, where that is not when all its workers have ended well; what is left then gets
// SIGTERM and gracePeriod.
func success(j *job.Job) *batchv1.SuccessPolicyRule {
	switch min := j.Spec.Workers.Min; {
	case j.Spec.HostLaunched(): // workers only serve: they end when the launcher, beside worker 0, has
		return &batchv1.SuccessPolicyRule{SucceededIndexes: ptr("0")}
	case min < j.Spec.Workers.Max: // not the replicas, which change while it runs: this field cannot
		// Workers that were waiting for a place when training ended find no rendezvous and fail, though the job is
		// done. Those that trained leave together, within the 300 s of torchrun's exit barrier (pytorch#118891).
		return &batchv1.SuccessPolicyRule{SucceededCount: &min}
	}
	return nil
}

// indexedJob is the Job of a role that ends with its first failure.
func indexedJob(j *job.Job, name string, r role, template corev1.PodTemplateSpec) *batchv1.Job {
	template.Spec.Subdomain = roleName(j, r.component)
	return roleJob(j, name, r.component, indexedJobSpec(j, r, template))
}

// roleJob is a Job that stands by itself.
func roleJob(tj *job.Job, name, component string, spec batchv1.JobSpec) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: workloadMeta(tj, name, component), Spec: spec}
	j.Spec.Suspend = suspended(tj)
	j.Spec.ManagedBy = managedBy(tj)
	j.Spec.ActiveDeadlineSeconds = deadline(tj)
	j.Spec.TTLSecondsAfterFinished = expiry(tj)
	resizable(tj, component, &j.ObjectMeta)
	expect(tj, &j.ObjectMeta, j.Spec.Template.Spec)
	return j
}

// indexedJobSpec is an Indexed Job: each pod keeps its index, and with it its name, when it is replaced. What starts
// and ends the whole is left to the object that it becomes part of.
func indexedJobSpec(j *job.Job, r role, template corev1.PodTemplateSpec) batchv1.JobSpec {
	template.Spec.RestartPolicy = restartPolicy(j, r.component)
	template = patched(j, r.component, template)
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
func restartPolicy(j *job.Job, component string) corev1.RestartPolicy {
	if j.Spec.FailureOf(component).InPlace && (component == componentWorker || isGroup(j, component)) {
		return corev1.RestartPolicyOnFailure
	}
	return corev1.RestartPolicyNever
}

// workerJobSpec is the Indexed Job of workers that go on when one of them is lost.
func workerJobSpec(j *job.Job, template corev1.PodTemplateSpec) batchv1.JobSpec {
	w := lastingJobSpec(j, workersOnly(j)[0], template)
	if rule := success(j); rule != nil {
		w.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{*rule}}
	}
	return w
}

// lastingJobSpec is an Indexed Job that replaces failed pods, as often as the job's author says.
func lastingJobSpec(j *job.Job, r role, template corev1.PodTemplateSpec) batchv1.JobSpec {
	f, w := j.Spec.FailureOf(r.component), indexedJobSpec(j, r, template)
	w.BackoffLimit = f.Restarts.OrNil()
	if f.RestartAllInPlace { // or JobSet's webhook refuses it: no Job of the set may ever fail
		w.BackoffLimit = ptr[int32](math.MaxInt32)
	}
	w.PodFailurePolicy = podFailurePolicy(j, r.component)
	if f.RestartsPerWorker != nil { // a pod that keeps failing is given up, the others go on
		w.BackoffLimit, w.BackoffLimitPerIndex = nil, f.RestartsPerWorker
	}
	return w
}

// patched merges the author's escape hatch of a role, in which the role's own container is called like the role, and
// then gives that container the name that the target's API expects, and the first place, where some controllers and
// people look.
func patched(j *job.Job, role string, template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	own := template.Spec.Containers[0].Name
	if role == own || job.Trains(role) {
		own = j.Spec.ContainerOf(role)
	}
	template.Spec.Containers[0].Name = role
	template = podpatch.Apply(template, j.Spec.Role(role).PodTemplate)
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
func deadline(j *job.Job) *int64 {
	d := j.Spec.Failure.Deadline
	if d == nil {
		return nil
	}
	return ptr(seconds(*d))
}

// cleanPods is the policy of Kubeflow's operators and TorchElastic's, whose words start with a capital letter.
func cleanPods(j *job.Job) string {
	word := j.Spec.CleanPods
	return strings.ToUpper(word[:1]) + word[1:]
}

// expiry is how long a finished job is kept; nil is for ever: a reconciler runs a job again that deleted itself.
func expiry(j *job.Job) *int32 {
	if j.Spec.GitOps || j.Spec.TTLAfterFinished.None {
		return nil
	}
	return ptr(int32(seconds(j.Spec.TTLAfterFinished.Duration)))
}

func podFailurePolicy(j *job.Job, component string) *batchv1.PodFailurePolicy {
	f := j.Spec.FailureOf(component)
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
	if len(f.FatalExitCodes) > 0 && (component == componentWorker || isGroup(j, component)) {
		rules = append(rules, batchv1.PodFailurePolicyRule{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: ptr(j.Spec.ContainerOf(component)),
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
