package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// Where a gang gathers.
const (
	mustGather   = `{"gatherStrategy":[{"layer":"example.com/rack","strategy":"MustGather"}]}`
	preferGather = `{"gatherStrategy":[{"layer":"example.com/rack","strategy":"PreferGather"}]}`
)

// rack adds nodes of a rack, or without one where its name is empty, and returns their names.
func (l *lab) rack(story, rack string, n, gpus int) []string {
	l.t.Helper()
	labels := map[string]string{"story": story}
	if rack != "" {
		labels[cluster.RackLabel] = story + "-" + rack // stories run side by side
	}
	names, err := l.AddNodes(l.t.Context(), cluster.NodeOptions{Count: n, GPUs: gpus, Labels: labels})
	if err != nil {
		l.t.Fatal(err)
	}
	return names
}

// heard waits until the scheduler knows the last of some nodes, by a pod that may run nowhere else: it hears of nodes
// and of pods each by a watch of their own, so a gang that follows at once could gather before the smallest rack is
// there.
func (l *lab) heard(story string, nodes []string) {
	l.t.Helper()
	g := of(story, "probe", 1, 1, 0)
	g.with = func(p *corev1.Pod) {
		p.Annotations = nil
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: nodes[len(nodes)-1]}
	}
	l.create(g, 0, 1)
	l.until("the scheduler knows the nodes", func() bool { return len(l.bound(g)) == 1 }, l.sight(g))
	l.drop(g)
	l.gone(g, 0)
}

// racks counts the bound pods of a gang by rack: "3 in a, 1 in b".
func (l *lab) racks(g gang) string {
	l.t.Helper()
	count := map[string]int{}
	for _, p := range l.pods(g) {
		if p.Spec.NodeName == "" {
			continue
		}
		node, err := l.Client().CoreV1().Nodes().Get(l.t.Context(), p.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			l.t.Fatal(err)
		}
		count[strings.TrimPrefix(node.Labels[cluster.RackLabel], g.namespace+"-")]++
	}
	var out []string
	for _, rack := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%d in %s", count[rack], rack))
	}
	return strings.Join(out, ", ")
}

// gathered waits until the pods of a gang run in some racks, and that this lasts.
func (l *lab) gathered(g gang, want string) {
	l.t.Helper()
	n := 0
	for part := range strings.SplitSeq(want, ", ") {
		count, err := strconv.Atoi(strings.Fields(part)[0])
		if err != nil {
			l.t.Fatal(err)
		}
		n += count
	}
	l.runs(g, n)
	if got := l.racks(g); got != want {
		l.t.Errorf("gang %s runs with %s, want %s", g.name, got, want)
	}
}

// inSlices gives the pods of a gang ranks, and puts so many of them into a slice.
func (g gang) inSlices(size int) gang {
	g.with = func(p *corev1.Pod) {
		p.Annotations[gangcache.SliceKey] = strconv.Itoa(size)
		p.Labels["batch.kubernetes.io/job-completion-index"] = p.Name[strings.LastIndex(p.Name, "-")+1:]
	}
	return g
}

