package generators_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestClosedJobsReachThemselves: with egress closed, every pod of a job whose processes dial each other reaches every
// other one, by ssh, at the coordinator and at ports that nobody knows beforehand, and a resolver; none reaches, or is
// reached by, a pod of another job.
func TestClosedJobsReachThemselves(t *testing.T) {
	for name, c := range map[string]struct {
		spec []string
		port int32
	}{
		"mpi, job":             {[]string{"framework: mpi"}, 12345},
		"mpi, mpijob":          {[]string{"framework: mpi", "target: mpijob"}, 12345},
		"mpi, another port":    {[]string{"framework: mpi", "target: mpijob", "ssh: {port: 2222}"}, 2222},
		"horovod, job":         {[]string{"framework: horovod"}, 12345},
		"horovod, mpijob":      {[]string{"framework: horovod", "target: mpijob"}, 12345},
		"bytescheduler":        {[]string{"framework: bytescheduler", "target: mpijob"}, 12345},
		"jax, job":             {[]string{"framework: jax"}, 6666},
		"jax, jobset":          {[]string{"framework: jax", "target: jobset"}, 6666},
		"jax, trainjob":        {[]string{"framework: jax", "target: trainjob"}, 6666},
		"groups of a JobSet":   {[]string{"target: jobset", "groups: [{name: driver, command: [d]}]"}, 29400},
		"groups of Volcano's":  {[]string{"target: vcjob", "groups: [{name: data, command: [d]}]"}, 29400},
		"sidecars and metrics": {[]string{"framework: mpi", "sidecars: [{name: s, image: \"s:1\"}]"}, 12345},
	} {
		objs := objects(load(t, jobText(append(c.spec, "workers: {replicas: 2}", "network: {egress: closed}")...)))
		policies := all[*networkingv1.NetworkPolicy](objs)
		members := slices.DeleteFunc(pods(objs), func(p pod) bool { return p.role() == "helper" })
		if len(members) == 0 {
			t.Fatalf("%s: no pods", name)
		}
		stranger := map[string]string{"app.kubernetes.io/component": "worker", "tegen.dev/job": "another"}
		for _, from := range members {
			for _, to := range members {
				for _, port := range []int32{c.port, 40123} {
					if !leaves(policies, from.labels, to.labels, port) ||
						!enters(policies, from.labels, to.labels, port) {
						t.Errorf("%s: %s does not reach port %d of %s", name, from.from, port, to.from)
					}
				}
			}
			if !leaves(policies, from.labels, map[string]string{"k8s-app": "kube-dns"}, 53) {
				t.Errorf("%s: %s reaches no resolver", name, from.from)
			}
			if leaves(policies, from.labels, stranger, c.port) || enters(policies, stranger, from.labels, c.port) {
				t.Errorf("%s: %s and another job reach each other", name, from.from)
			}
		}
	}
}

// leaves says whether the policies let a pod connect to a port of another in its namespace.
func leaves(policies []*networkingv1.NetworkPolicy, from, to map[string]string, port int32) bool {
	closed := false
	for _, p := range policies {
		if !selects(&p.Spec.PodSelector, from) || !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			continue
		}
		closed = true
		for _, rule := range p.Spec.Egress {
			if admits(rule.To, rule.Ports, to, port) {
				return true
			}
		}
	}
	return !closed
}

// enters says whether they let it in there.
func enters(policies []*networkingv1.NetworkPolicy, from, to map[string]string, port int32) bool {
	closed := false
	for _, p := range policies {
		if !selects(&p.Spec.PodSelector, to) {
			continue
		}
		closed = true
		for _, rule := range p.Spec.Ingress {
			if admits(rule.From, rule.Ports, from, port) {
				return true
			}
		}
	}
	return !closed
}

// admits says whether a rule is for a pod of the policy's namespace, and for a port.
func admits(peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, other map[string]string,
	port int32,
) bool {
	is := func(p networkingv1.NetworkPolicyPort) bool { return p.Port == nil || p.Port.IntVal == port }
	among := func(p networkingv1.NetworkPolicyPeer) bool {
		return p.IPBlock == nil && p.NamespaceSelector == nil && selects(p.PodSelector, other)
	}
	return (len(ports) == 0 || slices.ContainsFunc(ports, is)) && (len(peers) == 0 || slices.ContainsFunc(peers, among))
}

func selects(selector *metav1.LabelSelector, pod map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(pod))
}
