package refs_test

import (
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/internal/refs"
)

// TestStays: what outlives its job keeps what says so, whatever a transformer sets on all objects.
func TestStays(t *testing.T) {
	const sync, prune = "argocd.argoproj.io/sync-options", "kustomize.toolkit.fluxcd.io/prune"
	for added, want := range map[string]string{
		"": "", "team=vision": "",
		sync + "=Validate=false, Delete=false ,Prune=false": "",
		sync + "=ServerSideApply=true":                      sync + "]: Prune=false: it is not there",
		sync + "=Prune=false":                               sync + "]: Delete=false: it is not there",
		sync + "=Prune=false,Delete=false,Force=true":       "Force=true: a reconciler",
		prune + "=enabled":                                  prune + "]: disabled: it is not there",
		"argocd.argoproj.io/hook=PreSync":                   "hook]: PreSync: a reconciler would delete this object",
		"kustomize.toolkit.fluxcd.io/force=enabled":         "force]: enabled: a reconciler would delete this object",
	} {
		annotations := map[string]string{sync: "Prune=false,Delete=false", prune: "disabled"}
		if key, value, ok := strings.Cut(added, "="); ok {
			annotations[key] = value
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: "data", Namespace: "ml", Annotations: annotations,
			Labels: map[string]string{"tegen.dev/data": "resnet"},
		}}
		crd := &unstructured.Unstructured{}
		crd.SetKind("CustomResourceDefinition")
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetName("jobs.example")
		crd.SetLabels(claim.Labels)
		crd.SetAnnotations(annotations)
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "x", Namespace: "ml", Annotations: maps.Clone(annotations),
			Labels: map[string]string{"tegen.dev/job": "resnet"},
		}}
		for _, obj := range []runtime.Object{claim, crd} {
			got := ""
			for _, b := range refs.Check([]runtime.Object{obj, other}) {
				got += b.String() + "\n"
			}
			if (want == "") != (got == "") || !strings.Contains(got, want) || strings.Contains(got, "ConfigMap") {
				t.Errorf("%T with %q: %q, want %q", obj, added, got, want)
			}
		}
	}
	label := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "data", Namespace: "ml",
		Annotations: map[string]string{sync: "Prune=false,Delete=false", prune: "disabled"},
		Labels:      map[string]string{"tegen.dev/data": "resnet", "kustomize.toolkit.fluxcd.io/force": "Enabled"},
	}}
	if got := refs.Check([]runtime.Object{label}); len(got) != 1 {
		t.Errorf("by a label of Flux's: %v", got)
	}
}

// TestMadeInCluster: what a controller made is not in git, so that no reconciler prunes it.
func TestMadeInCluster(t *testing.T) {
	const sync = "argocd.argoproj.io/sync-options"
	for name, c := range map[string]struct {
		uid         types.UID
		owners      []metav1.OwnerReference
		annotations map[string]string
		broken      bool
	}{
		"a claim in a file":                  {broken: true},
		"a StatefulSet's claim in a cluster": {uid: "u", annotations: map[string]string{"pv.example/by": "x"}},
		"an owned object in a cluster":       {"u", []metav1.OwnerReference{{}}, map[string]string{sync: "A=b"}, false},
		"tegen's claim in a cluster":         {"u", nil, map[string]string{sync: "A=b"}, true},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: "data", Namespace: "ml", UID: c.uid, OwnerReferences: c.owners, Annotations: c.annotations,
			Labels: map[string]string{"tegen.dev/data": "resnet"},
		}}
		if got := refs.Check([]runtime.Object{claim}); (len(got) > 0) != c.broken {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestMoved: an installation is only where it was rendered for.
func TestMoved(t *testing.T) {
	deployment := func(namespace, name, as string) runtime.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{"tegen.dev/installed-as": as},
		}}
	}
	binding := func(namespace, manager string) runtime.Object {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{
				Name: "b", Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/managed-by": manager},
			},
			RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "extension-apiserver-authentication-reader"},
		}
	}
	for name, c := range map[string]struct {
		obj   runtime.Object
		moved bool
	}{
		"in place":                     {deployment("a", "b", "a/b"), false},
		"not of tegen's":               {deployment("a", "b", ""), false},
		"another namespace":            {deployment("team", "b", "a/b"), true},
		"a prefix":                     {deployment("a", "x-b", "a/b"), true},
		"the binding":                  {binding("kube-system", "tegen"), false},
		"the binding elsewhere":        {binding("a", "tegen"), true},
		"somebody's binding elsewhere": {binding("a", "helm"), false},
	} {
		got := refs.Check([]runtime.Object{c.obj})
		if (len(got) == 1 && got[0].Why == refs.Moved) != c.moved {
			t.Errorf("%s: %v", name, got)
		}
	}
}
