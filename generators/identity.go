package generators

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

// defaultAccount is in every namespace. Bare pods for a reconciler have it where their account has no rights to carry:
// Flux asks the API server about all objects before it applies any, and that refuses a pod without its account.
const defaultAccount = "default"

// serviceAccountName returns the ServiceAccount of the pods that train and fetch, and whether tegen renders it.
func serviceAccountName(j *job.Job) (name string, rendered bool) {
	own := ""
	if j.Spec.GitOps && j.Spec.Target == job.TargetPods && !j.Spec.OwnAccount() {
		return defaultAccount, false
	}
	if id := j.Spec.Identity; id != nil {
		switch {
		case id.ServiceAccount != "":
			return id.ServiceAccount, false
		case id.IRSA != nil:
			own = id.IRSA.ServiceAccount
		case id.PodIdentity != nil:
			own = id.PodIdentity.ServiceAccount
		}
	}
	if own == "" {
		own = j.Metadata.Name
	}
	return own, true
}

func identity(j *job.Job) []runtime.Object {
	name, rendered := serviceAccountName(j)
	if !rendered {
		return nil
	}
	sa := &corev1.ServiceAccount{
		ObjectMeta:                   meta(j, name, "identity"),
		AutomountServiceAccountToken: ptr(false), // training talks to no Kubernetes API; AWS injects a token of its own
	}
	if id := j.Spec.Identity; id != nil && id.IRSA != nil {
		annotate(&sa.ObjectMeta, "eks.amazonaws.com/role-arn", id.IRSA.Role)
	}
	return []runtime.Object{sa}
}
