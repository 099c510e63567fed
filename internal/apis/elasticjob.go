package apis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TorchElasticJobKind is the one version of TorchElastic's controller (pytorch/elastic v0.2.2,
// kubernetes/api/v1alpha1/elasticjob_types.go). The fields of kubeflow/common's RunPolicy stand in the spec itself.
var TorchElasticJobKind = schema.GroupVersionKind{Group: "elastic.pytorch.org", Version: "v1alpha1", Kind: "ElasticJob"}

// TorchElasticJob is a job of TorchElastic's controller.
type TorchElasticJob = Custom[TorchElasticJobSpec]

// TorchElasticJobSpec is ElasticJob.spec; the one key of ReplicaSpecs that the controller knows is Worker.
type TorchElasticJobSpec struct {
	RdzvEndpoint            string                         `json:"rdzvEndpoint"`
	MinReplicas             *int32                         `json:"minReplicas,omitempty"`
	MaxReplicas             *int32                         `json:"maxReplicas,omitempty"`
	ReplicaSpecs            map[string]KubeflowReplicaSpec `json:"replicaSpecs"`
	CleanPodPolicy          string                         `json:"cleanPodPolicy,omitempty"`
	TTLSecondsAfterFinished *int32                         `json:"ttlSecondsAfterFinished,omitempty"`
	ActiveDeadlineSeconds   *int64                         `json:"activeDeadlineSeconds,omitempty"`
	BackoffLimit            *int32                         `json:"backoffLimit,omitempty"`
}

// KubeflowReplicaSpec is one role of a job of Kubeflow's operators (kubeflow/common, pkg/apis/common/v1 ReplicaSpec).
type KubeflowReplicaSpec struct {
	Replicas      *int32                 `json:"replicas,omitempty"`
	RestartPolicy string                 `json:"restartPolicy,omitempty"`
	Template      corev1.PodTemplateSpec `json:"template"`
}

// The controller names a pod and its Service <job>-worker-<index>.
func (s *TorchElasticJobSpec) podSets(name string) []PodSet {
	return kubeflowPodSets(name, "spec.replicaSpecs", s.ReplicaSpecs)
}

func (s *TorchElasticJobSpec) services(name string) []string {
	return numbered(s.podSets(name))
}

// kubeflowPodSets are the pods of Kubeflow's controllers, <job>-<role in lower case>-<index>.
func kubeflowPodSets(name, path string, roles map[string]KubeflowReplicaSpec) (all []PodSet) {
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		r := roles[role]
		all = append(all, PodSet{
			Path:     fmt.Sprintf("%s.%s.template", path, role),
			Template: &r.Template,
			Replicas: orOne(r.Replicas),
			Prefix:   fmt.Sprintf("%s-%s-", name, strings.ToLower(role)),
		})
	}
	return all
}

// numbered are the names of all pods, where each has a Service of its own name.
func numbered(sets []PodSet) (names []string) {
	for _, set := range sets {
		for i := range set.Replicas {
			names = append(names, fmt.Sprintf("%s%d", set.Prefix, set.First+i))
		}
	}
	return names
}

func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
