package operators

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// rackLabel is on the nodes of a rack.
const rackLabel = "tegen.dev/e2e-rack"

// topologies are scenarios of gang.topology under one scheduler. prepare tells that of the racks a, b and so on, once
// their nodes are there.
type topologies struct {
	dialect
	prepare func(p *place, racks ...string)
	level   string // as a job names it; rackLabel where it is ""
	late    bool   // it hears of a rack that grows too late to try again what has waited
}

// asked is the dialect with a topology of more than its level, such as ", mode: preferred".
func (t topologies) asked(more string) dialect {
	d := t.dialect
	level := t.level
	if level == "" {
		level = rackLabel
	}
	d.more += fmt.Sprintf(", topology: {level: %s%s}", level, more)
	return d
}

// required: of racks with room for two and for four workers the larger one gets all four. Four more wait, though there
// is room for them, until one rack has room for them all.
func (t topologies) required(p *place) {
	p.racks(1, 2)
	t.prepare(p, "a", "b")
	d := t.asked("")
	first := d.job(p, "first", 4)
	p.apply(first...)
	pods := p.running(4, p.namespace, workers)
	p.inRacks(pods, map[string]int{"b": 4})
	p.rack("c", 1)
	t.prepare(p, "a", "b", "c")
	p.apply(d.job(p, "second", 4)...)
	p.remains("the second waits", func() error { return p.placed(p.namespace, 4) })
	if t.late {
		return
	}
	p.rack("a", 1)
	t.prepare(p, "a", "b", "c")
	p.inRacks(p.running(8, p.namespace, workers), map[string]int{"a": 4, "b": 4})
}

// preferred: where each of two racks has room for two workers, four take both; where one has room for all, they take
// that.
func (t topologies) preferred(p *place) {
	p.racks(1, 1)
	t.prepare(p, "a", "b")
	d := t.asked(", mode: preferred")
	first := d.job(p, "first", 4)
	p.apply(first...)
	p.inRacks(p.running(4, p.namespace, workers), map[string]int{"a": 2, "b": 2})
	p.delete(p.Context(), first...)
	p.gone(p.namespace)
	p.rack("b", 1)
	t.prepare(p, "a", "b")
	p.apply(d.job(p, "second", 4)...)
	p.inRacks(p.running(4, p.namespace, workers), map[string]int{"b": 4})
}

// slices: two workers at a time share a rack, in the order of their indexes.
func (t topologies) slices(p *place) {
	p.racks(1, 1)
	t.prepare(p, "a", "b")
	p.apply(t.asked(", slice: 2").job(p, "sliced", 4)...)
	pods := p.running(4, p.namespace, workers)
	p.inRacks(pods, map[string]int{"a": 2, "b": 2})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return indexOf(p, a) - indexOf(p, b) })
	racks := map[int]string{}
	for i, pod := range pods { // which may be counted from 1
		slice := i / 2
		if rack := p.rackOf(pod); racks[slice] == "" {
			racks[slice] = rack
		} else if racks[slice] != rack {
			p.Errorf("slice %d is in the racks %s and %s", slice, racks[slice], rack)
		}
	}
}

// indexOf is a worker's index, by the label of its controller or the end of its name.
func indexOf(p *place, pod corev1.Pod) int {
	p.Helper()
	text := pod.Labels[batchv1.JobCompletionIndexAnnotation]
	if text == "" {
		text = pod.Name[strings.LastIndex(pod.Name, "-")+1:]
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		p.Fatalf("pod %s has no index: %v", pod.Name, err)
	}
	return n
}

// racks adds racks a, b and so on, of so many nodes with two accelerators each.
func (p *place) racks(nodes ...int) {
	p.Helper()
	for i, n := range nodes {
		p.rack(string(rune('a'+i)), n)
	}
}

// rack adds nodes of two accelerators each to a rack.
func (p *place) rack(name string, nodes int) {
	p.Helper()
	before := len(p.added)
	p.nodes(nodes, 2, p.namespace)
	for _, node := range p.added[before:] {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, rackLabel, name)
		if _, err := p.client.CoreV1().Nodes().Patch(p.Context(), node, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			p.Fatal(err)
		}
	}
}

// rackOf is the rack in which a pod is.
func (p *place) rackOf(pod corev1.Pod) string {
	p.Helper()
	node, err := p.client.CoreV1().Nodes().Get(p.Context(), pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return node.Labels[rackLabel]
}

// rackNodes are the nodes of a rack.
func (p *place) rackNodes(rack string) (names []string) {
	p.Helper()
	for _, name := range p.added {
		node, err := p.client.CoreV1().Nodes().Get(p.Context(), name, metav1.GetOptions{})
		if err != nil {
			p.Fatal(err)
		}
		if node.Labels[rackLabel] == rack {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// inRacks checks how many pods each rack has, of each job as many as of all where there is one.
func (p *place) inRacks(pods []corev1.Pod, want map[string]int) {
	p.Helper()
	got := map[string]int{}
	for _, pod := range pods {
		got[p.rackOf(pod)]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.Errorf("the racks have %v workers, want %v", got, want)
	}
}
