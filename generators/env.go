package generators

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// authorEnv is an author's variable. Its version is what an API server would add: a reconciler would find the field
// changed after each sync.
func authorEnv(e job.Env) corev1.EnvVar {
	v := corev1.EnvVar{Name: e.Name}
	switch {
	case e.Value != nil:
		v.Value = *e.Value
	case e.Secret != nil:
		v.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: e.Secret.Name}, Key: e.Secret.Key,
			Optional: optional(e.Secret.Optional),
		}}
	case e.ConfigMap != nil:
		v.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: e.ConfigMap.Name}, Key: e.ConfigMap.Key,
			Optional: optional(e.ConfigMap.Optional),
		}}
	case e.Field != "":
		v.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: e.Field}}
	case e.Resource != "":
		v.ValueFrom = &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: e.Resource}}
	}
	return v
}

// authorEnvFrom are the sources of which every key becomes a variable.
func authorEnvFrom(sources []job.EnvFrom) (out []corev1.EnvFromSource) {
	for _, from := range sources {
		e := corev1.EnvFromSource{Prefix: from.Prefix}
		if from.Secret != "" {
			e.SecretRef = &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: from.Secret}, Optional: optional(from.Optional),
			}
		} else {
			e.ConfigMapRef = &corev1.ConfigMapEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: from.ConfigMap},
				Optional:             optional(from.Optional),
			}
		}
		out = append(out, e)
	}
	return out
}

// optional leaves out what an API server takes for false.
func optional(is bool) *bool {
	if !is {
		return nil
	}
	return ptr(true)
}
