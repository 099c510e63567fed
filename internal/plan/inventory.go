package plan

import (
	"cmp"
	"fmt"
	"io"
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
	index map[string]int // of a node by its name

	devices *devices
	pods    map[string]*occupant   // by namespace/name
	named   map[string][]*occupant // those that have a place, or had, by namespace/name as a Pod of a PodSet is named
}

// node is a node with what is left of it.
type node struct {
	*corev1.Node
	free   amounts
	pods   []*neighbor // on it, those that a plan put there included
	averse int         // of them, that do not share the node with some pods

	devices *devices
	given   [][]deviceID // to pods with claims that a plan put there, in their order
}

// occupant is what is kept of a pod of the inventory, of which a cluster may have tens of thousands.
type occupant struct {
	neighbor
	node     string
	phase    corev1.PodPhase
	requests amounts
}

// Source is a text of an inventory. Name stands for it in errors.
type Source struct {
	Name string
	In   io.Reader
}

// nodeFields and podFields are what is read of Nodes and Pods.
var (
	objectFields = manifest.Fields{"name": nil, "namespace": nil, "labels": nil}
	nodeFields   = manifest.Fields{
		"apiVersion": nil, "kind": nil,
		"metadata": objectFields,
		"spec":     {"unschedulable": nil, "taints": nil},
		"status":   {"allocatable": nil, "capacity": nil, "conditions": {"type": nil, "status": nil}},
	}
	containerFields = manifest.Fields{"name": nil, "ports": nil, "resources": nil, "restartPolicy": nil}
	statusFields    = manifest.Fields{"name": nil, "resources": nil, "allocatedResources": nil}
	podFields       = manifest.Fields{
		"apiVersion": nil, "kind": nil,
		"metadata": objectFields,
		"spec": {
			"nodeName": nil, "hostNetwork": nil, "overhead": nil, "resources": nil,
			"affinity":   {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": nil}},
			"containers": containerFields, "initContainers": containerFields,
		},
		"status": {
			"phase": nil, "resources": nil, "allocatedResources": nil,
			"conditions":        {"type": nil, "status": nil, "reason": nil},
			"containerStatuses": statusFields, "initContainerStatuses": statusFields,
		},
	}
)

// loader makes an inventory of objects, in whatever order they come.
type loader struct {
	*Inventory
	byName map[string]*node
	same   map[string]string // texts that many pods have, once
}

// ReadInventory reads Nodes and Pods as kubectl prints them: lists, or documents; YAML or JSON. It holds no more of the
// texts than an object of them.
func ReadInventory(sources ...Source) (*Inventory, error) {
	l := loader{
		&Inventory{
			pods: map[string]*occupant{}, named: map[string][]*occupant{}, index: map[string]int{},
			devices: newDevices(),
		}, map[string]*node{}, map[string]string{},
	}
	var names []string
	for _, s := range sources {
		names = append(names, s.Name)
		fields := map[string]manifest.Fields{"Node": nodeFields, "Pod": podFields}
		err := manifest.Stream(s.Name, s.In, fields, func(obj runtime.Object) error { return l.add(s.Name, obj) })
		if err != nil {
			return nil, err
		}
	}
	if len(l.nodes) == 0 { // what a command of a pipe failed to print must not look like a cluster that is full
		return nil, fmt.Errorf("reading %s: no Node in the inventory: give it what 'kubectl get nodes -o yaml' prints",
			strings.Join(names, ", "))
	}
	for _, key := range slices.Sorted(maps.Keys(l.pods)) {
		l.bind(key, l.pods[key])
	}
	slices.SortFunc(l.nodes, func(a, b *node) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
	})
	for i, n := range l.nodes {
		l.index[n.Name] = i
	}
	return l.Inventory, nil
}

