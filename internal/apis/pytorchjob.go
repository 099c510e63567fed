package apis

import "k8s.io/apimachinery/pkg/runtime/schema"

// PyTorchJobKind is the one version of PyTorchJob (kubeflow/trainer v1.9.4, pkg/apis/kubeflow.org/v1).
var PyTorchJobKind = schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}

// PyTorchJob is a job of Kubeflow's training operator.
type PyTorchJob = Custom[PyTorchJobSpec]

// PyTorchJobSpec is PyTorchJob.spec.
type PyTorchJobSpec struct {
	RunPolicy           PyTorchRunPolicy               `json:"runPolicy"`
	ElasticPolicy       *PyTorchElasticPolicy          `json:"elasticPolicy,omitempty"`
	PyTorchReplicaSpecs map[string]KubeflowReplicaSpec `json:"pytorchReplicaSpecs"`
	NprocPerNode        string                         `json:"nprocPerNode,omitempty"`
}

// PyTorchRunPolicy is how a job starts and ends.
type PyTorchRunPolicy struct {
	CleanPodPolicy          string                   `json:"cleanPodPolicy,omitempty"`
	TTLSecondsAfterFinished *int32                   `json:"ttlSecondsAfterFinished,omitempty"`
	ActiveDeadlineSeconds   *int64                   `json:"activeDeadlineSeconds,omitempty"`
	BackoffLimit            *int32                   `json:"backoffLimit,omitempty"`
	SchedulingPolicy        *PyTorchSchedulingPolicy `json:"schedulingPolicy,omitempty"`
	Suspend                 *bool                    `json:"suspend,omitempty"`
}

// PyTorchSchedulingPolicy is the gang that an operator started with --gang-scheduler-name makes.
type PyTorchSchedulingPolicy struct {
	MinAvailable           *int32 `json:"minAvailable,omitempty"`
	Queue                  string `json:"queue,omitempty"`
	PriorityClass          string `json:"priorityClass,omitempty"`
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// PyTorchElasticPolicy becomes PET_ variables.
type PyTorchElasticPolicy struct {
	MinReplicas *int32        `json:"minReplicas,omitempty"`
	MaxReplicas *int32        `json:"maxReplicas,omitempty"`
	RDZVBackend string        `json:"rdzvBackend,omitempty"`
	RDZVPort    *int32        `json:"rdzvPort,omitempty"`
	RDZVHost    string        `json:"rdzvHost,omitempty"`
	RDZVID      string        `json:"rdzvId,omitempty"`
	RDZVConf    []PyTorchConf `json:"rdzvConf,omitempty"`
	MaxRestarts *int32        `json:"maxRestarts,omitempty"`
}

// PyTorchConf is one key=value of --rdzv-conf.
type PyTorchConf struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (s *PyTorchJobSpec) podSets(name string) []PodSet {
	return kubeflowPodSets(name, "spec.pytorchReplicaSpecs", s.PyTorchReplicaSpecs)
}

// The operator makes a headless Service for each pod, of the pod's name.
func (s *PyTorchJobSpec) services(name string) []string { return numbered(s.podSets(name)) }
