package generators

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

func coschedulingGroup(j *job.Job) []runtime.Object {
	return []runtime.Object{
		apis.New(apis.CoschedulingPodGroupKind, meta(j, j.GangName(), componentGang), apis.CoschedulingPodGroup{
			MinMember:              gangSum(j, roles(j)),
			ScheduleTimeoutSeconds: ptr(int32(seconds(j.Spec.Gang.WaitTimeout))),
		}),
	}
}

func volcanoGroup(j *job.Job) []runtime.Object {
	all := roles(j)
	m := meta(j, j.GangName(), componentGang)
	spec := apis.VolcanoPodGroup{
		MinMember: gangSum(j, all), Queue: j.Spec.Gang.Queue,
		PriorityClassName: j.Spec.PodPriority(), NetworkTopology: volcanoTopology(j),
	}
	if len(all) > 1 { // or workers could stand in for a server
		spec.MinTaskMember = map[string]int32{}
		for _, r := range all {
			spec.MinTaskMember[r.component] = gangLeast(j, r)
		}
	}
	names := expectOfVolcano(j)
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
func kubernetesGroups(j *job.Job) []runtime.Object {
	if j.Spec.KubernetesVersion == "1.36" {
		return kubernetesAlpha(j)
	}
	return kubernetesBeta(j)
}

// kubernetesAlpha is the gang of 1.36. The priority stands on the pods alone: a group has one only behind a feature
// gate of its own, WorkloadAwarePreemption, without which the API server refuses the field.
func kubernetesAlpha(j *job.Job) []runtime.Object {
	policy, constraints := gangPolicy(j), gangConstraints(j)
	return []runtime.Object{
		apis.New(apis.WorkloadAlphaKind, meta(j, j.GangName(), componentGang), apis.WorkloadSpec{
			PodGroupTemplates: []apis.PodGroupTemplate{{
				Name: gangTemplate, SchedulingPolicy: policy, SchedulingConstraints: constraints,
			}},
		}),
		apis.New(apis.PodGroupAlphaKind, meta(j, j.GangName(), componentGang), apis.PodGroupAlpha{
			PodGroupTemplateRef: &apis.PodGroupTemplateRef{Workload: apis.WorkloadTemplateRef{
				WorkloadName: j.GangName(), PodGroupTemplateName: gangTemplate,
			}},
			SchedulingPolicy: policy, SchedulingConstraints: constraints,
		}),
	}
}

// kubernetesBeta is the gang of 1.37.
func kubernetesBeta(j *job.Job) []runtime.Object {
	policy, constraints, priority := gangPolicy(j), gangConstraints(j), j.Spec.PodPriority()
	return []runtime.Object{
		apis.New(apis.WorkloadBetaKind, meta(j, j.GangName(), componentGang), apis.WorkloadSpec{
			PodGroupTemplates: []apis.PodGroupTemplate{{
				Name: gangTemplate, SchedulingPolicy: policy, SchedulingConstraints: constraints,
				PriorityClassName: priority,
			}},
		}),
		apis.New(apis.PodGroupBetaKind, meta(j, j.GangName(), componentGang), apis.PodGroupBeta{
			WorkloadRef:      &apis.WorkloadRef{WorkloadName: j.GangName(), TemplateName: gangTemplate},
			SchedulingPolicy: policy, SchedulingConstraints: constraints,
			PriorityClassName: priority,
		}),
	}
}

func gangPolicy(j *job.Job) apis.GroupPolicy {
	return apis.GroupPolicy{Gang: &apis.GangPolicy{MinCount: gangSum(j, roles(j))}}
}
