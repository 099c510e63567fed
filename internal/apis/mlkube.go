package apis

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MxJobKind is MxJob's one version in one of the groups that it has had: mlkube.io until October 2017 and
// mxnet.mlkube.io since (deepinsight/mxnet-operator, branch 1.7, pkg/spec/mx_job.go).
func MxJobKind(group string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1beta1", Kind: "MxJob"}
}

// MxJob trains with MXNet, by the first operator for it.
type MxJob = Custom[MxJobSpec]

// MxJobSpec is MxJob.spec. RuntimeId has no tag upstream: its key is the field's name.
type MxJobSpec struct {
	RuntimeID    string          `json:"RuntimeId,omitempty"`
	JobMode      string          `json:"jobMode"`
	ReplicaSpecs []MxReplicaSpec `json:"replicaSpecs"`
}

// MxReplicaSpec is the pods of one role: SCHEDULER, SERVER or WORKER.
type MxReplicaSpec struct {
	MxReplicaType string                  `json:"mxReplicaType"`
	Replicas      *int32                  `json:"replicas,omitempty"`
	PsRootPort    *int32                  `json:"PsRootPort,omitempty"` // of the SCHEDULER
	Template      *corev1.PodTemplateSpec `json:"template"`
}

// podName starts the names of the Jobs of a role, each of one pod (pkg/trainer/replicas.go).
func (s *MxJobSpec) podName(name string, r *MxReplicaSpec) string {
	return fmt.Sprintf("%s-%s-%s", name, strings.ToLower(r.MxReplicaType), s.RuntimeID)
}

// services are that of the scheduler, which the others dial.
func (s *MxJobSpec) services(m *metav1.ObjectMeta) (all []ServiceSet) {
	for i := range s.ReplicaSpecs {
		if r := &s.ReplicaSpecs[i]; r.MxReplicaType == "SCHEDULER" {
			all = append(all, ServiceSet{Name: s.podName(m.Name, r) + "-0"})
		}
	}
	return all
}

func (s *MxJobSpec) podSets(m *metav1.ObjectMeta) (all []PodSet) {
	for i := range s.ReplicaSpecs {
		r := &s.ReplicaSpecs[i]
		if r.Template == nil {
			continue
		}
		set := PodSet{
			Path:     fmt.Sprintf("spec.replicaSpecs[%d].template", i),
			Template: r.Template,
			Replicas: orOne(r.Replicas),
			Name:     s.podName(m.Name, r),
			Numbered: true,
			Random:   1,
			ByJobs:   true,
			JobEach:  true,
			Labels:   jobLabels(""),
		}
		all = append(all, set)
	}
	return all
}

var mxJobOperator = Controller{
	Name: "MXNet's first operator",
	Note: "it is of 2017 and was never released: its image is to be built of github.com/deepinsight/mxnet-operator, " +
		"and starts on no Kubernetes " +
		"since 1.22; target: job does the same without it",
	Install: []string{"kubectl apply -k overlays/crds"},
	Check:   "kubectl get deployment mx-job-operator",
	Serves:  "`target: mxjob-mlkube`",
}

// mxJobHealth asks phase and state: a setup that went wrong has a phase alone, a job that is over has the phase Done
// either way (pkg/spec/mx_job.go, pkg/trainer/training.go).
var mxJobHealth = Health{
	Phases:  []string{"status.state", "status.phase"},
	Failed:  []string{"Failed"},
	Done:    []string{"Succeeded", "Done"},
	Running: []string{"Running"},
}