// testTopology tells stories of gangs that gather.
func testTopology(l *lab) {
	l.story("smallest-rack", func(l *lab, ns string) {
		l.rack(ns, "a", 2, 4)
		l.rack(ns, "b", 1, 5)
		l.heard(ns, l.rack(ns, "", 2, 8))
		g := of(ns, "g", 4, 4, 1, gangcache.TopologyKey, mustGather)
		l.create(g, 0, 4)
		l.gathered(g, "4 in b")
		l.create(g, 4, 6) // one finds room beside the others, and the next waits for it
		l.gathered(g, "5 in b")
		l.reported(g, "has none in smallest-rack-b, where others of it are", "1 Insufficient nvidia.com/gpu")
		l.rack(ns, "b", 1, 1)
		l.gathered(g, "6 in b")
		l.delete(ns, "g-0", "g-1")
		l.gone(g, 4)
		l.create(g, 6, 8) // in their place, under names of their own, while the other rack is the smallest with room
		l.gathered(g, "6 in b")
	})

	l.story("no-rack", func(l *lab, ns string) {
		l.rack(ns, "a", 1, 3)
		l.rack(ns, "b", 1, 2)
		bare := l.rack(ns, "", 1, 8)
		g := of(ns, "g", 4, 4, 1, gangcache.TopologyKey, mustGather)
		l.create(g, 0, 4)
		l.reported(g, "gang no-rack/g needs 4 pods at once in one domain of example.com/rack and has room for 3 in "+
			"no-rack-a, the best of", "none for pod g-0: 1 Insufficient nvidia.com/gpu")
		l.stays(g, 0)
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"no-rack-a"}}}`, cluster.RackLabel)
		if _, err := l.Client().CoreV1().Nodes().Patch(l.t.Context(), bare[0], types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			l.t.Fatal(err)
		}
		l.gathered(g, "4 in a")
	})

	l.story("preferred", func(l *lab, ns string) {
		l.rack(ns, "a", 1, 4)
		l.heard(ns, l.rack(ns, "b", 1, 3))
		near := of(ns, "near", 3, 3, 1, gangcache.TopologyKey, preferGather)
		l.create(near, 0, 3)
		l.gathered(near, "3 in b")
		l.drop(near)
		l.gone(near, 0)
		far := of(ns, "far", 6, 6, 1, gangcache.TopologyKey, preferGather)
		l.create(far, 0, 6)
		l.runs(far, 6)
	})

	l.story("slices", func(l *lab, ns string) {
		l.rack(ns, "a", 1, 3)
		l.heard(ns, l.rack(ns, "b", 2, 1))
		g := of(ns, "g", 4, 4, 1, gangcache.TopologyKey, mustGather).inSlices(2)
		l.create(g, 0, 4)
		l.gathered(g, "2 in a, 2 in b")
		whole := of(ns, "whole", 2, 2, 1, gangcache.TopologyKey, mustGather).inSlices(2)
		l.create(whole, 0, 2)
		l.reported(whole, "the 2 of slice 0 in one domain of example.com/rack and has room for 1 in slices-a")
		l.stays(whole, 0)
	})

	l.story("roles-together", func(l *lab, ns string) {
		l.rack(ns, "a", 1, 3)
		l.heard(ns, l.rack(ns, "b", 1, 4))
		group := fmt.Sprintf(`["%s/workers","%s/driver"]`, ns, ns)
		workers := of(ns, "workers", 3, 3, 1, gangcache.TopologyKey, mustGather, gangcache.GroupsKey, group)
		driver := of(ns, "driver", 1, 1, 1, gangcache.TopologyKey, mustGather, gangcache.GroupsKey, group)
		l.create(workers, 0, 3)
		l.create(driver, 0, 1)
		l.gathered(workers, "3 in b")
		l.gathered(driver, "1 in b")
	})

	l.story("one-by-one", func(l *lab, ns string) {
		l.rack(ns, "a", 1, 2)
		l.heard(ns, l.rack(ns, "b", 1, 4))
		g := of(ns, "g", 4, 4, 1, gangcache.TopologyKey, mustGather, gangcache.ModeKey, "NonStrict",
			gangcache.WaitingTime, "5s")
		l.create(g, 0, 4)
		l.gathered(g, "4 in b")
	})

	l.story("no-rank", func(l *lab, ns string) {
		l.rack(ns, "a", 1, 2)
		g := of(ns, "g", 2, 2, 1, gangcache.TopologyKey, mustGather)
		g.with = func(p *corev1.Pod) { p.Annotations[gangcache.SliceKey] = "2" }
		l.create(g, 0, 2)
		l.reported(g, "annotation gang.tegen.dev/topology-slice needs the pod's rank")
		l.stays(g, 0)
	})
}
