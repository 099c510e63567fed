package controllers

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// deletion is a command of the README's: kubectl delete KIND,… [-n NAMESPACE] -l SELECTOR.
type deletion struct {
	kinds    []string
	selector string // of the job resnet in the namespace training
}

// deletions are what the README tells people to delete a job with.
func deletions(t *testing.T) (all []deletion) {
	t.Helper()
	text, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^kubectl delete ([a-z,.]+) (?:-n training )?-l (\S+)`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, deletion{strings.Split(m[1], ","), m[2]})
	}
	if len(all) == 0 {
		t.Fatal("README.md does not say how a job is deleted")
	}
	return all
}

// remove deletes the bundle's jobs as the README says and waits until the namespace holds what it held before them, by
// uid, and nothing else; nor is anything left in the cluster that carries their labels. It says how much is gone.
func (w *world) remove(t *testing.T, b *bundle, before map[string]string) int {
	t.Helper()
	there, err := w.content(t.Context(), b.namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range b.jobs {
		names := strings.NewReplacer("=resnet", "="+j.Name, "=training", "="+b.namespace)
		for _, d := range deletions(t) {
			for _, kind := range d.kinds {
				w.deleteAll(t, kind, b.namespace, names.Replace(d.selector))
			}
		}
		// The kinds of Kubernetes' own gangs are not in every release, nor in the README's command.
		for _, o := range j.Objects {
			if strings.HasPrefix(o.APIVersion, "scheduling.k8s.io/") {
				w.deleteAll(t, strings.ToLower(o.Kind), b.namespace, j.Selector)
			}
		}
	}
	w.awaitQuiet(t, b, before)
	var after map[string]string
	eventually(t, "nothing to be left of "+b.namespace, func() (err error) {
		if after, err = w.content(t.Context(), b.namespace); err != nil {
			return err
		}
		if diff := cmp.Diff(before, after); diff != "" {
			return fmt.Errorf("(-before +after):\n%s", diff)
		}
		return w.nothingOf(t, b)
	})
	return len(there) - len(after)
}

// awaitQuiet waits for what is gone last, before everything is listed: that costs the API server a lot.
func (w *world) awaitQuiet(t *testing.T, b *bundle, before map[string]string) {
	t.Helper()
	eventually(t, "the pods, endpoints and claims of "+b.namespace+" to go", func() error {
		for _, gvk := range []schema.GroupVersionKind{
			corev1.SchemeGroupVersion.WithKind("Pod"), discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
			corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		} {
			for _, obj := range w.list(t, gvk.GroupVersion().String(), gvk.Kind, b.namespace, "") {
				if before[gvk.Kind+"/"+obj.GetName()] == "" {
					return fmt.Errorf("%s %s is there", gvk.Kind, obj.GetName())
				}
			}
		}
		return nil
	})
}

// nothingOf is an error that names an object without a namespace that is still there, of those that were rendered.
// A Namespace stays: others may live there.
func (w *world) nothingOf(t *testing.T, b *bundle) error {
	for _, obj := range b.objects {
		on := w.on(obj)
		if on == nil || obj.GetNamespace() != "" || obj.GetKind() == "Namespace" {
			continue
		}
		if _, err := on.Get(t.Context(), obj.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s %s is there: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// deleteAll deletes one kind, in kubectl's words, by label, without waiting.
func (w *world) deleteAll(t *testing.T, kind, namespace, selector string) {
	t.Helper()
	of := &unstructured.Unstructured{}
	for gvk := range w.resources {
		if strings.EqualFold(gvk.Kind, kind) && w.versions[gvk.GroupKind()] == gvk.Version && scheme.Scheme.IsGroupRegistered(gvk.Group) {
			of.SetGroupVersionKind(gvk)
		}
	}
	if of.GetKind() == "" {
		t.Fatalf("the cluster has no %s", kind)
	}
	for _, obj := range w.list(t, of.GetAPIVersion(), of.GetKind(), namespace, selector) {
		err := w.on(obj).Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("deleting %s %s: %v", kind, obj.GetName(), err)
		}
	}
}
