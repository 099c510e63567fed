package generators

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
)

// network closes the job to everyone else. What pods connect to is open unless the job says otherwise, but for those of
// its store: training reads S3, hubs and trackers that no policy here could know.
func network(job *schema.Job) []runtime.Object {
	if !job.Spec.Network.Policy {
		return nil
	}
	var components []string
	for _, r := range roles(job) {
		components = append(components, r.component)
	}
	components = append(components, outsiders(job)...)
	var members []networkingv1.NetworkPolicyPeer
	for _, c := range components {
		members = append(members, peer(job, c))
	}
	var out []runtime.Object
	for _, c := range components {
		// Every port: rank 0's store takes a random one.
		in, to := []networkingv1.NetworkPolicyIngressRule{{From: members}}, anywhere(job)
		if c == componentWorker {
			in = append(in, visitors(job)...)
		}
		if !slices.Contains(outsiders(job), c) { // which ask the Kubernetes API
			to = trainingEgress(job, members)
		}
		out = append(out, policy(job, c, in, to))
	}
	if job.Spec.Rendezvous.Store == schema.StoreEtcd {
		etcd, client := peer(job, componentEtcd), int(etcdPort(job))
		out = append(out, policy(job, componentEtcd,
			[]networkingv1.NetworkPolicyIngressRule{
				{From: append(members, etcd), Ports: tcp(client)},
				{From: []networkingv1.NetworkPolicyPeer{etcd}, Ports: tcp(names.EtcdPeerPort)},
			},
			egress{rules: []networkingv1.NetworkPolicyEgressRule{
				{To: []networkingv1.NetworkPolicyPeer{etcd}, Ports: tcp(client, names.EtcdPeerPort)},
				{Ports: dns()},
			}}))
	}
	if job.Spec.Rendezvous.Store == schema.StoreCompanion {
		out = append(out, companionPolicy(job, members, watchers(job)...))
	}
	if len(datasets(job)) > 0 {
		out = append(out, policy(job, componentPrefetch, nil, anywhere(job)))
	}
	if makesKeys(job) {
		out = append(out, policy(job, componentKeygen, nil, anywhere(job)))
	}
	return out
}

func policy(job *schema.Job, component string, in []networkingv1.NetworkPolicyIngressRule,
	out egress,
) *networkingv1.NetworkPolicy {
	types := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if !out.elsewhere {
		types = append(types, networkingv1.PolicyTypeEgress)
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(job, job.Metadata.Name+"-"+component, component),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector(job, component)},
			PolicyTypes: types,
			Ingress:     in,
			Egress:      out.rules,
		},
	}
}

func peer(job *schema.Job, component string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: selector(job, component)}}
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
