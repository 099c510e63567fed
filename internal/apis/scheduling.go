package apis

import "k8s.io/apimachinery/pkg/runtime/schema"

// The groups of pods that gang schedulers read. Kubernetes' own changes with each minor release (KEP-4671).
var (
	// CoschedulingPodGroupKind is of kubernetes-sigs/scheduler-plugins v0.34.7, apis/scheduling/v1alpha1.
	CoschedulingPodGroupKind = schema.GroupVersionKind{
		Group: "scheduling.x-k8s.io", Version: "v1alpha1",
		Kind: "PodGroup",
	}
	// VolcanoPodGroupKind is of volcano-sh/apis v1.15, pkg/apis/scheduling/v1beta1.
	VolcanoPodGroupKind = schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}

	// Of Kubernetes 1.36, k8s.io/api/scheduling/v1alpha2.
	WorkloadAlphaKind = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1alpha2", Kind: "Workload"}
	PodGroupAlphaKind = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1alpha2", Kind: "PodGroup"}
	// Of Kubernetes 1.37, k8s.io/api/scheduling/v1beta1.
	WorkloadBetaKind = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1beta1", Kind: "Workload"}
	PodGroupBetaKind = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1beta1", Kind: "PodGroup"}
)

// CoschedulingPodGroup is the spec of the coscheduling plugin's PodGroup.
type CoschedulingPodGroup struct {
	MinMember              int32  `json:"minMember"`
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// VolcanoPodGroup is the spec of Volcano's PodGroup. Its least of each task is counted only where the sum of them is
// not above that of all (CheckTaskReady in pkg/scheduler/api/job_info.go).
type VolcanoPodGroup struct {
	MinMember         int32            `json:"minMember"`
	MinTaskMember     map[string]int32 `json:"minTaskMember,omitempty"` // by the pods' annotation volcano.sh/task-spec
	Queue             string           `json:"queue,omitempty"`
	PriorityClassName string           `json:"priorityClassName,omitempty"`
	NetworkTopology   *VolcanoTopology `json:"networkTopology,omitempty"`
}

// WorkloadSpec is the spec of Kubernetes' own Workload: the same fields in 1.36 and 1.37.
type WorkloadSpec struct {
	PodGroupTemplates []PodGroupTemplate `json:"podGroupTemplates"`
}

// PodGroupTemplate is what PodGroups of a Workload are like.
type PodGroupTemplate struct {
	Name                  string            `json:"name"`
	SchedulingPolicy      GroupPolicy       `json:"schedulingPolicy"`
	SchedulingConstraints *GroupConstraints `json:"schedulingConstraints,omitempty"`
	PriorityClassName     string            `json:"priorityClassName,omitempty"`
}

// GroupPolicy is how the pods of a group are placed.
type GroupPolicy struct {
	Gang *GangPolicy `json:"gang,omitempty"`
}

// GangPolicy places so many pods together or none.
type GangPolicy struct {
	MinCount int32 `json:"minCount"`
}

// GroupConstraints hold all pods of a group in one domain. Without the feature gate TopologyAwareWorkloadScheduling the
// API server refuses them.
type GroupConstraints struct {
	Topology []TopologyConstraint `json:"topology"`
}

// TopologyConstraint is the key of the nodes' label whose values are the domains.
type TopologyConstraint struct {
	Key string `json:"key"`
}

// PodGroupAlpha is the spec of a PodGroup of 1.36.
type PodGroupAlpha struct {
	PodGroupTemplateRef *PodGroupTemplateRef `json:"podGroupTemplateRef,omitempty"`
	SchedulingPolicy    GroupPolicy          `json:"schedulingPolicy"`

	SchedulingConstraints *GroupConstraints `json:"schedulingConstraints,omitempty"`
}

// PodGroupTemplateRef is what a PodGroup was made of.
type PodGroupTemplateRef struct {
	Workload WorkloadTemplateRef `json:"workload"`
}

// WorkloadTemplateRef is a template of a Workload.
type WorkloadTemplateRef struct {
	WorkloadName         string `json:"workloadName"`
	PodGroupTemplateName string `json:"podGroupTemplateName"`
}

// PodGroupBeta is the spec of a PodGroup of 1.37.
type PodGroupBeta struct {
	WorkloadRef           *WorkloadRef      `json:"workloadRef,omitempty"`
	SchedulingPolicy      GroupPolicy       `json:"schedulingPolicy"`
	SchedulingConstraints *GroupConstraints `json:"schedulingConstraints,omitempty"`
	PriorityClassName     string            `json:"priorityClassName,omitempty"`
}

// WorkloadRef is what a PodGroup was made of.
type WorkloadRef struct {
	WorkloadName string `json:"workloadName"`
	TemplateName string `json:"templateName"`
}

var schedulerPlugins = Controller{
	Name:  "scheduler-plugins, as a second scheduler",
	Since: "v0.34.7",
	Install: []string{"helm install scheduler-plugins scheduler-plugins --repo " +
		"https://scheduler-plugins.sigs.k8s.io --version 0.34.7"},
	Check:  "kubectl get pods -A -l component=scheduler",
	Serves: "`gang: {scheduler: coscheduling}`",
	Gang:   "coscheduling",
}

// podGroupHealth asks the phase, of which Volcano's PodGroup cannot fail.
var podGroupHealth = Health{
	Phases:  []string{"status.phase"},
	Failed:  []string{"Failed"},
	Passive: true,
}

var (
	noState         = Health{None: "no controller writes a status of it"}
	placedElsewhere = Health{None: "its conditions are those of the pods that it places"}
)
