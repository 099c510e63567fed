package apis

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PyTorchJobKind is the one version of PyTorchJob (kubeflow/trainer v1.9.4, pkg/apis/kubeflow.org/v1).
var PyTorchJobKind = schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}

// PyTorchJob is a job of Kubeflow's training operator.
type PyTorchJob = Custom[PyTorchJobSpec]

// PyTorchJobSpec is PyTorchJob.spec.
type PyTorchJobSpec struct {
	RunPolicy           RunPolicy              `json:"runPolicy"`
	ElasticPolicy       *PyTorchElasticPolicy  `json:"elasticPolicy,omitempty"`
	PyTorchReplicaSpecs map[string]ReplicaSpec `json:"pytorchReplicaSpecs"`
	NprocPerNode        string                 `json:"nprocPerNode,omitempty"`
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

	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"` // of a HorizontalPodAutoscaler between the two
}

// PyTorchConf is one key=value of --rdzv-conf.
type PyTorchConf struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (s *PyTorchJobSpec) podSets(m *metav1.ObjectMeta) []PodSet {
	var dials []Dial
	if e := s.ElasticPolicy; e != nil && e.RDZVHost != "" {
		dials = []Dial{{"spec.elasticPolicy.rdzvHost", e.RDZVHost}}
	}
	return addPort(kubeflowPodSets(m.Name, "spec.pytorchReplicaSpecs", s.PyTorchReplicaSpecs, dials...),
		corev1.ContainerPort{Name: "pytorchjob-port", ContainerPort: 23456})
}

// The operator makes a headless Service for each pod, of the pod's name.
func (s *PyTorchJobSpec) services(m *metav1.ObjectMeta) []ServiceSet { return numbered(s.podSets(m)) }

var trainingOperator = Controller{
	Name:  "Kubeflow Training Operator",
	Since: "v1.9.4",
	Install: []string{`kubectl apply --server-side -k ` +
		`"github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v1.9.4"`},
	Check:  "kubectl get deployment -n kubeflow training-operator",
	Serves: "`target: pytorchjob`",
}
