package scheduling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/test/cluster"
)

// TestRandom: of 20 nodes that fit all pods, each is as likely as any other, and a node that fits none gets none.
func TestRandom(t *testing.T) {
	l := newLab(t, cluster.Options{})
	const nodes, pods = 20, 2000
	names, err := l.AddNodes(t.Context(), cluster.NodeOptions{Count: nodes, Pods: pods})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.AddNodes(t.Context(), cluster.NodeOptions{Count: 1, Pods: pods, Taints: []corev1.Taint{{Key: "closed", Effect: corev1.TaintEffectNoSchedule}}}); err != nil {
		t.Fatal(err)
	}
	ns := l.namespace("random")
	g := gang{namespace: ns, name: "single", scheduler: "random"}
	g.with = func(p *corev1.Pod) { p.Spec.NodeSelector = nil }
	l.create(g, 0, pods)
	l.until("all pods are bound", func() (string, bool) {
		n := len(l.bound(g))
		return fmt.Sprintf("%d of %d", n, pods), n == pods
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
		t.Errorf("pods are on nodes that do not fit: %v", on)
	}
	const limit = 43.8 // the 0.999 quantile of chi-squared with 19 degrees of freedom
	t.Logf("chi-squared %.1f, limit %.1f", chi, limit)
	if chi > limit {
		t.Errorf("chi-squared is %.1f, above %.1f: the nodes are not equally likely", chi, limit)
	}
	if chi < 3 { // the 0.00001 quantile
		t.Errorf("chi-squared is %.1f: the pods are spread evenly, not at random", chi)
	}
}
