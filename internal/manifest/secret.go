package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FilledSecret says whether an object is a Secret that holds values, and names it.
func FilledSecret(obj runtime.Object) (name string, filled bool) {
	s, ok := obj.(*corev1.Secret)
	if !ok || len(s.Data)+len(s.StringData) == 0 {
		return "", false
	}
	if s.Namespace != "" {
		return s.Namespace + "/" + s.Name, true
	}
	return s.Name, true
}
