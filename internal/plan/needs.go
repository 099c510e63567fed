package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// roleKey is the annotation by which EKS gives a ServiceAccount an IAM role (IRSA).
const roleKey = "eks.amazonaws.com/role-arn"

// plugins are who offers resources of nodes, where that is known.
var plugins = map[string]string{
	"nvidia.com/gpu":        "NVIDIA's device plugin",
	"vpc.amazonaws.com/efa": "the EFA device plugin",
	"amd.com/gpu":           "AMD's device plugin",
	"aws.amazon.com/neuron": "the Neuron device plugin",
	"google.com/tpu":        "GKE's nodes of TPUs",
}

// need lists what no object names and the job does not run without: its Namespace, what a cloud must have granted, and
// who offers the devices of its nodes.
func (j *Job) need(tj *job.Job, objects []runtime.Object) {
	made := false
	for _, obj := range objects {
		switch o := obj.(type) {
		case *corev1.Namespace:
			made = made || o.Name == j.Namespace
		case *corev1.ServiceAccount:
			if role := o.Annotations[roleKey]; role != "" {
				j.Needs = append(j.Needs, fmt.Sprintf("IAM role %s, which trusts system:serviceaccount:%s:%s", role,
					o.Namespace, o.Name))
			}
			if id := tj.Spec.Identity; id != nil && id.PodIdentity != nil && o.Labels[names.LabelJob] == j.Name {
				j.Needs = append(j.Needs, fmt.Sprintf("EKS Pod Identity association of ServiceAccount %s in %s", o.Name,
					o.Namespace))
			}
		}
	}
	if !made && j.Namespace != corev1.NamespaceDefault {
		j.Needs = append(j.Needs, "Namespace/"+j.Namespace)
	}
	devices := map[string]bool{}
	for _, s := range j.PodSets {
		for name := range s.Each {
			if domain, _, ok := strings.Cut(string(name), "/"); ok && domain != "kubernetes.io" {
				devices[string(name)] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		by := plugins[name]
		if by == "" {
			by = "a device plugin"
		}
		j.Needs = append(j.Needs, fmt.Sprintf("nodes with %s, of %s", name, by))
	}
	slices.Sort(j.Needs)
}
