package apis

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TorchElasticJobKind is the one version of TorchElastic's controller (pytorch/elastic v0.2.2,
// kubernetes/api/v1alpha1/elasticjob_types.go). The fields of kubeflow/common's RunPolicy are in the spec itself.
var TorchElasticJobKind = schema.GroupVersionKind{Group: "elastic.pytorch.org", Version: "v1alpha1", Kind: "ElasticJob"}

// TorchElasticJob is a job of TorchElastic's controller.
type TorchElasticJob = Custom[TorchElasticJobSpec]

// TorchElasticJobSpec is ElasticJob.spec; the one key of ReplicaSpecs that the controller reads is Worker.
type TorchElasticJobSpec struct {
	RdzvEndpoint            string                 `json:"rdzvEndpoint"`
	MinReplicas             *int32                 `json:"minReplicas,omitempty"`
	MaxReplicas             *int32                 `json:"maxReplicas,omitempty"`
	ReplicaSpecs            map[string]ReplicaSpec `json:"replicaSpecs"`
	CleanPodPolicy          string                 `json:"cleanPodPolicy,omitempty"`
	TTLSecondsAfterFinished *int32                 `json:"ttlSecondsAfterFinished,omitempty"`
	ActiveDeadlineSeconds   *int64                 `json:"activeDeadlineSeconds,omitempty"`
	BackoffLimit            *int32                 `json:"backoffLimit,omitempty"`
}

// The controller names a pod and its Service <job>-worker-<index>.
func (s *TorchElasticJobSpec) podSets(m *metav1.ObjectMeta) []PodSet {
	return kubeflowPodSets(m.Name, "spec.replicaSpecs", s.ReplicaSpecs, Dial{"spec.rdzvEndpoint", s.RdzvEndpoint})
}

func (s *TorchElasticJobSpec) services(m *metav1.ObjectMeta) []string {
	return numbered(s.podSets(m))
}

var torchElastic = Controller{
	Name:  "TorchElastic's controller",
	Since: "v0.2.0",
	Note: "its own definition is refused since Kubernetes 1.22 and is left out here, for that " +
		"of tegen's overlays/crds",
	Install: []string{
		"kubectl apply -k overlays/crds",
		"git clone --branch v0.2.2 https://github.com/pytorch/elastic.git && cd elastic/kubernetes/config/default && " +
			"sed -i '/crd/d' kustomization.yaml && kubectl apply -k .",
	},
	Check:  "kubectl get pods -n elastic-job",
	Serves: "`target: elasticjob` of torchelastic",
}

// torchElasticHealth asks the conditions of kubeflow/common's JobStatus. The controller says of no job that it
// succeeded: one that is over goes on being called running (kubernetes/controllers/job.go).
var torchElasticHealth = Health{
	Failed:  []string{"Failed"},
	Done:    []string{"Succeeded"},
	Running: []string{"Running"},
}
