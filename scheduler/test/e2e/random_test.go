package scheduling

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// testRandom: of 20 nodes that fit all pods, each is as likely as any other, and a node that fits none gets none.
func testRandom(l *lab) {
	const nodes, pods = 20, 2000
	ns := l.namespace("random")
	labels := map[string]string{"story": ns}
	names, err := l.AddNodes(l.t.Context(), cluster.NodeOptions{Count: nodes, Pods: pods, Labels: labels})
	if err != nil {
		l.t.Fatal(err)
	}
	closed := []corev1.Taint{{Key: "closed", Effect: corev1.TaintEffectNoSchedule}}
	if _, err := l.AddNodes(l.t.Context(), cluster.NodeOptions{
		Count: 1, Pods: pods, Labels: labels,
		Taints: closed,
	}); err != nil {
		l.t.Fatal(err)
	}
	g := gang{namespace: ns, name: "single", scheduler: "random"}
	l.create(g, 0, pods)
	l.until("all pods are bound", func() bool { return len(l.bound(g)) == pods }, func() string {
		return fmt.Sprintf("%d of %d", len(l.bound(g)), pods)
	})
	on := map[string]float64{}
	for _, p := range l.pods(g) {
		on[p.Spec.NodeName]++
	}
	chi, expected := 0.0, float64(pods)/nodes
	for _, n := range names {
		chi += (on[n] - expected) * (on[n] - expected) / expected
		delete(on, n)
	}
	if len(on) > 0 {
		l.t.Errorf("pods are on nodes that do not fit: %v", on)
	}
	const limit = 43.8 // the 0.999 quantile of chi-squared with 19 degrees of freedom
	l.t.Logf("chi-squared %.1f, limit %.1f", chi, limit)
	if chi > limit {
		l.t.Errorf("chi-squared is %.1f, above %.1f: the nodes are not equally likely", chi, limit)
	}
	if chi < 3 { // the 0.00001 quantile
		l.t.Errorf("chi-squared is %.1f: the pods are spread evenly, not at random", chi)
	}
}
