package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// demand is what a pod asks of a node.
type demand struct {
	*neighbor
	pod      *corev1.Pod
	needs    amounts // a place among the node's pods included
	affinity nodeaffinity.RequiredNodeAffinity
	claims   claimed // of devices
}

// neighbor is what decides whether a pod and another can share a node.
type neighbor struct {
	namespace string
	labels    map[string]string
	ports     []hostPort
	apart     []antiTerm // from pods that these select, on the same node
}

type hostPort struct {
	ip, protocol string
	port         int32
}

// antiTerm selects pods. Of namespaces only their names are known.
type antiTerm struct {
	selector   labels.Selector
	namespaces []string
	everywhere bool
}

func demandOf(pod *corev1.Pod) demand {
	n := neighborOf(pod)
	return demand{neighbor: &n, pod: pod, needs: needsOf(pod), affinity: nodeaffinity.GetRequiredNodeAffinity(pod)}
}

func neighborOf(pod *corev1.Pod) neighbor {
	return neighbor{pod.Namespace, pod.Labels, hostPorts(pod), apart(pod)}
}

// needsOf are the resources that a pod takes of a node, with its place among the node's pods.
func needsOf(pod *corev1.Pod) amounts {
	needs := amountsOf(requests(pod))
	for name, need := range needs {
		needs[name] = max(need, 0) // an inventory is anybody's text
	}
	needs[corev1.ResourcePods] = 1
	return needs
}

func hostPorts(pod *corev1.Pod) (ports []hostPort) {
	for c := range containers(pod) {
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				ports = append(ports, hostPort{p.HostIP, protocol(p.Protocol), p.HostPort})
			}
		}
	}
	return ports
}

func (p hostPort) clashes(o hostPort) bool {
	anywhere := func(ip string) bool { return ip == "" || ip == "0.0.0.0" }
	return p.port == o.port && p.protocol == o.protocol && (p.ip == o.ip || anywhere(p.ip) || anywhere(o.ip))
}

func apart(pod *corev1.Pod) (terms []antiTerm) {
	a := pod.Spec.Affinity
	if a == nil || a.PodAntiAffinity == nil {
		return nil
	}
	for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		t := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]
		selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		if t.TopologyKey != corev1.LabelHostname || err != nil {
			continue
		}
		term := antiTerm{selector: selector, namespaces: t.Namespaces}
		if s := t.NamespaceSelector; s != nil {
			term.everywhere = len(s.MatchLabels)+len(s.MatchExpressions) == 0
		} else if len(t.Namespaces) == 0 {
			term.namespaces = []string{pod.Namespace}
		}
		terms = append(terms, term)
	}
	return terms
}

func (t *antiTerm) selects(pod *neighbor) bool {
	return (t.everywhere || slices.Contains(t.namespaces, pod.namespace)) && t.selector.Matches(labels.Set(pod.labels))
}

// avoids explains why two pods cannot share a node, "" where they can.
func (n *neighbor) avoids(o *neighbor) string {
	for _, p := range n.ports {
		for _, q := range o.ports {
			if p.clashes(q) {
				return fmt.Sprintf("port %d of the node is taken", p.port)
			}
		}
	}
	for i := range n.apart {
		if n.apart[i].selects(o) {
			return "pod anti-affinity"
		}
	}
	for i := range o.apart {
		if o.apart[i].selects(n) {
			return "pod anti-affinity"
		}
	}
	return ""
}

// room is how many pods like this a node takes that does not refuse them, and why not one more.
func (n *node) room(d demand) (int64, []string) {
	most, why := int64(math.MaxInt32), []string(nil)
	for name, need := range d.needs {
		have, ok := n.free[name]
		if need <= 0 || !ok && name == corev1.ResourcePods { // an inventory written by hand may not count pods
			continue
		}
		fits := max(have, 0) / need
		if fits == 0 {
			why = append(why, lacks(name))
		}
		most = min(most, fits)
	}
	slices.Sort(why)
	if most == 0 {
		return 0, why
	}
	if len(d.ports)+len(d.apart)+n.averse > 0 {
		for _, other := range n.pods {
			if why := d.avoids(other); why != "" {
				return 0, []string{why}
			}
		}
	}
	if d.avoids(d.neighbor) != "" {
		most = 1
	}
	if len(d.claims.own) > 0 {
		return n.devices.room(n.Node, d.claims.own, most)
	}
	return most, nil
}

func lacks(name corev1.ResourceName) string {
	if name == corev1.ResourcePods {
		return "too many pods"
	}
	return "insufficient " + string(name)
}

// foreign counts what a node has and such a pod has no use for, accelerators above all: other nodes come first.
func (n *node) foreign(d demand) (count int) {
	for name, q := range n.Status.Allocatable {
		if !q.IsZero() && d.needs[name] == 0 && strings.Contains(string(name), "/") {
			count++
		}
	}
	return count
}
