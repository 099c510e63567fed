package generators

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

func coschedulingGroup(job *schema.Job) []runtime.Object {
	return []runtime.Object{
		apis.New(apis.CoschedulingPodGroupKind, meta(job, job.GangName(), componentGang), apis.CoschedulingPodGroup{
			MinMember:              gangSum(job, roles(job)),
			ScheduleTimeoutSeconds: ptr(int32(seconds(job.Spec.Gang.WaitTimeout))),
		}),
	}
}

func volcanoGroup(job *schema.Job) []runtime.Object {
	all := roles(job)
	m := meta(job, job.GangName(), componentGang)
	spec := apis.VolcanoPodGroup{
		MinMember: gangSum(job, all), Queue: job.Spec.Gang.Queue,
		PriorityClassName: job.Spec.PodPriority(), NetworkTopology: volcanoTopology(job),
	}
	if len(all) > 1 { // or workers could stand in for a server
		spec.MinTaskMember = map[string]int32{}
		for _, r := range all {
			spec.MinTaskMember[r.component] = gangLeast(job, r)
		}
	}
	names := expectOfVolcano(job)
	if spec.PriorityClassName != "" {
		names = append(names, "PriorityClass/"+spec.PriorityClassName)
	}
	expectNames(&m, names)
	return []runtime.Object{apis.New(apis.VolcanoPodGroupKind, m, spec)}
}

// volcanoQueue starts what is expected of a queue.
const volcanoQueue = "Queue.scheduling.volcano.sh/"

// gangTemplate is what Kubernetes' own Workload calls the one kind of PodGroup in it.
const gangTemplate = "pods"

// kubernetesGroups are the gang of Kubernetes itself, whose API differs between releases.
func kubernetesGroups(job *schema.Job) []runtime.Object {
	if job.Spec.KubernetesVersion == "1.36" {
		return kubernetesAlpha(job)
	}
	return kubernetesBeta(job)
}

// kubernetesAlpha is the gang of 1.36. The priority stands on the pods alone: a group has one only behind a feature
// gate of its own, WorkloadAwarePreemption, without which the API server refuses the field.
func kubernetesAlpha(job *schema.Job) []runtime.Object {
	policy, constraints := gangPolicy(job), gangConstraints(job)
	return []runtime.Object{
		apis.New(apis.WorkloadAlphaKind, meta(job, job.GangName(), componentGang), apis.WorkloadSpec{
			PodGroupTemplates: []apis.PodGroupTemplate{{
				Name: gangTemplate, SchedulingPolicy: policy, SchedulingConstraints: constraints,
			}},
		}),
		apis.New(apis.PodGroupAlphaKind, meta(job, job.GangName(), componentGang), apis.PodGroupAlpha{
			PodGroupTemplateRef: &apis.PodGroupTemplateRef{Workload: apis.WorkloadTemplateRef{
				WorkloadName: job.GangName(), PodGroupTemplateName: gangTemplate,
			}},
			SchedulingPolicy: policy, SchedulingConstraints: constraints,
		}),
	}
}

// kubernetesBeta is the gang of 1.37.
func kubernetesBeta(job *schema.Job) []runtime.Object {
	policy, constraints, priority := gangPolicy(job), gangConstraints(job), job.Spec.PodPriority()
	return []runtime.Object{
		apis.New(apis.WorkloadBetaKind, meta(job, job.GangName(), componentGang), apis.WorkloadSpec{
			PodGroupTemplates: []apis.PodGroupTemplate{{
				Name: gangTemplate, SchedulingPolicy: policy, SchedulingConstraints: constraints,
				PriorityClassName: priority,
			}},
		}),
		apis.New(apis.PodGroupBetaKind, meta(job, job.GangName(), componentGang), apis.PodGroupBeta{
			WorkloadRef:      &apis.WorkloadRef{WorkloadName: job.GangName(), TemplateName: gangTemplate},
			SchedulingPolicy: policy, SchedulingConstraints: constraints,
			PriorityClassName: priority,
		}),
	}
}

func gangPolicy(job *schema.Job) apis.GroupPolicy {
	return apis.GroupPolicy{Gang: &apis.GangPolicy{MinCount: gangSum(job, roles(job))}}
}
