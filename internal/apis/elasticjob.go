package apis

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TorchElasticJobKind is the one version of TorchElastic's controller (pytorch/elastic v0.2.2,
// kubernetes/api/v1alpha1/elasticjob_types.go).
var TorchElasticJobKind = schema.GroupVersionKind{Group: "elastic.pytorch.org", Version: "v1alpha1", Kind: "ElasticJob"}

// TorchElasticJob is a job of TorchElastic's controller.
type TorchElasticJob = Custom[TorchElasticJobSpec]

// TorchElasticJobSpec is ElasticJob.spec; the one key of ReplicaSpecs that the controller reads is Worker.
type TorchElasticJobSpec struct {
	RdzvEndpoint string                 `json:"rdzvEndpoint"`
	MinReplicas  *int32                 `json:"minReplicas,omitempty"`
	MaxReplicas  *int32                 `json:"maxReplicas,omitempty"`
	ReplicaSpecs map[string]ReplicaSpec `json:"replicaSpecs"`
	RunPolicy    *TorchElasticRunPolicy `json:"RunPolicy,omitempty"`
}

// TorchElasticRunPolicy is what works of kubeflow/common's RunPolicy. The field is called so, with a capital letter:
// its tag in Go has no name, and it is no embedded field, so that its parts are not read in the spec itself, where the
// controller's own definition has them. The controller notes no start, which a deadline would count from, and dies of a
// time to live when a job has failed.
type TorchElasticRunPolicy struct {
	CleanPodPolicy string `json:"cleanPodPolicy,omitempty"`
	BackoffLimit   *int32 `json:"backoffLimit,omitempty"`
}

// The controller names a pod and its Service <job>-worker-<index>.
func (s *TorchElasticJobSpec) podSets(m *metav1.ObjectMeta) []PodSet {
	return kubeflowPodSets(m.Name, "spec.replicaSpecs", s.ReplicaSpecs, Dial{"spec.rdzvEndpoint", s.RdzvEndpoint})
}

func (s *TorchElasticJobSpec) services(m *metav1.ObjectMeta) []ServiceSet {
	return numbered(s.podSets(m))
}

var torchElastic = Controller{
	Name:  "TorchElastic's controller",
	Since: "v0.2.0",
	Note: "its own definition is refused since Kubernetes 1.22, and has no `spec.RunPolicy`; apply that of tegen's " +
		"overlays/crds instead, or `failure.restarts` and `cleanPods` have no effect",
	Install: []string{
		"kubectl apply -k overlays/crds",
		"git clone --branch v0.2.2 https://github.com/pytorch/elastic.git && cd elastic/kubernetes/config/default && " +
			"sed -i '/crd/d' kustomization.yaml && kubectl apply -k .",
	},
	Check:  "kubectl get pods -n elastic-job",
	Serves: "`target: elasticjob` of torchelastic",
}

// torchElasticHealth asks the conditions of kubeflow/common's JobStatus.
var torchElasticHealth = Health{
	Failed:  []string{"Failed"},
	Done:    []string{"Succeeded"},
	Running: []string{"Running"},
}
