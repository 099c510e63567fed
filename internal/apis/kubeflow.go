package apis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The custom resources of Kubeflow's training operators share these types (kubeflow/trainer v1.9.4,
// pkg/apis/kubeflow.org/v1/common_types.go; kubeflow/mpi-operator v0.8.0, pkg/apis/kubeflow/v2beta1/types.go).

// RunPolicy is how a job runs and what remains of it.
type RunPolicy struct {
	// None, Running or All: which pods are deleted when it is over
	CleanPodPolicy          string            `json:"cleanPodPolicy,omitempty"`
	TTLSecondsAfterFinished *int32            `json:"ttlSecondsAfterFinished,omitempty"`
	ActiveDeadlineSeconds   *int64            `json:"activeDeadlineSeconds,omitempty"`
	BackoffLimit            *int32            `json:"backoffLimit,omitempty"`
	Suspend                 *bool             `json:"suspend,omitempty"`
	ManagedBy               *string           `json:"managedBy,omitempty"`
	SchedulingPolicy        *SchedulingPolicy `json:"schedulingPolicy,omitempty"`
}

// SchedulingPolicy is read where the operator was started with a gang scheduler.
type SchedulingPolicy struct {
	MinAvailable           *int32 `json:"minAvailable,omitempty"`
	Queue                  string `json:"queue,omitempty"`
	PriorityClass          string `json:"priorityClass,omitempty"`
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
	// what the PodGroup asks for; the operator adds up the pods' requests where nothing is said
	MinResources corev1.ResourceList `json:"minResources,omitempty"`
}

// ReplicaSpec is the pods of one role.
type ReplicaSpec struct {
	Replicas *int32 `json:"replicas,omitempty"`
	// Always, OnFailure, Never or ExitCode; the template's own is overwritten
	RestartPolicy string                 `json:"restartPolicy,omitempty"`
	Template      corev1.PodTemplateSpec `json:"template"`
}

// kubeflowPodSets are the pods of Kubeflow's controllers, <job>-<role in lower case>-<index>.
func kubeflowPodSets(name, path string, roles map[string]ReplicaSpec, dials ...Dial) (all []PodSet) {
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		r := roles[role]
		all = append(all, PodSet{
			Path:     fmt.Sprintf("%s.%s.template", path, role),
			Template: &r.Template,
			Replicas: orOne(r.Replicas),
			Name:     fmt.Sprintf("%s-%s", name, strings.ToLower(role)),
			Numbered: true,
			Dials:    dials,
		})
	}
	return all
}

// addPort is the port of that name, which the training operator adds to pods that have none.
func addPort(sets []PodSet, port corev1.ContainerPort) []PodSet {
	named := func(p corev1.ContainerPort) bool { return p.Name == port.Name }
	for i := range sets {
		if !slices.ContainsFunc(sets[i].Template.Spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, named)
		}) {
			sets[i].Ports = []corev1.ContainerPort{port}
		}
	}
	return sets
}

// kubeflowHealth asks the conditions of JobStatus, which all of Kubeflow's operators share.
var kubeflowHealth = Health{
	Suspend: "spec.runPolicy.suspend",
	Failed:  []string{"Failed"},
	Done:    []string{"Succeeded"},
	Running: []string{"Running"},
}
