package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/tegen-dev/tegen/internal/manifest"
)

// Inventory is the nodes of a cluster and what runs on them.
type Inventory struct {
	nodes []*node

	devices *devices
	pods    map[string]*corev1.Pod   // by namespace/name
	named   map[string][]*corev1.Pod // those that have a place, or had, by namespace/name as a Pod of a PodSet is named
}

// node is a node with what is left of it.
type node struct {
	*corev1.Node
	free amounts
	pods []demand // on it, those that a plan put there included

	devices *devices
	given   [][]deviceID // to pods with claims that a plan put there, in their order
}

// maxYAML is the most bytes of YAML, whose parser needs some 45 bytes of memory for each. JSON is bounded by the
// caller.
const maxYAML = 64 << 20

// ReadInventory reads Nodes and Pods as kubectl prints them: lists, or documents; YAML or JSON. name stands for the
// text in errors.
func ReadInventory(name string, data []byte) (*Inventory, error) {
	if len(data) > maxYAML && !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, fmt.Errorf("reading %s: it has more than %d MiB of YAML: take JSON, 'kubectl get … -o json'", name,
			maxYAML>>20)
	}
	objects, err := manifest.ReadPrinted(name, data)
	if err != nil {
		return nil, err
	}
	inv := &Inventory{pods: map[string]*corev1.Pod{}, named: map[string][]*corev1.Pod{}, devices: newDevices()}
	nodes := map[string]*node{}
	if err := inv.add(name, nodes, objects); err != nil {
		return nil, err
	}
	if len(inv.nodes) == 0 { // what a command of a pipe failed to print must not look like a cluster that is full
		return nil, fmt.Errorf("reading %s: no Node in the inventory: give it what 'kubectl get nodes -o yaml' prints",
			name)
	}
	for _, key := range slices.Sorted(maps.Keys(inv.pods)) {
		inv.bind(nodes, key, inv.pods[key])
	}
	slices.SortFunc(inv.nodes, func(a, b *node) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
	})
	return inv, nil
}

func (inv *Inventory) add(name string, nodes map[string]*node, objects []runtime.Object) error {
	for _, obj := range objects {
		switch o := obj.(type) {
		case *corev1.NodeList:
			for i := range o.Items {
				if err := inv.addNode(name, nodes, &o.Items[i]); err != nil {
					return err
				}
			}
		case *corev1.PodList:
			for i := range o.Items {
				if err := inv.addPod(name, &o.Items[i]); err != nil {
					return err
				}
			}
		case *corev1.Node:
			if err := inv.addNode(name, nodes, o); err != nil {
				return err
			}
		case *corev1.Pod:
			if err := inv.addPod(name, o); err != nil {
				return err
			}
		default:
			if known, err := inv.devices.add(obj); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			} else if known {
				continue
			}
			kind := "an object without a kind"
			if gvk, err := manifest.GVK(obj); err == nil {
				kind = gvk.Kind
			}
			return fmt.Errorf("reading %s: %s: an inventory holds Nodes and Pods, ResourceSlices, DeviceClasses, "+
				"ResourceClaims and ResourceClaimTemplates", name, kind)
		}
	}
	return nil
}

func (inv *Inventory) addNode(name string, nodes map[string]*node, n *corev1.Node) error {
	switch {
	case n.Name == "":
		return fmt.Errorf("reading %s: Node %d has no name", name, len(inv.nodes)+1)
	case nodes[n.Name] != nil:
		return fmt.Errorf("reading %s: Node %s is there twice", name, n.Name)
	}
	if len(n.Status.Allocatable) == 0 {
		n.Status.Allocatable = n.Status.Capacity // as the API server does
	}
	entry := &node{Node: n, free: amountsOf(n.Status.Allocatable), devices: inv.devices}
	nodes[n.Name], inv.nodes = entry, append(inv.nodes, entry)
	return nil
}

func (inv *Inventory) addPod(name string, p *corev1.Pod) error {
	key := p.Namespace + "/" + p.Name
	switch {
	case p.Name == "":
		return fmt.Errorf("reading %s: Pod %d has no name", name, len(inv.pods)+1)
	case inv.pods[key] != nil:
		return fmt.Errorf("reading %s: Pod %s is there twice", name, key)
	}
	complete(p)
	inv.pods[key] = p
	return nil
}

// bind counts a pod on its node. One without a node takes nothing yet, and one that failed is replaced.
func (inv *Inventory) bind(nodes map[string]*node, key string, pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed {
		return
	}
	inv.named[key] = append(inv.named[key], pod)
	if job, ok := cutRandom(key, 5); ok {
		inv.named[job+random] = append(inv.named[job+random], pod)
		if deployment, ok := cutRandom(job, 10); ok {
			name := deployment + random + random
			inv.named[name] = append(inv.named[name], pod)
		}
	}
	if n := nodes[pod.Spec.NodeName]; n != nil && pod.Status.Phase != corev1.PodSucceeded {
		n.put(demandOf(pod), 1)
	}
}

// cutRandom takes off a name what a controller put there: up to so many characters, of those that cannot make a word
// (k8s.io/apimachinery/pkg/util/rand).
func cutRandom(name string, most int) (string, bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 || i == len(name)-1 || len(name)-i-1 > most ||
		strings.Trim(name[i+1:], "bcdfghjklmnpqrstvwxz2456789") != "" {
		return name, false
	}
	return name[:i], true
}

// put reserves what n pods like this need; take is how it is undone.
func (n *node) put(d demand, count int64) {
	n.free.subtract(d.needs, count)
	for range count {
		if len(d.claims.own) > 0 { // as many as room has counted
			ids, _, _ := n.devices.allocate(n.Node, d.claims.own)
			n.devices.take(ids)
			n.given = append(n.given, ids)
		}
		n.pods = append(n.pods, d)
	}
}

// take undoes the last put.
func (n *node) take(d demand, count int64) {
	n.free.subtract(d.needs, -count)
	n.pods = n.pods[:len(n.pods)-int(count)]
	if len(d.claims.own) > 0 {
		left := len(n.given) - int(count)
		for _, ids := range n.given[left:] {
			n.devices.release(ids)
		}
		n.given = n.given[:left]
	}
}

// refuses explains why a node takes no pod like this, whatever is free on it; "" where it would.
func (n *node) refuses(d demand) string {
	if n.Spec.Unschedulable && !tolerates(d.pod, &corev1.Taint{
		Key:    corev1.TaintNodeUnschedulable,
		Effect: corev1.TaintEffectNoSchedule,
	}) {
		return "cordoned"
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "not ready"
		}
	}
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(d.pod, t) {
			return "taint " + t.ToString()
		}
	}
	if ok, err := d.affinity.Match(n.Node); err != nil || !ok {
		return "node selector or affinity"
	}
	return d.claims.refuses(n.Node)
}

func tolerates(pod *corev1.Pod, taint *corev1.Taint) bool {
	return helpers.TolerationsTolerateTaint(klog.Logger{}, pod.Spec.Tolerations, taint, false)
}
