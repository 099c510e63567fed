package podpatch

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// bounded is how long one patch may take. The fuzzer's own machine may be slow and busy.
const bounded = 10 * time.Second

// FuzzPatch: what Validate accepts, Apply merges into every template, and both end soon, whatever the patch holds.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"containers":[{"name":"worker","tty":true,"env":[{"name":"A"}]},{"name":"b","image":"x:1"}]}}`,
		`{"spec":{"containers":[{"name":"worker","resources":{"limits":{"$retainKeys":"1"}}}]}}`,
		`{"spec":{"containers":[{"name":"worker","resources":{"requests":{"$patch":1}}}]}}`,
		`{"spec":{"nodeSelector":{"$patch":"replace"},"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1e-9999999"}}]}}`,
		`{"metadata":{"labels":{"$deleteFromPrimitiveList/a":"b"},"annotations":{"a":"b"},"finalizers":["a"]}}`,
		`{"spec":{"tolerations":[{"key":"a"}],"overhead":{"cpu":"1"},"hostAliases":[{"ip":"10.0.0.1"}]}}`,
		`{"spec":{"initContainers":[{"name":"side","image":"x:1","volumeMounts":[{"mountPath":"/m"}]}]}}`,
		`{"spec":{"topologySpreadConstraints":[{"topologyKey":"t","maxSkew":2000000000}],"schedulingGates":[]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		start := time.Now()
		if len(Validate(patch, "worker", "spec.image", "side")) == 0 {
			for _, template := range []*corev1.PodTemplateSpec{{}, rendered("worker"), furnished()} {
				Apply(*template, patch)
			}
		}
		if took := time.Since(start); took > bounded {
			t.Errorf("%s for %d bytes", took, len(patch))
		}
	})
}

// furnished is a template with a value in each map that a patch may reach.
func furnished() *corev1.PodTemplateSpec {
	t := rendered("worker")
	one := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	t.Labels, t.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
	t.Spec.NodeSelector, t.Spec.Overhead = map[string]string{"a": "b"}, one
	t.Spec.Tolerations = []corev1.Toleration{{Key: "a"}}
	for i := range t.Spec.Containers {
		t.Spec.Containers[i].Resources = corev1.ResourceRequirements{Limits: one, Requests: one}
	}
	return t
}
