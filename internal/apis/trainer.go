package apis

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kubeflow Trainer's one API version (kubeflow/trainer v2.3.0, pkg/apis/trainer/v1alpha1). A TrainJob names what runs
// on which TrainingRuntime; the runtime has the pods' template.
var (
	TrainJobKind        = schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"}
	TrainingRuntimeKind = schema.GroupVersionKind{
		Group: "trainer.kubeflow.org", Version: "v1alpha1",
		Kind: "TrainingRuntime",
	}
)

// TrainJob is a run of a TrainingRuntime.
type TrainJob = Custom[TrainJobSpec]

// TrainJobSpec is TrainJob.spec.
type TrainJobSpec struct {
	RuntimeRef            TrainRuntimeRef `json:"runtimeRef"`
	Trainer               *Trainer        `json:"trainer,omitempty"`
	Suspend               *bool           `json:"suspend,omitempty"`
	ManagedBy             *string         `json:"managedBy,omitempty"`
	ActiveDeadlineSeconds *int64          `json:"activeDeadlineSeconds,omitempty"`
}

// TrainRuntimeRef names a runtime; the API's own default kind is that of the whole cluster's.
type TrainRuntimeRef struct {
	APIGroup string `json:"apiGroup,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Name     string `json:"name"`
}

// Trainer overrides the runtime's fields of the training pods. Without one the controller sets none of torchrun's
// variables (pkg/runtime/framework/plugins/torch/torch.go).
type Trainer struct {
	NumNodes *int32 `json:"numNodes,omitempty"`
	// NumProcPerNode is a number; earlier releases take auto, cpu and gpu too.
	NumProcPerNode *intstr.IntOrString `json:"numProcPerNode,omitempty"`
}

// TrainingRuntime is a template of TrainJobs.
type TrainingRuntime = Custom[TrainingRuntimeSpec]

// TrainingRuntimeSpec is TrainingRuntime.spec.
type TrainingRuntimeSpec struct {
	MLPolicy       *MLPolicy       `json:"mlPolicy,omitempty"`
	PodGroupPolicy *PodGroupPolicy `json:"podGroupPolicy,omitempty"`
	Template       JobSetTemplate  `json:"template"`
}

// MLPolicy selects the framework whose variables the controller sets.
type MLPolicy struct {
	NumNodes *int32       `json:"numNodes,omitempty"`
	Torch    *TorchPolicy `json:"torch,omitempty"`
}

// TorchPolicy has nothing that tegen sets: that it is there is what counts.
type TorchPolicy struct{}

// PodGroupPolicy lets the controller make a PodGroup of all pods, named after the TrainJob.
type PodGroupPolicy struct {
	Coscheduling *CoschedulingPolicy `json:"coscheduling,omitempty"`
	Volcano      *VolcanoPolicy      `json:"volcano,omitempty"`
}

// CoschedulingPolicy is a PodGroup of scheduler-plugins.
type CoschedulingPolicy struct {
	ScheduleTimeoutSeconds int32 `json:"scheduleTimeoutSeconds"`
}

// VolcanoPolicy is a PodGroup of Volcano, whose queue is an annotation of the JobSet. The controller reads the number
// of the tier, and fails where there is none (pkg/runtime/framework/plugins/volcano/volcano.go).
type VolcanoPolicy struct {
	NetworkTopology *VolcanoTopology `json:"networkTopology,omitempty"`
}

// JobSetTemplate is the JobSet that the controller makes, named after the TrainJob.
type JobSetTemplate struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     JobSetSpec        `json:"spec"`
}

func (s *TrainingRuntimeSpec) services(m *metav1.ObjectMeta) []ServiceSet {
	return s.Template.Spec.services(m)
}

func (s *TrainingRuntimeSpec) excess() Excess {
	e := s.Template.Spec.excess()
	if e.Path != "" {
		e.Path = "spec.template." + e.Path
	}
	return e
}

// podSets are those of the TrainJob that has the runtime's own name, as tegen renders them.
func (s *TrainingRuntimeSpec) podSets(m *metav1.ObjectMeta) []PodSet {
	all := s.Template.Spec.podSets(m)
	for i := range all {
		all[i].Path = "spec.template." + all[i].Path
		all[i].Owner = TrainJobKind.Kind + "/" + m.Name
		if s.MLPolicy != nil && s.MLPolicy.Torch != nil { // PET_MASTER_PORT
			all[i].Ports = []corev1.ContainerPort{{ContainerPort: 29500}}
		}
		if s.MLPolicy != nil && s.MLPolicy.NumNodes != nil {
			all[i].Replicas, all[i].Completions = *s.MLPolicy.NumNodes, *s.MLPolicy.NumNodes
		}
	}
	return all
}

var trainer = Controller{
	Name:  "Kubeflow Trainer",
	Since: "v2.3.0",
	Install: []string{`kubectl apply --server-side -k ` +
		`"https://github.com/kubeflow/trainer.git/manifests/overlays/manager?ref=v2.3.0"`},
	Check:  "kubectl get pods -n kubeflow-system",
	Serves: "`target: trainjob`, which brings its runtime along",
}

// trainJobHealth asks the conditions of TrainJob (pkg/apis/trainer/v1alpha1/trainjob_types.go), none of which says that
// pods run.
var trainJobHealth = Health{
	Suspend: "spec.suspend",
	Failed:  []string{"Failed"},
	Done:    []string{"Complete"},
	Jobs:    "status.jobsStatus",
}
