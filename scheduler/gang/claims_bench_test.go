package gang

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BenchmarkDryRunDevices looks for room for a gang each of whose pods claims all devices of a node; with one pod too
// many it finds none.
func BenchmarkDryRunDevices(b *testing.B) {
	const nodes = 250
	for _, pods := range []int{nodes, nodes + 1} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			objects := []runtime.Object{deviceClasses()}
			var machines []*corev1.Node
			for i := range nodes {
				name := fmt.Sprintf("n-%d", i)
				machines = append(machines, machine(name, 0))
				objects = append(objects, devices(name, 8))
			}
			gang := workers("g", pods, pods, 0, claiming)
			for _, p := range gang {
				objects = append(objects, generate(p, 8))
			}
			g := newPlugin(b, machines, nil, objects...)
			for _, p := range gang {
				g.shared.seen(nil, p)
			}
			wants := g.shared.cache.Attempt(uidOf(gang[0])).Wants
			for b.Loop() {
				p, _, err := g.dryRun(b.Context(), wants)
				if err != nil || (p != nil) != (pods == nodes) {
					b.Fatalf("room was found: %t, %v", p != nil, err)
				}
			}
		})
	}
}

// BenchmarkPreemptDevices finds nobody to evict for a gang that lacks devices only: evictions would free all else.
func BenchmarkPreemptDevices(b *testing.B) {
	objects := []runtime.Object{deviceClasses()}
	var nodes []*corev1.Node
	var running []*corev1.Pod
	for i := range 500 {
		name := fmt.Sprintf("n-%d", i)
		nodes = append(nodes, machine(name, 8))
		objects = append(objects, devices(name, 4))
		for k := range 4 {
			running = append(running, worker(fmt.Sprintf("r-%d-%d", i, k), "", 0, 2, name, 1))
		}
	}
	gang := workers("g", 64, 64, 1, claiming)
	for _, p := range gang {
		objects = append(objects, generate(p, 8))
	}
	g := newPlugin(b, nodes, running, objects...)
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	for b.Loop() {
		if got := evicted(b, g, gang[0]); got != "-" {
			b.Fatalf("evicted %s", got)
		}
	}
}
