package diff

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/test/cluster"
)

// makeNamespace makes one in which pods can be.
func (l *lab) makeNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := l.Client().CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ServiceAccount", func() error {
		_, err := l.Client().CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
}

// placed is an object in a namespace; one that is in none has a name of its own, but for what others name.
func (l *lab) placed(t *testing.T, namespace string, object map[string]any) *unstructured.Unstructured {
	t.Helper()
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	gvk := o.GroupVersionKind()
	m, err := l.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case m.Scope.Name() == meta.RESTScopeNameNamespace:
		o.SetNamespace(namespace)
	case o.GetName() != "fixed":
		o.SetName(o.GetName() + "-" + namespace)
	}
	return o
}

func (l *lab) apply(ctx context.Context, o *unstructured.Unstructured) error {
	m, err := l.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	client := l.Dynamic().Resource(m.Resource)
	if o.GetNamespace() == "" {
		_, err = client.Apply(ctx, o.GetName(), o, options)
	} else {
		_, err = client.Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, options)
	}
	return err
}

// must applies what nobody refuses.
func (l *lab) must(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if err := l.apply(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// live is an object as 'kubectl get -o json --show-managed-fields' prints it.
func (l *lab) live(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	is, err := l.on(t, o).Get(t.Context(), o.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return is.Object
}

// provide makes a volume for a claim of a class that nobody serves.
func (l *lab) provide(t *testing.T, claim *unstructured.Unstructured) {
	t.Helper()
	class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	if class == cluster.StorageClass {
		return
	}
	l.must(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": map[string]any{"name": "for-" + claim.GetNamespace()},
		"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "capacity": map[string]any{"storage": "1Gi"},
			"storageClassName": class, "nfs": map[string]any{"server": "nfs.example", "path": "/a"},
			"claimRef": map[string]any{"namespace": claim.GetNamespace(), "name": claim.GetName()},
		},
	}})
}

func (l *lab) awaitBound(t *testing.T, claim *unstructured.Unstructured) {
	t.Helper()
	eventually(t, "the claim to be bound", func() error {
		if phase, _, _ := unstructured.NestedString(l.live(t, claim), "status", "phase"); phase != "Bound" {
			return errors.New("it is " + phase)
		}
		return nil
	})
}
