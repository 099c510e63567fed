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
	m := clusterMeta(job, job.Metadata.Namespace, "namespace")
	level := "restricted" // every pod below meets it,
	if job.Spec.Security.RunAsUser == 0 {
		level = "baseline" // but for one thing
	}
	m.Labels["pod-security.kubernetes.io/enforce"] = level
	return []runtime.Object{&corev1.Namespace{ObjectMeta: m}}
}
