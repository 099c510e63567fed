package generators

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// network closes the job to everyone else. What pods connect to is open unless the job says otherwise, but for those of
// its store: training reads S3, hubs and trackers that no policy here could know.
func network(j *job.Job) []runtime.Object {
	if !j.Spec.Network.Policy {
		return nil
	}
	var components []string
	for _, r := range roles(j) {
		components = append(components, r.component)
	}
	components = append(components, outsiders(j)...)
	var members []networkingv1.NetworkPolicyPeer
	for _, c := range components {
		members = append(members, peer(j, c))
	}
	var out []runtime.Object
	for _, c := range components {
		// Every port: rank 0's store takes a random one.
		in, to := []networkingv1.NetworkPolicyIngressRule{{From: members}}, anywhere(j)
		if c == componentWorker {
			in = append(in, visitors(j)...)
		}
		if !slices.Contains(outsiders(j), c) { // which ask the Kubernetes API
			to = trainingEgress(j, members)
		}
		out = append(out, policy(j, c, in, to))
	}
	if j.Spec.Rendezvous.Store == job.StoreEtcd {
		etcd, client := peer(j, componentEtcd), int(etcdPort(j))
		out = append(out, policy(j, componentEtcd,
			[]networkingv1.NetworkPolicyIngressRule{
				{From: append(members, etcd), Ports: tcp(client)},
				{From: []networkingv1.NetworkPolicyPeer{etcd}, Ports: tcp(names.EtcdPeerPort)},
			},
			egress{rules: []networkingv1.NetworkPolicyEgressRule{
				{To: []networkingv1.NetworkPolicyPeer{etcd}, Ports: tcp(client, names.EtcdPeerPort)},
				{Ports: dns()},
			}}))
	}
	if j.Spec.Rendezvous.Store == job.StoreCompanion {
		out = append(out, companionPolicy(j, members, watchers(j)...))
	}
	if len(datasets(j)) > 0 {
		out = append(out, policy(j, componentPrefetch, nil, anywhere(j)))
	}
	if makesKeys(j) {
		out = append(out, policy(j, componentKeygen, nil, anywhere(j)))
	}
	return out
}

func policy(j *job.Job, component string, in []networkingv1.NetworkPolicyIngressRule,
	out egress,
) *networkingv1.NetworkPolicy {
	types := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if !out.elsewhere {
		types = append(types, networkingv1.PolicyTypeEgress)
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(j, j.Metadata.Name+"-"+component, component),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector(j, component)},
			PolicyTypes: types,
			Ingress:     in,
			Egress:      out.rules,
		},
	}
}

func peer(j *job.Job, component string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: selector(j, component)}}
}

func tcp(ports ...int) []networkingv1.NetworkPolicyPort {
	out := make([]networkingv1.NetworkPolicyPort, len(ports))
	for i, p := range ports {
		out[i] = networkingv1.NetworkPolicyPort{Protocol: ptr(corev1.ProtocolTCP), Port: ptr(intstr.FromInt(p))}
	}
	return out
}

func dns() []networkingv1.NetworkPolicyPort {
	return []networkingv1.NetworkPolicyPort{
		{Protocol: ptr(corev1.ProtocolUDP), Port: ptr(intstr.FromInt(53))},
		{Protocol: ptr(corev1.ProtocolTCP), Port: ptr(intstr.FromInt(53))},
	}
}
