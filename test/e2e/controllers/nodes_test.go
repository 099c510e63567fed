package controllers

import (
	"bytes"
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

// devicesEach is how many of each accelerator and adapter a node has: no worker of a fixture asks for more.
const devicesEach = 32

// pool is nodes that are alike: those that pods of one node selector and tolerations may go to.
type pool struct {
	labels map[string]string
	taints []corev1.Taint
	pods   []int // of each bundle
}

// poolOf makes a pool that only such pods are sure to get into: its taints are those that they tolerate.
func poolOf(spec *corev1.PodSpec) *pool {
	p := &pool{labels: spec.NodeSelector}
	keys := map[string]bool{}
	for _, t := range spec.Tolerations {
		if t.Key != "" && t.Effect == corev1.TaintEffectNoSchedule && len(spec.NodeSelector) > 0 && !keys[t.Key] {
			keys[t.Key] = true
			p.taints = append(p.taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	return p
}

// addNodes makes a pool for every kind of pods, each large enough for as many fixtures as are in the cluster at a time,
// with a whole node for each pod: no fixture ever waits for another's end.
func (w *world) addNodes(t *testing.T, fixtures []*fixture) {
	t.Helper()
	resources := corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("10Ti")}
	pools := map[string]*pool{}
	for _, f := range fixtures {
		for _, b := range f.bundles {
			for key, n := range b.pools(pools) {
				pools[key].pods = append(pools[key].pods, n)
			}
			for name := range total(b.jobs, peak) {
				if strings.Contains(string(name), "/") {
					resources[name] = *resource.NewQuantity(devicesEach, resource.DecimalSI)
				}
				if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
					resources[name] = resource.MustParse("16Gi")
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(pools)) {
		p, most := pools[key], 0
		slices.Sort(p.pods)
		for _, n := range p.pods[max(0, len(p.pods)-atOnce):] {
			most += n
		}
		_, err := w.c.AddNodes(t.Context(), cluster.NodeOptions{
			Count: most, CPU: "192", Memory: "2Ti", Labels: p.labels, Taints: p.taints, Other: resources,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.nodes = w.list(t, "v1", "Node", "", "")
	for _, n := range w.nodes { // every bundle reads all of them
		n.SetManagedFields(nil)
		unstructured.RemoveNestedField(n.Object, "status", "nodeInfo")
	}
	w.empty = inventoryText(t, w.nodes)
	t.Logf("%d nodes in %d pools", len(w.nodes), len(pools))
}

// pools adds those that the bundle's pods go to, and counts the pods, with as many as may be in each once it is scaled.
func (b *bundle) pools(all map[string]*pool) map[string]int {
	pods := map[string]int{}
	for _, of := range b.templates() {
		p := poolOf(&of.PodSpec)
		key := fmt.Sprint(p.labels, p.taints)
		if all[key] == nil {
			all[key] = p
		}
		pods[key] += of.pods
	}
	for _, j := range b.schema {
		for key := range pods {
			pods[key] += int(j.Spec.Workers.Max - j.Spec.Workers.Replicas)
		}
	}
	return pods
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
	return readInventory(t, inventoryText(t, objects...))
}

func inventoryText(t *testing.T, objects ...[]*unstructured.Unstructured) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": slices.Concat(objects...)})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readInventory(t *testing.T, text []byte) *plan.Inventory {
	t.Helper()
	inv, err := plan.ReadInventory(plan.Source{Name: "the cluster", In: bytes.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return inv
}
