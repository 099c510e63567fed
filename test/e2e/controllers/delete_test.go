package controllers

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tegen-dev/tegen/internal/names"
)

// deletion is a command of docs/remove.md: kubectl delete KIND,… [-n NAMESPACE] -l SELECTOR.
type deletion struct {
	kinds    []string
	selector string // of the job resnet in the namespace training
}

// deletions are what docs/remove.md tells people to delete a job with.
func deletions(t *testing.T) (all []deletion) {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/remove.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^kubectl delete ([a-z,.]+) (?:-n training )?-l (\S+)`).
		FindAllStringSubmatch(string(text), -1) {
		all = append(all, deletion{strings.Split(m[1], ","), m[2]})
	}
	if len(all) == 0 {
		t.Fatal("docs/remove.md does not say how a job is deleted")
	}
	return all
}

// ofData says whether a command deletes what outlives jobs.
func (d *deletion) ofData() bool { return strings.HasPrefix(d.selector, names.LabelData+"=") }

// remove deletes the bundle's jobs as docs/remove.md says, and then their data. The jobs' commands leave the data as it
// was. It waits for what goes last, and for what is in no namespace; checkNothingLeft sees the rest.
func (w *world) remove(t *testing.T, b *bundle, c *counts) {
	t.Helper()
	before := w.dataOf(t, b)
	c.count("objects deleted", w.delete(t, b, false))
	eventually(t, "the jobs of "+b.namespace+" to go", func() error {
		if pods := w.list(t, "v1", "Pod", b.namespace, ""); len(pods) > 0 {
			return fmt.Errorf("%d pods are there, such as %s", len(pods), pods[0].GetName())
		}
		return w.nothingOf(t, b, names.LabelJob)
	})
	if diff := cmp.Diff(before, w.dataOf(t, b)); diff != "" {
		t.Errorf("deleting the jobs of %s has changed their data (-before +after):\n%s", b.namespace, diff)
	}
	c.count("claims, volumes and classes that stayed", len(before))
	if data := w.delete(t, b, true); data != len(before) {
		t.Errorf("the page's commands find %d objects of data, of %d in %s", data, len(before), b.namespace)
	}
	eventually(t, "the data of "+b.namespace+" to go", func() error { return w.nothingOf(t, b, names.LabelData) })
}

// delete runs those of the page's commands that delete jobs, or those for their data.
func (w *world) delete(t *testing.T, b *bundle, data bool) (deleted int) {
	t.Helper()
	for _, j := range b.jobs {
		words := strings.NewReplacer("=resnet", "="+j.Name, "=training", "="+b.namespace)
		for _, d := range deletions(t) {
			for _, kind := range d.kinds {
				if d.ofData() == data {
					deleted += w.deleteAll(t, kind, b.namespace, words.Replace(d.selector))
				}
			}
		}
		// The kinds of Kubernetes' own gangs are not in every release, nor in the page's command.
		for _, o := range j.Objects {
			if !data && strings.HasPrefix(o.APIVersion, "scheduling.k8s.io/") {
				deleted += w.deleteAll(t, strings.ToLower(o.Kind), b.namespace, j.Selector)
			}
		}
	}
	return deleted
}

// dataOf are the objects of the bundle that outlive its jobs, each with its identity, and whether it is going. A
// Namespace stays in any case: others may live there.
func (w *world) dataOf(t *testing.T, b *bundle) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, obj := range b.objects {
		if _, data := obj.GetLabels()[names.LabelData]; !data || obj.GetKind() == "Namespace" {
			continue
		}
		is, err := w.on(obj).Get(t.Context(), obj.GetName(), metav1.GetOptions{})
		switch {
		case err != nil:
			t.Errorf("looking for %s %s: %v", obj.GetKind(), obj.GetName(), err)
		case is.GetDeletionTimestamp() != nil:
			found[obj.GetKind()+"/"+obj.GetName()] = "is going"
		default:
			found[obj.GetKind()+"/"+obj.GetName()] = string(is.GetUID())
		}
	}
	return found
}

// checkNothingLeft lists every kind that the cluster has, but for events, which say what was: in the namespaces of
// deleted jobs is what was there before them, and nothing else.
func (w *world) checkNothingLeft(t *testing.T, c *counts) {
	t.Helper()
	defer clear(w.outlive)
	if t.Failed() {
		return // a test that ended early has deleted nothing
	}
	for _, stays := range w.outlive {
		slices.Sort(stays)
	}
	kinds := 0
	eventually(t, "nothing to be left of any job", func() error {
		found := map[string][]string{}
		kinds = 0
		for gvk, r := range w.resources {
			if !r.Namespaced || r.Kind == "Event" || r.Version != w.versions[gvk.GroupKind()] ||
				!slices.Contains(r.Verbs, "list") {
				continue
			}
			kinds++
			for _, obj := range w.list(t, gvk.GroupVersion().String(), gvk.Kind, "", "") {
				if namespace := obj.GetNamespace(); w.outlive[namespace] != nil {
					found[namespace] = append(found[namespace], gvk.Kind+"/"+obj.GetName())
				}
			}
		}
		for _, names := range found {
			slices.Sort(names)
		}
		if diff := cmp.Diff(w.outlive, found); diff != "" {
			return fmt.Errorf("(-before +after):\n%s", diff)
		}
		return nil
	})
	c.count("namespaces with nothing left", len(w.outlive))
	c.count("kinds", kinds)
}

// nothingOf is an error that names an object with a label that is still there, of those that were rendered. A Namespace
// stays.
func (w *world) nothingOf(t *testing.T, b *bundle, label string) error {
	for _, obj := range b.objects {
		on := w.on(obj)
		if _, of := obj.GetLabels()[label]; on == nil || !of || obj.GetKind() == "Namespace" {
			continue
		}
		switch _, err := on.Get(t.Context(), obj.GetName(), metav1.GetOptions{}); {
		case err == nil:
			return fmt.Errorf("%s %s is there", obj.GetKind(), obj.GetName())
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("looking for %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// deleteAll deletes one kind, in kubectl's words, by label, without waiting, and says how many.
func (w *world) deleteAll(t *testing.T, kind, namespace, selector string) (deleted int) {
	t.Helper()
	of := &unstructured.Unstructured{}
	for gvk := range w.resources {
		if strings.EqualFold(gvk.Kind, kind) && w.versions[gvk.GroupKind()] == gvk.Version &&
			scheme.Scheme.IsGroupRegistered(gvk.Group) {
			of.SetGroupVersionKind(gvk)
		}
	}
	if of.GetKind() == "" {
		t.Fatalf("the cluster has no %s", kind)
	}
	for _, obj := range w.list(t, of.GetAPIVersion(), of.GetKind(), namespace, selector) {
		err := w.on(obj).Delete(t.Context(), obj.GetName(),
			metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("deleting %s %s: %v", kind, obj.GetName(), err)
		}
		deleted++
	}
	return deleted
}
