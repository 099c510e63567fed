package controllers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/plan"
)

// testSuspend holds a fixture back, starts it by the change of one field, holds it back again and starts it again.
func (w *world) testSuspend(t *testing.T, f *fixture) *counts {
	c := &counts{}
	b := must(f.render("base", f.name+"-suspend", set(true, "spec", "suspend")))(t)
	running := must(f.render("base", b.namespace, set(false, "spec", "suspend")))(t)
	objects := w.served(t, b)
	w.enter(t, b)
	w.apply(t, objects)
	helpers := w.awaitHeld(t, b)
	held := w.state(t, objects)
	c.count("suspended jobs", len(b.jobs))
	c.count("objects beside no training pod", len(held))
	c.count("helper pods beside no training pod", len(helpers))

	fields := w.resume(t, b)
	c.count("fields to start with", fields)
	pods := w.awaitPods(t, b)
	c.count("pods", len(pods))
	started := w.state(t, objects)
	if changed := held.changes(started); len(changed) != fields {
		t.Errorf("%d fields were changed, and these objects: %s", fields, strings.Join(changed, ", "))
	}
	// What git holds once the change is committed is what the cluster has already.
	w.apply(t, w.served(t, running))
	if changed := started.changes(w.state(t, objects)); len(changed) > 0 {
		t.Errorf("the running render changes what was started by one field: %s", strings.Join(changed, ", "))
	}
	if slices.ContainsFunc(b.jobs, func(j *plan.Job) bool { return j.Target == "job" }) {
		w.apply(t, objects)
		again := w.awaitHeld(t, b)
		if diff := cmp.Diff(uids(helpers), uids(again)); diff != "" {
			t.Errorf("helpers before and after (-before +after):\n%s", diff)
		}
		if changed := started.changes(w.state(t, objects)); len(changed) != fields {
			t.Errorf("suspending again changes %s", strings.Join(changed, ", "))
		}
		w.resume(t, b)
		c.count("pods of a second start", len(w.awaitPods(t, b)))
	}
	w.remove(t, b, c)
	t.Log(c)
	return c
}

// awaitHeld waits until the controllers have seen that a bundle is suspended, and none of its training pods is there;
// bare pods are, and no scheduler takes them. The helpers run; they are what is returned.
func (w *world) awaitHeld(t *testing.T, b *bundle) (helpers []member) {
	t.Helper()
	eventually(t, b.namespace+" to be held back", func() error {
		for _, name := range suspended(b) {
			kind, name, _ := strings.Cut(name, "/")
			if kind != "Job" {
				continue
			}
			job, err := w.c.Client().BatchV1().Jobs(b.namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
				return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
			}) {
				return fmt.Errorf("the controller has not seen that Job %s is suspended: %+v", name, job.Status)
			}
		}
		members, err := w.match(t, b, func(s *plan.PodSet) bool { return !s.Suspended || s.Owner == "Pod" })
		if err != nil {
			return err
		}
		helpers = nil
		for _, m := range members {
			if m.set.Suspended {
				if err := gated(&m.Pod); err != nil {
					return err
				}
				continue
			}
			if m.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is %s", m.Name, m.Status.Phase)
			}
			helpers = append(helpers, m)
		}
		return nil
	})
	return helpers
}

// gated says that a pod is not what schedulers leave alone.
func gated(pod *corev1.Pod) error {
	if pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending {
		return fmt.Errorf("%s is on %q and %s although it has a gate", pod.Name, pod.Spec.NodeName, pod.Status.Phase)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			return nil
		}
	}
	return errors.New(pod.Name + " is not known to be gated")
}

// suspended are the objects, as Kind/name, whose one field holds training back.
func suspended(b *bundle) (names []string) {
	for _, j := range b.jobs {
		for _, s := range j.PodSets {
			switch {
			case !s.Suspended:
			case s.Owner == "Pod":
				for _, p := range s.Pods {
					names = append(names, "Pod/"+p.Name)
				}
			case !slices.Contains(names, s.Owner):
				names = append(names, s.Owner)
			}
		}
	}
	return names
}

