package bundles

import (
	"context"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// admitAll tries a pod of every template of the bundle, those of custom
// resources included, in the object's own namespace and beside all that the
// bundle brings along.
func (s *server) admitAll(t *testing.T, b *bundle) {
	t.Helper()
	ctx := t.Context()
	var all []template
	for _, o := range b.objects {
		all = append(all, templates(o)...)
	}
	if len(all) == 0 {
		return
	}
	inParallel(all, func(p template) {
		warnings, err := s.try(ctx, p.of.GetNamespace(), p.pod, p.claims()...)
		if err != nil {
			t.Errorf("%s: a pod of it is refused: %v", p, err)
		}
		for _, w := range warnings {
			t.Errorf("%s: the server warns of a pod of it: %s", p, w)
		}
	})
	s.counts.pods += len(all)
	if b.standard() != restricted {
		s.counts.unrestricted += len(all)
		s.mustRefuse(t, b, all)
	}
}

// tryAlone asks whether bare pods of what overlays render for git are admitted
// before anything of their bundle is there, as Flux asks about all objects of a
// Kustomization.
func (s *server) tryAlone(t *testing.T, b *bundle) {
	t.Helper()
	for _, o := range b.objects {
		if b.overlay == "base" || o.GetKind() != "Pod" {
			continue
		}
		at, err := s.resource(o)
		if err != nil {
			t.Errorf("%s: %v", o, err)
			continue
		}
		if _, err := at.Patch(t.Context(), o.GetName(), types.ApplyYAMLPatchType, o.Text, metav1.PatchOptions{
			FieldManager: "flux", DryRun: []string{metav1.DryRunAll},
		}); err != nil {
			t.Errorf("%s: alone, before the bundle is applied: %v", o, err)
		}
		s.counts.alone++
	}
}

// mustRefuse fails where a stricter standard than the bundle's would do.
func (s *server) mustRefuse(t *testing.T, b *bundle, all []template) {
	t.Helper()
	stricter := restricted
	if b.standard() == privileged {
		stricter = baseline
	}
	for _, p := range all {
		pod := runtime.DeepCopyJSON(p.pod)
		unstructured.RemoveNestedField(pod, "spec", "serviceAccountName") // is not in that namespace
		_, err := s.try(t.Context(), strictNamespace(stricter), pod, p.claims()...)
		if violates(err) {
			return
		}
		if err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	t.Errorf("%s: the standard %s admits every pod: the row of %s in unrestricted is stale", b.file, stricter,
		b.testCase)
}

// violates says whether a pod was refused for the sake of a Pod Security Standard.
func violates(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity")
}

// field is a string of the pod's spec.
func (p template) field(name string) string {
	value, _, _ := unstructured.NestedString(p.pod, "spec", name)
	return value
}

// claims are the volumes that the controller of a StatefulSet gives its pods.
func (p template) claims() []any {
	var volumes []any
	claims, _, _ := unstructured.NestedSlice(p.of.Object, "spec", "volumeClaimTemplates")
	for _, claim := range claims {
		name, _, _ := unstructured.NestedString(claim.(map[string]any), "metadata", "name")
		volumes = append(volumes, map[string]any{
			"name":                  name,
			"persistentVolumeClaim": map[string]any{"claimName": name + "-0"},
		})
	}
	return volumes
}

// try asks the server whether it would take a pod of a template, and returns
// what it warns of. The pod has a name that the server makes.
func (s *server) try(ctx context.Context, namespace string, template map[string]any, volumes ...any) (warnings []string,
	err error,
) {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	maps.Copy(pod.Object, runtime.DeepCopyJSON(template))
	pod.SetKind("Pod")
	pod.SetAPIVersion("v1")
	pod.SetName("")
	pod.SetGenerateName("try-")
	pod.SetNamespace(namespace)
	if len(volumes) > 0 {
		own, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
		if err := unstructured.SetNestedSlice(pod.Object, append(own, volumes...), "spec", "volumes"); err != nil {
			return nil, err
		}
	}
	ctx, collected, cancel := request(ctx)
	defer cancel()
	_, err = s.client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace).Create(ctx, pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return *collected, err
}
