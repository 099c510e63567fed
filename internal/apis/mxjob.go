package apis

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MXJobKind is MXJob as the training operator had it until v1.8.1, its last release with this kind (kubeflow/trainer
// v1.8.1, pkg/apis/kubeflow.org/v1/mxnet_types.go).
var MXJobKind = schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "MXJob"}

// MXJob trains with MXNet's parameter servers.
type MXJob = Custom[MXJobSpec]

// MXJobSpec is MXJob.spec; the keys of MXReplicaSpecs are Scheduler, Server and Worker.
type MXJobSpec struct {
	JobMode        string                 `json:"jobMode"`
	RunPolicy      RunPolicy              `json:"runPolicy"`
	MXReplicaSpecs map[string]ReplicaSpec `json:"mxReplicaSpecs"`
}

// The controller makes a headless Service for each pod, of the pod's name (pkg/controller.v1/common/service.go).
func (s *MXJobSpec) services(m *metav1.ObjectMeta) []ServiceSet { return numbered(s.podSets(m)) }

func (s *MXJobSpec) podSets(m *metav1.ObjectMeta) []PodSet {
	return addPort(kubeflowPodSets(m.Name, "spec.mxReplicaSpecs", s.MXReplicaSpecs),
		corev1.ContainerPort{Name: "mxjob-port", ContainerPort: 9091})
}

var trainingOperatorMXJob = Controller{
	Name:  "Kubeflow Training Operator with MXJob",
	Since: "v1.8.1",
	Note:  "it is the last release that has MXJob",
	Install: []string{`kubectl apply --server-side -k ` +
		`"github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v1.8.1"`},
	Check:  "kubectl get deployment -n kubeflow training-operator",
	Serves: "`target: mxjob`",
}
