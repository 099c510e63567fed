package gang

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestGatherVictims asks who is evicted for a gang of priority 100 that gathers.
func TestGatherVictims(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		nodes   map[string]int
		running []*corev1.Pod
		gang    []*corev1.Pod
		evicted string // "-" where nobody is
	}{
		"in one rack": {
			reason: "all of one rack goes, though the least important pods are in two",
			nodes:  map[string]int{"a1": 1, "a2": 1, "b1": 1, "b2": 1},
			running: []*corev1.Pod{
				worker("a1", "", 0, 1, "a1", 1), worker("a2", "", 0, 1, "a2", 5), worker("b1", "", 0, 1, "b1", 1),
				worker("b2", "", 0, 1, "b2", 9),
			},
			gang: workers("g", 2, 2, 1, must), evicted: "a1 a2",
		},
		"where least is lost": {
			reason: "one pod rather than two", nodes: map[string]int{"a1": 1, "a2": 1, "b1": 1, "b2": 1},
			running: []*corev1.Pod{
				worker("a1", "", 0, 1, "a1", 1), worker("a2", "", 0, 1, "a2", 1), worker("b2", "", 0, 1, "b2", 1),
			},
			gang: workers("g", 2, 2, 1, must), evicted: "b2",
		},
		"beside others": {
			reason: "those on a node with room stay, and do not count against its rack",
			nodes:  map[string]int{"a1": 1, "a2": 1, "b1": 1, "b2": 1},
			running: []*corev1.Pod{
				worker("c1", "", 0, 0, "a1", 1), worker("c2", "", 0, 0, "a1", 1), worker("p", "", 0, 1, "a2", 1),
				worker("q1", "", 0, 1, "b1", 1), worker("q2", "", 0, 1, "b2", 1),
			},
			gang: workers("g", 2, 2, 1, must), evicted: "p",
		},
		"in vain": {
			reason: "no rack would hold it even then", nodes: map[string]int{"a1": 1, "b1": 1},
			running: []*corev1.Pod{worker("a1", "", 0, 1, "a1", 1)}, gang: workers("g", 2, 2, 1, must), evicted: "-",
		},
		"where others are": {
			reason: "room elsewhere is no room", nodes: map[string]int{"a1": 2, "b1": 1},
			running: []*corev1.Pod{
				worker("g-9", "g", 2, 1, "a1", 100, must), worker("p", "", 0, 1, "a1", 50),
				worker("q", "", 0, 1, "b1", 1),
			},
			gang: workers("g", 1, 2, 1, must), evicted: "p",
		},
		"for a late one": {
			reason: "a member that joins a gang has room made near it", nodes: map[string]int{"a1": 2, "b1": 2},
			running: []*corev1.Pod{
				worker("g-9", "g", 1, 1, "a1", 100, must), worker("p", "", 0, 1, "a1", 50),
			},
			gang: workers("g", 1, 1, 1, must), evicted: "p",
		},
		"preferred": {
			reason:  "nobody goes so that pods are nearer to each other",
			nodes:   map[string]int{"a1": 2, "b1": 1},
			running: []*corev1.Pod{worker("p5", "", 0, 2, "a1", 5), worker("p1", "", 0, 1, "b1", 1)},
			gang:    workers("g", 1, 1, 1, gathers("prefer rack")), evicted: "p1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newPlugin(t, racks(c.nodes), c.running)
			for _, p := range c.gang {
				g.shared.seen(nil, p)
			}
			if diff := cmp.Diff(c.evicted, evicted(t, g, c.gang[0])); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestGatherPrefilter asks where single pods may go.
func TestGatherPrefilter(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		running []*corev1.Pod
		gang    []*corev1.Pod
		node    string // "" for any
		problem string
	}{
		"the leader": {
			reason: "it takes the place of the plan", gang: workers("g", 2, 2, 1, must), node: "b1",
		},
		"a leader whose place is not in the plan": {
			reason: "the slice that has begun goes first, and until then the others go nowhere",
			running: []*corev1.Pod{
				worker("g-2", "g", 2, 1, "a1", 100, must, sliced(2)),
			},
			gang: []*corev1.Pod{
				worker("g-0", "g", 2, 1, "", 100, must, sliced(2)), worker("g-3", "g", 2, 1, "", 100, must, sliced(2)),
			},
			problem: "gang a/g places other pods first",
		},
		"a late one": {
			reason:  "it is held to the rack",
			running: []*corev1.Pod{worker("g-9", "g", 1, 1, "a1", 100, must)}, gang: workers("g", 1, 1, 1, must),
			node: "a1",
		},
		"a late one without room": {
			reason:  "it is refused in the words of its gang",
			running: []*corev1.Pod{worker("g-9", "g", 1, 3, "b1", 100, must)}, gang: workers("g", 1, 1, 1, must),
			problem: "gang a/g needs a place for pod g-0",
		},
		"a late one that would rather be near": {
			reason:  "without room there it may go anywhere",
			running: []*corev1.Pod{worker("g-9", "g", 1, 3, "b1", 100, gathers("prefer rack"))},
			gang:    workers("g", 1, 1, 1, gathers("prefer rack")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newPlugin(t, racks(map[string]int{"a1": 8, "b1": 3}), c.running)
			for _, p := range c.gang {
				g.shared.seen(nil, p)
			}
			result, status := g.PreFilter(t.Context(), framework.NewCycleState(), c.gang[0], nil)
			node := ""
			if result != nil {
				node = strings.Join(result.NodeNames.UnsortedList(), " ")
			}
			if node != c.node {
				t.Errorf("%s: node %q, want %q", c.reason, node, c.node)
			}
			if !strings.Contains(status.Message(), c.problem) || status.IsRejected() != (c.problem != "") {
				t.Errorf("%s: %v, want %q", c.reason, status, c.problem)
			}
		})
	}
}
