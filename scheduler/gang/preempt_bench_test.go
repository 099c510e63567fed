package gang

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkPreempt finds who is evicted for a gang on nodes that are full of pods that are as important as each other,
// or not.
func BenchmarkPreempt(b *testing.B) {
	start := metav1.Now()
	for name, c := range map[string]struct {
		nodes, members int
		priorities     int32
		with           []func(*corev1.Pod)
	}{
		"1000 nodes, 100":             {1000, 100, 7, nil},
		"1000 nodes, 100 apart":       {1000, 100, 7, []func(*corev1.Pod){apart}},
		"1000 nodes, in vain":         {1000, 8001, 7, nil},
		"5000 nodes, 100":             {5000, 100, 5000, nil},
		"5000 nodes, 100, all alike":  {5000, 100, 1, nil},
		"5000 nodes, 1000, all alike": {5000, 1000, 1, nil},
	} {
		b.Run(name, func(b *testing.B) {
			var nodes []*corev1.Node
			var running []*corev1.Pod
			for i := range c.nodes {
				node := fmt.Sprintf("n%d", i)
				nodes = append(nodes, machine(node, 8))
				for k := range 4 {
					p := worker(fmt.Sprintf("r%d-%d", i, k), "", 0, 2, node, int32(i)%c.priorities)
					p.Status.StartTime = &start
					running = append(running, p)
				}
			}
			g := newPlugin(b, nodes, running)
			gang := workers("g", c.members, c.members, 1, c.with...)
			for _, p := range gang {
				p.Spec.Priority = new(int32)
				*p.Spec.Priority = 10000
				g.shared.seen(nil, p)
			}
			for b.Loop() {
				evicted(b, g, gang[0])
			}
		})
	}
}