// resume changes the one field of each object, as docs/suspend.md names it, and says of how many.
func (w *world) resume(t *testing.T, b *bundle) int {
	t.Helper()
	names := suspended(b)
	for _, name := range names {
		kind, name, _ := strings.Cut(name, "/")
		var err error
		if kind == "Pod" {
			_, err = w.c.Client().CoreV1().Pods(b.namespace).Patch(t.Context(), name, types.MergePatchType,
				[]byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
		} else {
			_, err = w.c.Client().BatchV1().Jobs(b.namespace).Patch(t.Context(), name, types.MergePatchType,
				[]byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
		}
		if err != nil {
			t.Fatalf("starting %s/%s: %v", kind, name, err)
		}
	}
	return len(names)
}

// state is what identifies objects and versions of what they should be, by Kind/name.
type state map[string]version

type version struct {
	uid  types.UID
	spec map[string]any // all but metadata and status
}

// state of rendered objects as they are in the cluster. One that is not there fails the test.
func (w *world) state(t *testing.T, objects []*unstructured.Unstructured) state {
	t.Helper()
	s := state{}
	for _, obj := range objects {
		live, err := w.on(obj).Get(t.Context(), obj.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		spec := map[string]any{}
		for key, value := range live.Object {
			if key != "metadata" && key != "status" {
				spec[key] = value
			}
		}
		spec["labels"], spec["annotations"] = live.GetLabels(), withoutRecord(live.GetAnnotations())
		switch live.GetKind() { // where something was placed, or bound meanwhile, is not what it should be
		case "Pod":
			unstructured.RemoveNestedField(spec, "spec", "nodeName")
		case "PersistentVolumeClaim":
			unstructured.RemoveNestedField(spec, "spec", "volumeName")
			spec["annotations"] = withoutBinding(withoutRecord(live.GetAnnotations()))
		}
		s[live.GetKind()+"/"+live.GetName()] = version{live.GetUID(), spec}
	}
	return s
}

// withoutRecord are annotations without the record of the input, which every change of a job changes.
func withoutRecord(annotations map[string]string) map[string]string {
	delete(annotations, names.Input)
	delete(annotations, names.Version)
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// withoutBinding are a claim's annotations without those of the controller that binds it, in its own time.
func withoutBinding(annotations map[string]string) map[string]string {
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "pv.kubernetes.io/") || strings.HasPrefix(key, "volume.kubernetes.io/")
	})
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// changes are the paths of fields that differ, after the objects that have them; those of objects that come or go too.
func (s state) changes(later state) (changed []string) {
	for name, old := range s {
		now, ok := later[name]
		switch {
		case !ok:
			changed = append(changed, name+" is gone")
		case old.uid != now.uid:
			changed = append(changed, name+" is another")
		default:
			changed = append(changed, differ(name+":", old.spec, now.spec)...)
		}
	}
	for name := range later {
		if _, ok := s[name]; !ok {
			changed = append(changed, name+" is new")
		}
	}
	slices.Sort(changed)
	return changed
}

// differ are the paths at which two values differ.
func differ(path string, a, b any) (paths []string) {
	x, okX := a.(map[string]any)
	y, okY := b.(map[string]any)
	if !okX || !okY {
		if cmp.Equal(a, b) {
			return nil
		}
		return []string{path}
	}
	keys := map[string]bool{}
	for key := range x {
		keys[key] = true
	}
	for key := range y {
		keys[key] = true
	}
	for key := range keys {
		paths = append(paths, differ(path+"."+key, x[key], y[key])...)
	}
	return paths
}

func uids(pods []member) map[string]types.UID {
	all := map[string]types.UID{}
	for _, m := range pods {
		all[m.Name] = m.UID
	}
	return all
}

// must ends the test where a step before it failed.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