func (l *loader) add(name string, obj runtime.Object) error {
	switch o := obj.(type) {
	case *corev1.Node:
		return l.addNode(name, o)
	case *corev1.Pod:
		return l.addPod(name, o)
	}
	if known, err := l.devices.add(obj); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	} else if known {
		return nil
	}
	kind := "an object without a kind"
	if gvk, err := manifest.GVK(obj); err == nil {
		kind = gvk.Kind
	}
	return fmt.Errorf("reading %s: %s: an inventory holds Nodes and Pods, ResourceSlices, DeviceClasses, "+
		"ResourceClaims and ResourceClaimTemplates", name, kind)
}

func (l *loader) addNode(name string, n *corev1.Node) error {
	switch {
	case n.Name == "":
		return fmt.Errorf("reading %s: Node %d has no name", name, len(l.nodes)+1)
	case l.byName[n.Name] != nil:
		return fmt.Errorf("reading %s: Node %s is there twice", name, n.Name)
	}
	if len(n.Status.Allocatable) == 0 {
		n.Status.Allocatable = n.Status.Capacity // as the API server does
	}
	entry := &node{Node: n, free: amountsOf(n.Status.Allocatable), devices: l.devices}
	l.byName[n.Name], l.nodes = entry, append(l.nodes, entry)
	return nil
}

func (l *loader) addPod(name string, p *corev1.Pod) error {
	key := p.Namespace + "/" + p.Name
	switch {
	case p.Name == "":
		return fmt.Errorf("reading %s: Pod %d has no name", name, len(l.pods)+1)
	case l.pods[key] != nil:
		return fmt.Errorf("reading %s: Pod %s is there twice", name, key)
	}
	complete(p)
	p.Namespace = l.once(p.Namespace)
	own := make(map[string]string, len(p.Labels))
	for key, value := range p.Labels {
		own[l.once(key)] = l.once(value)
	}
	p.Labels = own
	l.pods[key] = &occupant{
		neighbor: neighborOf(p), node: l.once(p.Spec.NodeName), phase: corev1.PodPhase(l.once(string(p.Status.Phase))),
		requests: needsOf(p),
	}
	return nil
}

// once is a text, in one copy for all who have it.
func (l *loader) once(text string) string {
	if known, ok := l.same[text]; ok {
		return known
	}
	l.same[text] = text
	return text
}

// bind counts a pod on its node. One without a node takes nothing yet, and one that failed is replaced.
func (l *loader) bind(key string, pod *occupant) {
	if pod.node == "" || pod.phase == corev1.PodFailed {
		return
	}
	l.named[key] = append(l.named[key], pod)
	if job, ok := cutRandom(key, 5); ok {
		l.named[job+random] = append(l.named[job+random], pod)
		if deployment, ok := cutRandom(job, 10); ok {
			name := deployment + random + random
			l.named[name] = append(l.named[name], pod)
		}
	}
	if n := l.byName[pod.node]; n != nil && pod.phase != corev1.PodSucceeded {
		n.free.subtract(pod.requests, 1)
		n.join(&pod.neighbor, 1)
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

// join adds so many pods that are alike to those on a node.
func (n *node) join(pod *neighbor, count int64) {
	for range count {
		n.pods = append(n.pods, pod)
	}
	if len(pod.apart) > 0 {
		n.averse += int(count)
	}
}

// leave undoes the last join.
func (n *node) leave(pod *neighbor, count int64) {
	n.pods = n.pods[:len(n.pods)-int(count)]
	if len(pod.apart) > 0 {
		n.averse -= int(count)
	}
}

// put reserves what n pods like this need; take is how it is undone.
func (n *node) put(d demand, count int64) {
	n.free.subtract(d.needs, count)
	n.join(d.neighbor, count)
	for range count {
		if len(d.claims.own) > 0 { // as many as room has counted
			ids, _, _ := n.devices.allocate(n.Node, d.claims.own)
			n.devices.take(ids)
			n.given = append(n.given, ids)
		}
	}
}

// take undoes the last put.
func (n *node) take(d demand, count int64) {
	n.free.subtract(d.needs, -count)
	n.leave(d.neighbor, count)
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
