package generators

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// SharedRendezvous is a tegen-rendezvous in which the jobs of several namespaces meet. internal/install has checked it.
type SharedRendezvous struct {
	// Job is one whose companion is what runs; of the rest of the job nothing is rendered.
	Job             *job.Job
	Clients         []string // namespaces whose jobs may reach it
	MetricsFrom     []string // namespaces whose pods may read its status
	NamespaceExists bool
	PodMonitor      bool
}

// InstallRendezvous is everything that a shared tegen-rendezvous needs in a cluster. It asks nothing of an API server,
// so that it has neither an account nor a role.
func InstallRendezvous(r *SharedRendezvous) []runtime.Object {
	var out []runtime.Object
	if namespace := r.Job.Metadata.Namespace; !r.NamespaceExists && !BuiltInNamespace(namespace) {
		out = append(out, restrictedNamespace(kept(r.Job, clusterMeta(r.Job, namespace, componentCompanion))))
	}
	out = append(out, companionAt(r.Job, r.host(), true)...)
	out = append(out, companionPolicy(r.Job, r.members(), r.watchers()...))
	if r.PodMonitor {
		out = append(out, podMonitor(meta(r.Job, companionName(r.Job), componentCompanion),
			selector(r.Job, componentCompanion), apis.PodMetricsEndpoint{Port: "status"}))
	}
	return out
}

// host is the name by which pods of every namespace dial it.
func (r *SharedRendezvous) host() string {
	return companionName(r.Job) + "." + r.Job.Metadata.Namespace + ".svc"
}

// Endpoint is what a job names as its external store.
func (r *SharedRendezvous) Endpoint() string {
	return fmt.Sprintf("%s:%d", r.host(), companionPort(r.Job))
}

// members are the pods that tegen renders in the clients' namespaces: any of them may be a worker.
func (r *SharedRendezvous) members() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{
		NamespaceSelector: namespaces(r.Clients),
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
			names.LabelManagedBy: names.ManagedBy,
		}},
	}}
}

// watchers are the pods of the namespaces that read metrics.
func (r *SharedRendezvous) watchers() []networkingv1.NetworkPolicyPeer {
	if len(r.MetricsFrom) == 0 {
		return nil
	}
	return []networkingv1.NetworkPolicyPeer{{NamespaceSelector: namespaces(r.MetricsFrom)}}
}

// namespaces are those of these names, by the label that the API server gives each.
func namespaces(names []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: names,
	}}}
}
