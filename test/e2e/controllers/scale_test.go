package controllers

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// testScale starts a fixture with its minimum of workers, renders it with its maximum, and with the minimum again.
// Every time it changes nothing but what that is about, and pods that stay are not replaced.
func (w *world) testScale(t *testing.T, f *fixture) *counts {
	c := &counts{}
	workers := f.bundles["base"].schema[0].Spec.Workers
	at := func(n int32) *bundle {
		edits := []edit{
			set(int64(n), "spec", "workers", "replicas"), set(int64(workers.Min), "spec", "workers", "min"),
			set(int64(workers.Max), "spec", "workers", "max"),
		}
		if g := f.bundles["base"].schema[0].Spec.Gang; g == nil || g.Scheduler != "kueue" {
			edits = append(edits, set(false, "spec", "suspend"))
		} else { // which suspends by itself, and admits all or none
			edits = append(edits, set(int64(n), "spec", "gang", "minAvailable"))
		}
		return must(f.render("base", f.name+"-scale", edits...))(t)
	}
	least := workers.Min
	if g := f.bundles["base"].schema[0].Spec.Gang; g != nil && g.MinAvailable > least {
		least = g.MinAvailable // fewer than a gang's minimum would never start
	}
	small, large := at(least), at(workers.Max)
	w.served(t, small)
	w.enter(t, large) // the quota counts what the larger one requests
	w.apply(t, w.served(t, small))
	pods := w.awaitPods(t, small)
	for _, step := range []struct{ from, to *bundle }{{small, large}, {large, small}} {
		pods = w.scale(t, step.from, step.to, pods, c)
		w.checkRequests(t, step.to, peak, c)
		w.checkAddresses(t, step.to, pods, c)
	}
	w.remove(t, small, c)
	t.Log(c)
	return c
}

// scale applies a bundle over another, prunes what is no longer in it, as a reconciler does, and holds what changed in
// the cluster against what may.
func (w *world) scale(t *testing.T, from, to *bundle, pods []member, c *counts) []member {
	t.Helper()
	old := w.state(t, w.served(t, from))
	w.apply(t, w.served(t, to))
	gone := without(w.served(t, from), w.served(t, to))
	for _, obj := range gone {
		if err := w.on(obj).Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	after := w.awaitPods(t, to)
	changed := old.changes(w.state(t, w.served(t, to)))
	if diff := cmp.Diff(mayChange(from, to), changed); diff != "" {
		t.Errorf("changes from %d to %d pods (-expected +seen):\n%s", len(pods), len(after), diff)
	}
	c.count("objects", len(old))
	c.count("changes", len(changed))

	few, many := pods, after
	if len(few) > len(many) {
		few, many = many, few
	}
	kept := map[string]types.UID{}
	for _, m := range many {
		if uid, ok := uids(few)[m.Name]; ok && uid == m.UID {
			kept[m.Name] = uid
		}
	}
	if diff := cmp.Diff(uids(few), kept); diff != "" {
		t.Errorf("pods that stay, of %d and %d (-expected +kept):\n%s", len(pods), len(after), diff)
	}
	c.count("pods kept", len(kept))
	c.count("pods more or fewer", len(many)-len(few))
	return after
}

// mayChange are the changes that another number of workers is: of a Job, how many pods it has; of bare pods, pods with
// a Service each.
func mayChange(from, to *bundle) []string {
	changes := []string{}
	if from.jobs[0].Target == "job" {
		for _, s := range from.jobs[0].PodSets {
			if s.Role == "worker" {
				changes = append(changes, s.Owner+":.spec.completions", s.Owner+":.spec.parallelism")
			}
		}
		return changes
	}
	names := func(b *bundle) map[string]bool {
		all := map[string]bool{}
		for _, s := range b.jobs[0].PodSets {
			for _, p := range s.Pods {
				if s.Role == "worker" {
					all["Pod/"+p.Name], all["Service/"+p.Name] = true, true
				}
			}
		}
		return all
	}
	for name := range names(from) {
		if !names(to)[name] {
			changes = append(changes, name+" is gone")
		}
	}
	for name := range names(to) {
		if !names(from)[name] {
			changes = append(changes, name+" is new")
		}
	}
	slices.Sort(changes)
	return changes
}

// without are the objects that are not in another list.
func without(objects, other []*unstructured.Unstructured) (some []*unstructured.Unstructured) {
	in := map[string]bool{}
	for _, obj := range other {
		in[obj.GetKind()+"/"+obj.GetName()] = true
	}
	for _, obj := range objects {
		if !in[obj.GetKind()+"/"+obj.GetName()] {
			some = append(some, obj)
		}
	}
	return some
}
