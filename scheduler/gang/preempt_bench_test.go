package gang

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkPreempt finds who is evicted for a gang on 1,000 nodes that are full.
func BenchmarkPreempt(b *testing.B) {
	for name, c := range map[string]struct {
		members int
		with    []func(*corev1.Pod)
	}{
		"100":       {100, nil},
		"1000":      {1000, nil},
		"100 apart": {100, []func(*corev1.Pod){apart}},
		"in vain":   {8001, nil},
	} {
		b.Run(name, func(b *testing.B) {
			var nodes []*corev1.Node
			var running []*corev1.Pod
			for i := range 1000 {
				node := fmt.Sprintf("n%d", i)
				nodes = append(nodes, machine(node, 8))
				for k := range 4 {
					running = append(running, worker(fmt.Sprintf("r%d-%d", i, k), "", 0, 2, node, int32(i%7)))
				}
			}
			g := newPlugin(b, nodes, running)
			gang := workers("g", c.members, c.members, 1, c.with...)
			for _, p := range gang {
				g.shared.seen(nil, p)
			}
			for b.Loop() {
				evicted(b, g, gang[0])
			}
		})
	}
}
