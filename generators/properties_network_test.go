package generators_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/schema/job"
)

// openPorts: the NetworkPolicies that select a pod admit somebody to each of its ports, and everybody to one called
// metrics, which is for who watches the cluster, unless the author says who that is. The kubelet's probes pass in any
// case.
func openPorts(j *job.Job, objs []runtime.Object) (wrong []string) {
	policies := all[*networkingv1.NetworkPolicy](objs)
	for _, p := range pods(objs) {
		var rules []networkingv1.NetworkPolicyIngressRule
		closed := false
		for _, policy := range policies {
			if labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(p.labels)) {
				rules, closed = append(rules, policy.Spec.Ingress...), true
			}
		}
		if !closed {
			continue
		}
		for _, c := range p.spec.Containers {
			for _, port := range c.Ports {
				if probed(c, port) {
					continue
				}
				somebody, everybody := admitted(rules, port.ContainerPort)
				named := j != nil && slices.ContainsFunc(j.Spec.Network.AllowFrom, func(p job.Peer) bool {
					return slices.Contains(p.Ports, port.ContainerPort)
				})
				if !somebody || port.Name == "metrics" && !everybody && !named {
					wrong = append(wrong, fmt.Sprintf("%s: NetworkPolicies close port %s, %d, of container %s",
						p.from, port.Name, port.ContainerPort, c.Name))
				}
			}
		}
	}
	return wrong
}

// admitted says whether rules admit somebody to a port, and whether everybody.
func admitted(rules []networkingv1.NetworkPolicyIngressRule, port int32) (somebody, everybody bool) {
	for _, rule := range rules {
		open := len(rule.Ports) == 0
		for _, p := range rule.Ports {
			open = open || p.Port.IntVal == port
		}
		somebody = somebody || open
		everybody = everybody || open && len(rule.From) == 0
	}
	return somebody, everybody
}

// probed says whether a port is there for the kubelet.
func probed(c corev1.Container, port corev1.ContainerPort) bool {
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if probe != nil && probe.HTTPGet != nil && (probe.HTTPGet.Port == intstr.FromString(port.Name) ||
			probe.HTTPGet.Port == intstr.FromInt32(port.ContainerPort)) {
			return true
		}
	}
	return false
}
