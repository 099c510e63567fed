package apis

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DLRoverJobKind is DLRover's one API version (intelligent-machine-learning/dlrover v0.6.1,
// go/elasticjob/api/v1alpha1).
var DLRoverJobKind = schema.GroupVersionKind{Group: "elastic.iml.github.io", Version: "v1alpha1", Kind: "ElasticJob"}

// DLRoverJob is a job of DLRover.
type DLRoverJob = Custom[DLRoverJobSpec]

// DLRoverJobSpec is ElasticJob.spec.
type DLRoverJobSpec struct {
	DistributionStrategy string                        `json:"distributionStrategy,omitempty"`
	OptimizeMode         string                        `json:"optimizeMode,omitempty"`
	BrainService         string                        `json:"brainService,omitempty"`
	Suspend              *bool                         `json:"suspend,omitempty"`
	ReplicaSpecs         map[string]DLRoverReplicaSpec `json:"replicaSpecs"`
}

// DLRoverReplicaSpec is one role. The master sets Priority on the pods as their priority class, in place of the
// template's.
type DLRoverReplicaSpec struct {
	Replicas     *int32                 `json:"replicas,omitempty"`
	RestartCount *int32                 `json:"restartCount,omitempty"`
	Priority     string                 `json:"priority,omitempty"`
	Template     corev1.PodTemplateSpec `json:"template"`
}

// DLRoverMaster is the role of the master, which the controller makes without being asked.
const DLRoverMaster = "dlrover-master"

// podSets are the pods of the roles, and the master with the job's own labels, as the controller makes it where the
// job has no template of one.
func (s *DLRoverJobSpec) podSets(m *metav1.ObjectMeta) []PodSet {
	master := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: m.Labels, Annotations: m.Annotations}}
	size := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1"),
		corev1.ResourceMemory:           resource.MustParse("2Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("2Gi"),
	}
	amounts := corev1.ResourceRequirements{Requests: size, Limits: size}
	master.Spec.Containers = []corev1.Container{{Name: "main", Resources: amounts}}
	all := []PodSet{{
		Path: "metadata", Template: &master, Replicas: 1, Name: DLRoverMasterService(m.Name), Numbered: true,
		Foreign: true,
	}}
	if s.BrainService != "" {
		all[0].Dials = []Dial{{"spec.brainService", s.BrainService}}
	}
	for _, role := range slices.Sorted(maps.Keys(s.ReplicaSpecs)) {
		if role == DLRoverMaster {
			continue
		}
		r := s.ReplicaSpecs[role]
		all = append(all, PodSet{
			Path:     fmt.Sprintf("spec.replicaSpecs.%s.template", role),
			Template: &r.Template,
			Replicas: orOne(r.Replicas),
			Name:     fmt.Sprintf("%s-edljob-%s", m.Name, role),
			Numbered: true,
		})
	}
	return all
}

// DLRoverMasterService is the name of the Service of a job's master.
func DLRoverMasterService(job string) string { return "elasticjob-" + job + "-" + DLRoverMaster }

func (s *DLRoverJobSpec) services(m *metav1.ObjectMeta) []ServiceSet {
	workers := s.podSets(m)[1:]
	return append(oneService(DLRoverMasterService(m.Name)), numbered(workers)...)
}

var dlrover = Controller{
	Name:  "DLRover's ElasticJob controller",
	Since: "v0.5.0",
	Note: "the definition in its manifests/bases loses suspension and the pods' annotations, so that of crd/bases " +
		"is put in its place; its manager has no leader-elect-... options and ends at them, so they are taken out; " +
		"the image is that of its main branch",
	Install: []string{
		"git clone --branch v0.6.1 https://github.com/intelligent-machine-learning/dlrover.git && cd " +
			"dlrover/go/elasticjob/config && sed -i '/leader-elect-/d' manifests/bases/deployment.yaml && " +
			"kubectl apply --server-side -k manifests/bases && kubectl apply --server-side -f " +
			"crd/bases/elastic.iml.github.io_elasticjobs.yaml",
	},
	Check:  "kubectl get pods -n dlrover",
	Serves: "`framework: dlrover`",
}

// dlroverHealth asks the phase, which follows that of the master (go/elasticjob/pkg/controllers).
var dlroverHealth = Health{
	Suspend: "spec.suspend",
	Phases:  []string{"status.phase"},
	Failed:  []string{"Failed"},
	Done:    []string{"Succeeded"},
	Running: []string{"Running"},
}
