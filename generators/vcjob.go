package generators

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// torchVCJob is Volcano's own Job with a task for the workers and one for each group. Its controller names the pods
// <job>-<task>-<index>, makes a PodGroup of them, gang or no gang, and through the svc plugin the headless Service.
// Nothing in the spec but the tasks' replicas depends on how many pods there are, since nothing else can be changed.
func torchVCJob(tj *job.Job) []runtime.Object {
	return objects(hashed(tj, tj.Metadata.Name, func(name string) *apis.VCJob {
		first := func(component string) string { return inService(tj, name+"-"+component+"-0", name) }
		hosts := groupHosts(tj, first)
		worker := toldHosts(torchWorker(tj, first(componentWorker)), hosts)
		templates := []corev1.PodTemplateSpec{vcTemplate(tj, componentWorker, workerTemplate(tj, worker))}
		for i := range tj.Spec.Groups {
			g := &tj.Spec.Groups[i]
			templates = append(templates, vcTemplate(tj, g.Name, groupTemplate(tj, g, hosts)))
		}
		j := apis.New(apis.VCJobKind, workloadMeta(tj, name, componentWorker), vcJobSpec(tj, templates))
		var pods []corev1.PodSpec
		for i := range j.Spec.Tasks {
			pods = append(pods, j.Spec.Tasks[i].Template.Spec)
		}
		expect(tj, &j.ObjectMeta, pods...)
		expectNames(&j.ObjectMeta, expectOfVolcano(tj))
		return j
	}))
}

func vcJobImmutable(j *apis.VCJob) []any {
	s := &j.Spec
	parts := []any{s.SchedulerName, s.Queue, s.Policies, s.MinSuccess, s.MaxRetry, s.TTLSecondsAfterFinished}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if parts = append(parts, t.Template); t.DependsOn != nil || t.Policies != nil {
			parts = append(parts, t.DependsOn, t.Policies)
		}
	}
	if len(s.Plugins) > len(vcPlugins(nil)) {
		parts = append(parts, s.Plugins)
	}
	if s.NetworkTopology != nil || s.Tasks[0].PartitionPolicy != nil { // of others the name stays what it was
		parts = append(parts, s.NetworkTopology, s.Tasks[0].PartitionPolicy)
	}
	return parts
}

func vcTemplate(j *job.Job, component string, template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template.Spec.RestartPolicy = restartPolicy(j, component) // or exit codes and failures would stay the kubelet's
	return patched(j, component, template)
}

// vcJobSpec has the templates of the workers and of the groups, in this order.
func vcJobSpec(j *job.Job, templates []corev1.PodTemplateSpec) apis.VCJobSpec {
	w, f, pod := &j.Spec.Workers, &j.Spec.Failure, &templates[0].Spec
	spec := apis.VCJobSpec{
		SchedulerName:           cmp.Or(pod.SchedulerName, "volcano"),
		PriorityClassName:       pod.PriorityClassName, // of the PodGroup
		MaxRetry:                vcRetries(f),
		Policies:                vcPolicies(f),
		Plugins:                 vcPlugins(j.Spec.Volcano.Plugins.ByName()),
		TTLSecondsAfterFinished: expiry(j),
	}
	if g := j.Spec.Gang; g.Is(job.GangVolcano) {
		spec.Queue = g.Queue
	}
	if w.Min < w.Max { // as with a Job's success policy: those that waited for a place fail when the training is over
		spec.MinSuccess = &w.Min
	}
	for i, r := range withGroups(j) {
		together := r.least
		if g := j.Spec.Gang; r.component == componentWorker && g.Is(job.GangVolcano) {
			together, r.least = g.MinAvailable, g.MinAvailable
			if j.Spec.WorkersAwaited() { // until so many are ready
				r.least = max(together, w.Min)
			}
		}
		task := apis.VCTask{
			Name:     r.component,
			Replicas: r.replicas,
			// Or the webhook demands all replicas of the task, whatever the job's minimum (volcano#1755).
			MinAvailable: &r.least,
			// The webhook's default: without it the object is refused when it is applied again, since tasks may not
			// change.
			MaxRetry: 3,
			Policies: vcSuccess(j, r.component),
			Template: templates[i],
		}
		if after := j.Spec.AfterOf(r.component); len(after) > 0 {
			task.DependsOn = &apis.VCDependsOn{}
			for _, a := range after {
				task.DependsOn.Name = append(task.DependsOn.Name, a.Group)
			}
		} else {
			// Pods that are made only when others run count towards no gang: it would wait for them, they for it.
			spec.MinAvailable += together
		}
		spec.Tasks = append(spec.Tasks, task)
	}
	spec.NetworkTopology, spec.Tasks[0].PartitionPolicy = volcanoTopology(j), volcanoPartitions(j)
	return spec
}

// vcPlugins are those of the controller that every job has, and some more.
func vcPlugins(more map[string][]string) map[string][]string {
	all := map[string][]string{
		"env": {},
		"svc": {
			"--publish-not-ready-addresses", // peers are looked up while they start
			// Its own shuts out what network.policy lets in, and cannot be left out.
			"--disable-network-policy=true",
		},
	}
	maps.Copy(all, more)
	return all
}

// vcSuccess ends a job when a group that must succeed has, nil where all must.
func vcSuccess(j *job.Job, component string) []apis.VCPolicy {
	if s := j.Spec.Success; s == nil || !slices.Contains(s.Groups, component) {
		return nil
	}
	return []apis.VCPolicy{{Event: "TaskCompleted", Action: "CompleteJob"}}
}

// vcRetries is the number of failures with which the job fails; 0 would be 3. Where no pod is made again, it counts
// nothing.
func vcRetries(f *job.Failure) int32 {
	if f.RestartAll != nil {
		return int32(*f.RestartAll) + 1
	}
	if f.RestartsPerWorker != nil {
		return 0
	}
	return f.Restarts.Limit + 1
}

// vcPolicies replace a failed pod, or all of the job's, unless its exit code says that this is no use. Volcano counts
// the replacements of all pods; a pod that was deleted is made again without a policy and without being counted.
func vcPolicies(f *job.Failure) (policies []apis.VCPolicy) {
	for _, code := range sorted(f.FatalExitCodes) { // first, since the first policy that matches decides
		policies = append(policies, apis.VCPolicy{ExitCode: &code, Action: "TerminateJob"})
	}
	if f.RestartsPerWorker != nil { // 0: without a policy a pod that failed stays as it is, and the others go on
		return policies
	}
	if f.RestartAllOn == job.OnEviction {
		return append(policies, apis.VCPolicy{Event: "PodEvicted", Action: "RestartJob"})
	}
	if f.RestartAll != nil { // after a pod that somebody deleted too, as with a JobSet
		return append(policies, apis.VCPolicy{Events: []string{"PodFailed", "PodEvicted"}, Action: "RestartJob"})
	}
	return append(policies, apis.VCPolicy{Event: "PodFailed", Action: "RestartPod"})
}
