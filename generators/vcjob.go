package generators

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

// torchVCJob is Volcano's own Job with one task. Its controller names the pods <job>-worker-<index>, makes a PodGroup
// of them, gang or no gang, and through the svc plugin the headless Service. Nothing in the spec but the task's
// replicas depends on how many workers there are, since nothing else can be changed.
func torchVCJob(job *schema.Job) []runtime.Object {
	return objects(hashed(job, job.Metadata.Name, func(name string) *apis.VCJob {
		template := workerTemplate(job, torchWorker(job, inService(job, name+"-"+componentWorker+"-0", name)))
		template.Spec.RestartPolicy = corev1.RestartPolicyNever // or exit codes and failures would stay the kubelet's
		j := apis.New(apis.VCJobKind, workloadMeta(job, name, componentWorker),
			vcJobSpec(job, patched(job, componentWorker, template)))
		expect(job, &j.ObjectMeta, j.Spec.Tasks[0].Template.Spec)
		expectNames(&j.ObjectMeta, expectOfVolcano(job))
		return j
	}, func(j *apis.VCJob) []any {
		s := &j.Spec
		return []any{
			s.SchedulerName, s.Queue, s.Policies, s.MinSuccess, s.MaxRetry, s.TTLSecondsAfterFinished,
			s.Tasks[0].Template,
		}
	}))
}

func vcJobSpec(job *schema.Job, template corev1.PodTemplateSpec) apis.VCJobSpec {
	w, f := &job.Spec.Workers, &job.Spec.Failure
	least := w.Min
	spec := apis.VCJobSpec{
		SchedulerName:     cmp.Or(template.Spec.SchedulerName, "volcano"),
		PriorityClassName: template.Spec.PriorityClassName, // of the PodGroup
		MaxRetry:          vcRetries(f),
		Policies:          vcPolicies(f),
		Plugins: map[string][]string{
			"env": {},
			"svc": {
				"--publish-not-ready-addresses", // peers are looked up while they start
				// Its own shuts out what network.policy lets in, and cannot be left out.
				"--disable-network-policy=true",
			},
		},
		TTLSecondsAfterFinished: expiry(job),
	}
	if g := job.Spec.Gang; g.Is(schema.GangVolcano) {
		least, spec.Queue = g.MinAvailable, g.Queue
	}
	if w.Min < w.Max { // as with a Job's success policy: those that waited for a place fail when the training is over
		spec.MinSuccess = &w.Min
	}
	spec.MinAvailable = least
	spec.Tasks = []apis.VCTask{{
		Name:     componentWorker,
		Replicas: w.Replicas,
		// Or the webhook demands all replicas of the task, whatever the job's minimum (volcano#1755).
		MinAvailable: &least,
		// The webhook's default: without it the object is refused when it is applied again, since tasks may not change.
		MaxRetry: 3,
		Template: template,
	}}
	return spec
}

// vcRetries is the number of failures with which the job fails; 0 would be 3. Where no pod is made again, it counts
// nothing.
func vcRetries(f *schema.Failure) int32 {
	if f.RestartsPerWorker != nil {
		return 0
	}
	return f.Restarts.Limit + 1
}

// vcPolicies replace a failed pod, unless its exit code says that this is no use. Volcano counts the replacements of
// all pods; a pod that was deleted is made again without a policy and without being counted.
func vcPolicies(f *schema.Failure) (policies []apis.VCPolicy) {
	for _, code := range sorted(f.FatalExitCodes) { // first, since the first policy that matches decides
		policies = append(policies, apis.VCPolicy{ExitCode: &code, Action: "TerminateJob"})
	}
	if f.RestartsPerWorker != nil { // 0: without a policy a pod that failed stays as it is, and the others go on
		return policies
	}
	return append(policies, apis.VCPolicy{Event: "PodFailed", Action: "RestartPod"})
}
