package apis

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VCJobKind is Volcano's own Job (volcano-sh/volcano v1.15.1, staging volcano.sh/apis pkg/apis/batch/v1alpha1).
var VCJobKind = schema.GroupVersionKind{Group: "batch.volcano.sh", Version: "v1alpha1", Kind: "Job"}

// VCJob is a gang of pods in tasks.
type VCJob = Custom[VCJobSpec]

// VCJobSpec is Job.spec. Of a job that exists only minAvailable, priorityClassName and the tasks' replicas and
// minAvailable can be changed (pkg/webhooks/admission/jobs/validate/admit_job.go).
type VCJobSpec struct {
	SchedulerName           string              `json:"schedulerName,omitempty"`
	Queue                   string              `json:"queue,omitempty"`
	PriorityClassName       string              `json:"priorityClassName,omitempty"`
	MinAvailable            int32               `json:"minAvailable,omitempty"`
	MinSuccess              *int32              `json:"minSuccess,omitempty"`
	MaxRetry                int32               `json:"maxRetry,omitempty"`
	Policies                []VCPolicy          `json:"policies,omitempty"`
	Plugins                 map[string][]string `json:"plugins,omitempty"`
	NetworkTopology         *VolcanoTopology    `json:"networkTopology,omitempty"`
	TTLSecondsAfterFinished *int32              `json:"ttlSecondsAfterFinished,omitempty"`
	Tasks                   []VCTask            `json:"tasks"`
}

// VCPolicy is the action at an event or, without one, when a pod fails with the exit code.
type VCPolicy struct {
	Event    string   `json:"event,omitempty"`
	Events   []string `json:"events,omitempty"`
	ExitCode *int32   `json:"exitCode,omitempty"`
	Action   string   `json:"action"`
}

// VCTask is pods of one template.
type VCTask struct {
	Name         string `json:"name"`
	Replicas     int32  `json:"replicas"`
	MinAvailable *int32 `json:"minAvailable,omitempty"`
	MaxRetry     int32  `json:"maxRetry,omitempty"` // of containers that the kubelet starts again
	// PartitionPolicy is immutable, and so is the number of replicas that it divides.
	PartitionPolicy *VCPartitionPolicy `json:"partitionPolicy,omitempty"`

	Policies  []VCPolicy   `json:"policies,omitempty"`
	DependsOn *VCDependsOn `json:"dependsOn,omitempty"`

	Template corev1.PodTemplateSpec `json:"template"`
}

// VCPartitionPolicy divides the pods of a task, in the order of their numbers. So many partitions are placed together
// or none.
type VCPartitionPolicy struct {
	TotalPartitions int32            `json:"totalPartitions"`
	PartitionSize   int32            `json:"partitionSize"`
	MinPartitions   int32            `json:"minPartitions,omitempty"`
	NetworkTopology *VolcanoTopology `json:"networkTopology,omitempty"`
}

// VolcanoTopology is the highest tier of HyperNodes that pods may spread over, by its number or its name. Where no
// HyperNode has that name, Volcano 1.15 places them as if nothing were said (translateHighestTierNameToAllowed in
// pkg/scheduler/framework/session.go).
type VolcanoTopology struct {
	Mode               string `json:"mode"` // hard or soft
	HighestTierAllowed *int32 `json:"highestTierAllowed,omitempty"`
	HighestTierName    string `json:"highestTierName,omitempty"`
}

// VCDependsOn are the tasks whose pods must be ready before those of a task are made.
type VCDependsOn struct {
	Name []string `json:"name"`
}

// VCRunAnnotation is what the controller writes on every pod: its PodGroup's name, the job's and its uid
// (pkg/controllers/job/job_controller_util.go).
const VCRunAnnotation = "scheduling.k8s.io/group-name"

// services has the one of the svc plugin.
func (s *VCJobSpec) services(m *metav1.ObjectMeta) []ServiceSet {
	if _, ok := s.Plugins["svc"]; ok {
		return oneService(m.Name)
	}
	return nil
}

func (s *VCJobSpec) podSets(m *metav1.ObjectMeta) (all []PodSet) {
	for i := range s.Tasks {
		t := &s.Tasks[i]
		set := PodSet{
			Path:        fmt.Sprintf("spec.tasks[%d].template", i),
			Template:    &t.Template,
			Replicas:    t.Replicas,
			Name:        fmt.Sprintf("%s-%s", m.Name, t.Name),
			Numbered:    true,
			Annotations: []string{VCRunAnnotation},
			Subdomain:   t.Template.Spec.Subdomain,
		}
		if _, ok := s.Plugins["svc"]; ok && set.Subdomain == "" {
			set.Subdomain = m.Name
		}
		all = append(all, set)
	}
	return all
}

var volcano = Controller{
	Name:  "Volcano",
	Since: "v1.15.1",
	Install: []string{"helm install volcano volcano --repo https://volcano-sh.github.io/helm-charts --version 1.15.1 " +
		"-n volcano-system --create-namespace"},
	Check:  "kubectl get pods -n volcano-system",
	Serves: "`target: vcjob`, `gang: {scheduler: volcano}`",
	Gang:   "volcano",
}

// vcJobHealth asks the phase (pkg/apis/batch/v1alpha1/job.go). A job that somebody aborted keeps its place in the API
// and can be resumed; one that was terminated cannot.
var vcJobHealth = Health{
	Phases:    []string{"status.state.phase"},
	Failed:    []string{"Failed", "Terminated"},
	Done:      []string{"Completed"},
	Suspended: []string{"Aborted"},
	Running:   []string{"Running"},
}
