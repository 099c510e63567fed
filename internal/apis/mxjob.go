package apis

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MXJobKind is MXJob as the training operator had it until v1.8.1, its last release with this kind (kubeflow/trainer
// v1.8.1, pkg/apis/kubeflow.org/v1/mxnet_types.go).
var MXJobKind = schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "MXJob"}

// MXJob trains with MXNet's parameter servers.
type MXJob = Custom[MXJobSpec]

// MXJobSpec is MXJob.spec; the keys of MXReplicaSpecs are Scheduler, Server and Worker.
type MXJobSpec struct {
	JobMode        string                  `json:"jobMode"`
	RunPolicy      RunPolicy               `json:"runPolicy"`
	MXReplicaSpecs map[string]*ReplicaSpec `json:"mxReplicaSpecs"`
}

// mxRoles are the keys in the order in which people list them.
var mxRoles = []string{"Scheduler", "Server", "Worker"}

// services has one of its own for each pod (pkg/controller.v1/common/service.go).
func (s *MXJobSpec) services(name string) (all []string) {
	for _, set := range s.podSets(name) {
		for i := range set.Replicas {
			all = append(all, fmt.Sprintf("%s%d", set.Prefix, i))
		}
	}
	return all
}

func (s *MXJobSpec) podSets(name string) (all []PodSet) {
	for _, role := range mxRoles {
		spec := s.MXReplicaSpecs[role]
		if spec == nil {
			continue
		}
		all = append(all, PodSet{
			Path:     "spec.mxReplicaSpecs." + role + ".template",
			Template: &spec.Template,
			Replicas: orOne(spec.Replicas),
			Prefix:   name + "-" + strings.ToLower(role) + "-",
		})
	}
	return all
}

// orOne is a number of replicas where leaving it out means one.
func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
