package generators

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

func namespace(j *job.Job) []runtime.Object {
	if !j.Spec.CreateNamespace {
		return nil
	}
	// With it would go every claim in it, and the jobs of others.
	m := kept(j, clusterMeta(j, j.Metadata.Namespace, "namespace"))
	// No level if a podTemplate may need more than what is known here.
	if level := j.EnforcedPodSecurity(); level != "" {
		m.Labels[podSecurityLabel] = level
	}
	return []runtime.Object{&corev1.Namespace{ObjectMeta: m}}
}

// podSecurityLabel sets the Pod Security Standard that the pods of a namespace must meet.
const podSecurityLabel = "pod-security.kubernetes.io/enforce"
