package controllers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/test/cluster"
)

// gpusEach is how many of each accelerator a node has.
const gpusEach = 8

// pool is nodes that are alike: those that pods of one node selector and tolerations may go to.
type pool struct {
	labels map[string]string
	taints []corev1.Taint
}

// poolOf makes a pool that only such pods are sure to get into: its taints are those that they tolerate.
func poolOf(spec *corev1.PodSpec) (p pool) {
	p.labels = spec.NodeSelector
	for _, t := range spec.Tolerations {
		if t.Key != "" && t.Effect == corev1.TaintEffectNoSchedule && len(spec.NodeSelector) > 0 {
			p.taints = append(p.taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	return p
}

// addNodes makes a pool for every kind of pods, each large enough for as many fixtures as are in the cluster at a time,
// with a whole node for each pod: no fixture ever waits for another's end.
func (w *world) addNodes(t *testing.T, fixtures []*fixture) {
	t.Helper()
	pools := map[string]pool{}
	accelerators := corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("10Ti")}
	var pods []int // of each bundle
	for _, f := range fixtures {
		for _, b := range f.bundles {
			n := 0
			for _, spec := range b.specs() {
				p := poolOf(&spec)
				pools[fmt.Sprint(p)] = p
			}
			for _, j := range b.jobs {
				for _, s := range j.PodSets {
					n += len(s.Pods)
				}
			}
			pods = append(pods, n)
			for name := range total(b.jobs, peak) {
				if strings.Contains(string(name), "/") {
					accelerators[name] = *resource.NewQuantity(gpusEach, resource.DecimalSI)
				}
			}
		}
	}
	slices.Sort(pods)
	count := 0
	for _, n := range pods[max(0, len(pods)-atOnce):] {
		count += n
	}
	for _, key := range slices.Sorted(maps.Keys(pools)) {
		_, err := w.c.AddNodes(t.Context(), cluster.NodeOptions{
			Count: count, CPU: "192", Memory: "2Ti", Labels: pools[key].labels, Taints: pools[key].taints, Other: accelerators,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d pools of %d nodes", len(pools), count)
	w.nodes = w.list(t, "v1", "Node", "", "")
}

// list is all objects of a kind, with their kinds, as kubectl prints them.
func (w *world) list(t *testing.T, version, kind, namespace, selector string) []*unstructured.Unstructured {
	t.Helper()
	of := &unstructured.Unstructured{}
	of.SetAPIVersion(version)
	of.SetKind(kind)
	of.SetNamespace(namespace)
	found, err := w.on(of).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatalf("listing %s: %v", kind, err)
	}
	all := make([]*unstructured.Unstructured, len(found.Items))
	for i := range found.Items {
		all[i] = &found.Items[i]
	}
	return all
}

// inventory is what 'kubectl get nodes,pods -o json' would print of these.
func inventory(t *testing.T, objects ...[]*unstructured.Unstructured) *plan.Inventory {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": slices.Concat(objects...)})
	if err != nil {
		t.Fatal(err)
	}
	inv, err := plan.ReadInventory("the cluster", text)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}
