package gang

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkDryRun looks for room for a gang on 1,000 nodes in 50 racks, whose members may be anywhere, must be in one
// rack or had better be, or must in vain; or of which each has the volume that an API server gives it.
func BenchmarkDryRun(b *testing.B) {
	var nodes []*corev1.Node
	for i := range 1000 {
		nodes = append(nodes, machine(fmt.Sprintf("node-%d", i), 8, func(n *corev1.Node) {
			n.Labels["rack"] = fmt.Sprintf("rack-%d", i/20)
		}))
	}
	for _, size := range []int{10, 100} {
		for _, c := range []struct {
			name string
			with []func(*corev1.Pod)
			gpus int
		}{
			{"anywhere", nil, 1},
			{"required", []func(*corev1.Pod){must}, 1},
			{"preferred", []func(*corev1.Pod){gathers("prefer rack")}, 1},
			{"anywhere with tokens", []func(*corev1.Pod){token}, 1},
			{"anywhere in vain", nil, 9},
			{"required in vain", []func(*corev1.Pod){must}, 9},
		} {
			b.Run(fmt.Sprintf("%d %s", size, c.name), func(b *testing.B) {
				g := newPlugin(b, nodes, nil)
				gang := workers("g", size, size, c.gpus, c.with...)
				for _, p := range gang {
					g.shared.seen(nil, p)
				}
				wants := g.shared.cache.Attempt(uidOf(gang[0])).Wants
				for b.Loop() {
					if _, _, err := g.dryRun(b.Context(), wants); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkDryRunRefusal looks in vain for room for a gang of one pod more than there are nodes, each of which takes
// one.
func BenchmarkDryRunRefusal(b *testing.B) {
	var nodes []*corev1.Node
	for i := range 5000 {
		nodes = append(nodes, machine(fmt.Sprintf("node-%d", i), 8))
	}
	g := newPlugin(b, nodes, nil)
	gang := workers("g", len(nodes)+1, len(nodes)+1, 5, token)
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	wants := g.shared.cache.Attempt(uidOf(gang[0])).Wants
	for b.Loop() {
		_, short, err := g.dryRun(b.Context(), wants)
		if err != nil || short == nil || short.placed != len(nodes) {
			b.Fatal(short, err)
		}
	}
}

// token is the volume with a token of the account, whose name is made by chance for each pod.
func token(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
		Name:         "kube-api-access-" + p.Name,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}},
	})
}
