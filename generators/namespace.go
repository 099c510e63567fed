package generators

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema"
)

func namespace(job *schema.Job) []runtime.Object {
	if !job.Spec.CreateNamespace {
		return nil
	}
	// With it would go every claim in it, and the jobs of others.
	m := kept(job, clusterMeta(job, job.Metadata.Namespace, "namespace"))
	if !job.Spec.Patched() { // what an author adds to pods may need more
		m.Labels["pod-security.kubernetes.io/enforce"] = podSecurity(job)
	}
	return []runtime.Object{&corev1.Namespace{ObjectMeta: m}}
}

// podSecurity is the Pod Security Standard that every pod meets. The container of DLRover's master says nothing about
// security, and TorchElastic's controller was built before the pods' field seccompProfile and drops it.
func podSecurity(job *schema.Job) string {
	f := job.Fabric()
	switch {
	case job.Spec.Network.Host, f.LocksMemory(), f != nil && len(f.HostPaths) > 0:
		return "privileged" // baseline forbids the node's network, ports and directories, and IPC_LOCK
	case job.Spec.Security.RunAsUser.Number == nil, job.Spec.Security.RunAsUser.Is(0), !job.Spec.Security.Restricted,
		job.Spec.Target == schema.TargetElasticJob:
		return "baseline"
	}
	return "restricted"
}
