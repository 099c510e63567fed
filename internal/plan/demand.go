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
	pod      *corev1.Pod
	needs    amounts // a place among the node's pods included
	affinity nodeaffinity.RequiredNodeAffinity
	ports    []hostPort
	apart    []corev1.PodAffinityTerm // from pods that these select, on the same node
	claims   claimed                  // of devices
}

type hostPort struct {
	ip, protocol string
	port         int32
}

func demandOf(pod *corev1.Pod) demand {
	d := demand{
		pod: pod, needs: amountsOf(requests(pod)), affinity: nodeaffinity.GetRequiredNodeAffinity(pod),
		ports: hostPorts(pod), apart: apart(pod),
	}
	for name, need := range d.needs {
		d.needs[name] = max(need, 0) // an inventory is anybody's text
	}
	d.needs[corev1.ResourcePods] = 1
	return d
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

func apart(pod *corev1.Pod) (terms []corev1.PodAffinityTerm) {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if t.TopologyKey == corev1.LabelHostname {
				terms = append(terms, t)
			}
		}
	}
	return terms
}

// selects reports whether a term of the pod from selects the pod to. Of namespaces only their names are known.
func selects(t *corev1.PodAffinityTerm, from, to *corev1.Pod) bool {
	everywhere := t.NamespaceSelector != nil && len(t.NamespaceSelector.MatchLabels)+len(
		t.NamespaceSelector.MatchExpressions) == 0
	here := len(t.Namespaces) == 0 && t.NamespaceSelector == nil && from.Namespace == to.Namespace
	if !everywhere && !here && !slices.Contains(t.Namespaces, to.Namespace) {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	return err == nil && selector.Matches(labels.Set(to.Labels))
}

// avoids explains why two pods cannot share a node, "" where they can.
func (d demand) avoids(o demand) string {
	for _, p := range d.ports {
		for _, q := range o.ports {
			if p.clashes(q) {
				return fmt.Sprintf("port %d of the node is taken", p.port)
			}
		}
	}
	for i := range d.apart {
		if selects(&d.apart[i], d.pod, o.pod) {
			return "pod anti-affinity"
		}
	}
	for i := range o.apart {
		if selects(&o.apart[i], o.pod, d.pod) {
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
	for _, other := range n.pods {
		if why := d.avoids(other); why != "" {
			return 0, []string{why}
		}
	}
	if d.avoids(d) != "" {
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
