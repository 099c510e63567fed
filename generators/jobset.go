package generators

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// torchJobSet is a JobSet of the Jobs that target job renders, of the workers and of each group, or of one for each
// slice of the workers. Its controller makes the headless Service, and the names of the pods:
// <jobset>-<group>-<slice>-<index>.
func torchJobSet(j *job.Job) []runtime.Object {
	return objects(hashed(j, j.Metadata.Name, func(name string) *apis.JobSet {
		first := func(component string) string { return inService(j, name+"-"+component+"-0-0", name) }
		hosts := groupHosts(j, first)
		var all []apis.ReplicatedJob
		var pods []corev1.PodSpec
		for _, component := range j.Spec.StartOrder() { // none may wait for one that is listed later
			var child batchv1.JobSpec
			if g := j.Spec.Group(component); g != nil {
				child = lastingJobSpec(j, groupRole(g), groupTemplate(j, g, hosts))
			} else {
				child = workerJobSpec(j, workerTemplate(j, toldHosts(meetingWorker(j, first(component)), hosts)))
			}
			child.ActiveDeadlineSeconds = deadline(j)
			all = append(all, replicated(component, child, dependencies(j.Spec.AfterOf(component))...))
			if component == componentWorker {
				divide(j, &all[len(all)-1])
				all[len(all)-1].Template.Annotations = exclusiveTopology(j)
			}
			pods = append(pods, child.Template.Spec)
		}
		spec := jobSetSpec(all...)
		spec.SuccessPolicy, spec.FailurePolicy = jobSetSuccess(j), jobSetFailure(j)
		if c := j.Spec.Coordinator; c != nil {
			spec.Coordinator = &apis.JobSetCoordinator{ReplicatedJob: c.Group, PodIndex: c.Index}
			if size := j.Spec.Workers.SliceSize(); c.Group == componentWorker && j.Spec.Sliced() {
				spec.Coordinator.JobIndex, spec.Coordinator.PodIndex = c.Index/size, c.Index%size
			}
		}
		spec.Suspend = suspended(j)
		spec.ManagedBy = managedBy(j)
		spec.TTLSecondsAfterFinished = expiry(j)
		set := apis.New(apis.JobSetKind, workloadMeta(j, name, componentWorker), spec)
		expect(j, &set.ObjectMeta, pods...)
		return set
	}))
}

// jobSetImmutable is what no API server changes in a JobSet: its size too, since ElasticJobSet is off by default.
func jobSetImmutable(set *apis.JobSet) []any {
	parts := []any{set.Spec.ReplicatedJobs, set.Spec.Network}
	if p := set.Spec.FailurePolicy; p != nil {
		parts = append(parts, p)
	}
	if p := set.Spec.SuccessPolicy; p != nil {
		parts = append(parts, p)
	}
	return parts
}

// jobSetSpec is a JobSet of Jobs. A failed Job fails it, unless a failure policy starts all anew: how often single pods
// may fail is the Job's to count.
func jobSetSpec(jobs ...apis.ReplicatedJob) apis.JobSetSpec {
	return apis.JobSetSpec{
		ReplicatedJobs: jobs,
		Network: &apis.JobSetNetwork{
			EnableDNSHostnames:       ptr(true),
			PublishNotReadyAddresses: ptr(true), // peers are looked up while they start (jobset#504)
		},
	}
}

func replicated(name string, child batchv1.JobSpec, after ...apis.JobSetDependency) apis.ReplicatedJob {
	return apis.ReplicatedJob{
		Name:      name,
		Replicas:  1,
		DependsOn: after,
		Template:  batchv1.JobTemplateSpec{Spec: child},
	}
}

func dependencies(after []job.After) (all []apis.JobSetDependency) {
	for _, a := range after {
		status := "Ready"
		if a.When == job.WhenDone {
			status = "Complete"
		}
		all = append(all, apis.JobSetDependency{Name: a.Group, Status: status})
	}
	return all
}

// jobSetSuccess is nil where all Jobs must succeed, which is the default.
func jobSetSuccess(j *job.Job) *apis.JobSetSuccessPolicy {
	s := j.Spec.Success
	if s == nil {
		return nil
	}
	return &apis.JobSetSuccessPolicy{
		Operator:             strings.ToUpper(s.When[:1]) + s.When[1:],
		TargetReplicatedJobs: s.Groups,
	}
}

// jobSetActions are JobSet's words for what a rule says.
var jobSetActions = map[string]string{
	job.ThenFail: "FailJobSet", job.ThenRestart: "RestartJobSet",
	job.ThenRestartUncounted: "RestartJobSetAndIgnoreMaxRestarts", job.ThenRestartGroup: "RestartJob",
	job.ThenRestartGroupUncounted: "RestartJobAndIgnoreMaxRestarts",
}

// jobSetFailure starts all Jobs anew, nil where a failed Job fails the set. No new pod runs before the last old one is
// gone: both would have the same host names. A Job fails with the reason PodFailurePolicy by a disruption, or by an
// exit code that is fatal; the two differ in the message alone (Kubernetes, pkg/controller/job/pod_failure_policy.go),
// by which the one that restarts without end is known. A time that is up is up for all.
func jobSetFailure(j *job.Job) *apis.JobSetFailurePolicy {
	f := &j.Spec.Failure
	if f.RestartAll == nil {
		return nil
	}
	p := &apis.JobSetFailurePolicy{MaxRestarts: int32(*f.RestartAll), RestartStrategy: "BlockingRecreate"}
	if f.RestartAllInPlace {
		p.RestartStrategy = "InPlaceRestart"
	}
	for i, rule := range f.Rules { // first, since the first that applies decides
		p.Rules = append(p.Rules, apis.JobSetFailureRule{
			Name: fmt.Sprintf("rule%d", i), Action: jobSetActions[rule.Then],
			OnJobFailureReasons: rule.Reasons, TargetReplicatedJobs: rule.Groups,
		})
	}
	disrupted, fatal := j.Spec.RestartsOnDisruption(), j.Spec.HasFatalCodes()
	if disrupted && !j.Spec.RuleDecides(batchv1.JobReasonPodFailurePolicy) {
		rule := apis.JobSetFailureRule{
			Name: "disrupted", Action: "RestartJobSetAndIgnoreMaxRestarts",
			OnJobFailureReasons: []string{batchv1.JobReasonPodFailurePolicy},
		}
		if fatal {
			rule.OnJobFailureMessagePatterns = []string{"condition " + string(corev1.DisruptionTarget)}
		}
		p.Rules = append(p.Rules, rule)
	}
	if fatal && !j.Spec.RuleDecides(batchv1.JobReasonPodFailurePolicy) {
		p.Rules = append(p.Rules, apis.JobSetFailureRule{
			Name: "fatal", Action: "FailJobSet", OnJobFailureReasons: []string{batchv1.JobReasonPodFailurePolicy},
		})
	}
	if f.Deadline != nil && !j.Spec.RuleDecides(batchv1.JobReasonDeadlineExceeded) {
		p.Rules = append(p.Rules, apis.JobSetFailureRule{
			Name: "late", Action: "FailJobSet", OnJobFailureReasons: []string{batchv1.JobReasonDeadlineExceeded},
		})
	}
	return p
}
