package generators

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// egress is what a policy says of a pod's connections: rules, or nothing, which leaves them to other policies.
type egress struct {
	rules     []networkingv1.NetworkPolicyEgressRule
	elsewhere bool
}

// anywhere is that of pods which no rule here could know the peers of.
func anywhere(j *job.Job) egress {
	if j.Spec.Network.Egress == job.EgressNamespace {
		return egress{elsewhere: true}
	}
	return egress{rules: []networkingv1.NetworkPolicyEgressRule{{}}}
}

// trainingEgress is that of pods which run the author's program.
func trainingEgress(j *job.Job, members []networkingv1.NetworkPolicyPeer) egress {
	n := &j.Spec.Network
	var to []networkingv1.NetworkPolicyPeer
	switch n.Egress {
	case job.EgressCluster:
		to = []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}
	case job.EgressClosed:
		to = slices.Clone(members)
		for store, component := range map[string]string{
			job.StoreEtcd: componentEtcd, job.StoreCompanion: componentCompanion,
		} {
			if j.Spec.Rendezvous.Store == store {
				to = append(to, peer(j, component))
			}
		}
	default:
		return anywhere(j)
	}
	// A resolver may be a daemon of the node, which no selector of pods finds.
	rules := []networkingv1.NetworkPolicyEgressRule{{To: to}, {Ports: dns()}}
	if port := externalStore(j); port != 0 { // whose address may be a name, of which a policy knows none
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{Ports: tcp(port)})
	}
	if hosts := credentials(j); hosts != nil {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: hosts, Ports: tcp(80)})
	}
	for _, p := range n.AllowTo {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: peers(p), Ports: tcp(numbers(p.Ports)...)})
	}
	return egress{rules: rules}
}

// externalStore is the port of a store that exists, 0 where there is none.
func externalStore(j *job.Job) int {
	if j.Spec.Rendezvous.Store != job.StoreExternal {
		return 0
	}
	endpoint := j.Spec.Rendezvous.Endpoint
	n, _ := strconv.Atoi(endpoint[strings.LastIndex(endpoint, ":")+1:]) // schema.Load read it
	return n
}

// credentials are the addresses on the node that hand out the pods' cloud identity, of both families
// (docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html, and .../AWSEC2/latest/UserGuide of instance
// metadata).
func credentials(j *job.Job) (hosts []networkingv1.NetworkPolicyPeer) {
	var blocks []string
	switch id := j.Spec.Identity; {
	case id == nil:
	case id.PodIdentity != nil:
		blocks = []string{"169.254.170.23/32", "fd00:ec2::23/128"}
	case id.NodeRole != nil:
		blocks = []string{"169.254.169.254/32", "fd00:ec2::254/128"}
	}
	for _, cidr := range blocks {
		hosts = append(hosts, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}})
	}
	return hosts
}

// visitors are who else may connect to workers: those whom the author names, and for metrics everybody unless he names
// some.
func visitors(j *job.Job) (in []networkingv1.NetworkPolicyIngressRule) {
	metrics := j.Spec.Metrics
	named := false
	for _, p := range j.Spec.Network.AllowFrom {
		in = append(in, networkingv1.NetworkPolicyIngressRule{From: peers(p), Ports: tcp(numbers(p.Ports)...)})
		named = named || metrics != nil && slices.Contains(p.Ports, metrics.Port)
	}
	if metrics != nil && !named {
		in = append(in, networkingv1.NetworkPolicyIngressRule{Ports: tcp(int(metrics.Port))})
	}
	return in
}

// watchers are who may read the status of a companion: whom the author names for its port, or for the workers' metrics.
func watchers(j *job.Job) (from []networkingv1.NetworkPolicyPeer) {
	metrics := j.Spec.Metrics
	for _, p := range j.Spec.Network.AllowFrom {
		if slices.Contains(p.Ports, names.RendezvousStatusPort) ||
			metrics != nil && slices.Contains(p.Ports, metrics.Port) {
			from = append(from, peers(p)...)
		}
	}
	return from
}

// peers are pods or addresses as a policy names them.
func peers(p job.Peer) []networkingv1.NetworkPolicyPeer {
	if p.CIDR != "" {
		return []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: p.CIDR}}}
	}
	out := networkingv1.NetworkPolicyPeer{}
	switch {
	case p.Namespace != "": // a label that the API server gives every namespace
		out.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{
			corev1.LabelMetadataName: p.Namespace,
		}}
	case len(p.NamespaceLabels) > 0:
		out.NamespaceSelector = &metav1.LabelSelector{MatchLabels: p.NamespaceLabels}
	}
	if len(p.Pods) > 0 {
		out.PodSelector = &metav1.LabelSelector{MatchLabels: p.Pods}
	}
	return []networkingv1.NetworkPolicyPeer{out}
}

func numbers(ports []int32) []int {
	out := make([]int, len(ports))
	for i, p := range ports {
		out[i] = int(p)
	}
	return out
}
