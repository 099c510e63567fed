package generators

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/schema/job"
)

func disruption(j *job.Job) []runtime.Object {
	if !j.Spec.Disruption.Budget {
		return nil
	}
	var out []runtime.Object
	for _, r := range roles(j) {
		out = append(out, budget(j, j.Metadata.Name+"-"+r.component, r.component, r.least))
	}
	return out
}

// budget counts pods by number: a Job has no scale that a percentage could be taken of.
func budget(j *job.Job, name, component string, least int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta(j, name, component),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               ptr(intstr.FromInt32(least)),
			Selector:                   &metav1.LabelSelector{MatchLabels: selector(j, component)},
			UnhealthyPodEvictionPolicy: ptr(policyv1.AlwaysAllow), // a pod that does not run protects nothing
		},
	}
}
