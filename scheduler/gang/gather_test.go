package gang

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// racks are nodes by their names: a2 is the second of rack a, in zone z where the word is z/a2; -3 is a node without a
// rack. Each has so many GPUs.
func racks(gpus map[string]int) []*corev1.Node {
	var out []*corev1.Node
	for name, n := range gpus {
		zone, name, ok := strings.Cut(name, "/")
		if !ok {
			zone, name = "", zone
		}
		out = append(out, machine(name, n, func(node *corev1.Node) {
			if rack := name[:1]; rack != "-" {
				node.Labels["rack"] = rack
			}
			if ok {
				node.Labels["zone"] = zone
			}
		}))
	}
	return out
}

// gathers lets a pod gather in layers: "must rack prefer zone".
func gathers(layers string) func(*corev1.Pod) {
	words := strings.Fields(layers)
	var rules []string
	for i := 0; i < len(words); i += 2 {
		strategy := map[string]string{"must": "MustGather", "prefer": "PreferGather"}[words[i]]
		rules = append(rules, fmt.Sprintf(`{"layer":%q,"strategy":%q}`, words[i+1], strategy))
	}
	return func(p *corev1.Pod) {
		p.Annotations[gangcache.Prefix+gangcache.TopologyKey] = `{"gatherStrategy":[` + strings.Join(rules, ",") + `]}`
	}
}

// sliced puts a pod, whose name ends in its rank, into a slice.
func sliced(size int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations[gangcache.SliceKey] = strconv.Itoa(size)
		p.Labels["batch.kubernetes.io/job-completion-index"] = p.Name[strings.LastIndex(p.Name, "-")+1:]
	}
}

func inGroup(p *corev1.Pod) {
	p.Annotations[gangcache.Prefix+gangcache.GroupsKey] = `["a/g","a/h"]`
}

// withRunning lets a gang that lost pods be placed as a gang again.
func withRunning(p *corev1.Pod) {
	p.Annotations[gangcache.Prefix+gangcache.MatchPolicy] = "waiting-and-running"
}

func notStrict(p *corev1.Pod) { p.Annotations[gangcache.Prefix+gangcache.ModeKey] = "NonStrict" }

var must = gathers("must rack")

// TestGather asks where gangs go, or what is said where they go nowhere. A gang of more pods than its minimum has the
// minimum placed.
func TestGather(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		nodes   map[string]int // GPUs
		with    func(*corev1.Node)
		running []*corev1.Pod
		gang    []*corev1.Pod
		want    string
	}{
		"the smallest that holds it": {
			reason: "the large racks stay free for large gangs, and the small ones do not hold it",
			nodes:  map[string]int{"a1": 8, "a2": 8, "b1": 2, "b2": 3, "c1": 3}, gang: workers("g", 4, 4, 1, must),
			want: "4 in b",
		},
		"by what is free": {
			reason: "not by what the rack has", nodes: map[string]int{"a1": 8, "b1": 5},
			running: []*corev1.Pod{worker("r", "", 0, 4, "a1", 0)}, gang: workers("g", 4, 4, 1, must), want: "4 in a",
		},
		"of equals the first by name": {
			reason: "the same cluster and the same gang give the same rack",
			nodes:  map[string]int{"c1": 4, "b1": 4, "d1": 4}, gang: workers("g", 4, 4, 1, must), want: "4 in b",
		},
		"pods that a node does not hold": {
			reason: "four GPUs free on four nodes are no room for pods of two",
			nodes:  map[string]int{"a1": 1, "a2": 1, "a3": 1, "a4": 1, "b1": 4, "b2": 4},
			gang:   workers("g", 2, 2, 2, must), want: "2 in b",
		},
		"none holds it": {
			reason: "there is room for all, but not in one rack; the message names the rack that comes nearest",
			nodes:  map[string]int{"a1": 2, "b1": 3, "b2": 0, "c1": 1}, gang: workers("g", 4, 4, 1, must),
			want: "gang a/g needs 4 pods at once in one domain of rack and has room for 3 in b, the best of 3, " +
				"none for pod g-0: 2 Insufficient nvidia.com/gpu",
		},
		"none holds it by its filters": {
			reason: "the room that was counted is not what filters see",
			nodes:  map[string]int{"a1": 4, "b1": 4, "b2": 1}, with: func(n *corev1.Node) {
				if strings.HasSuffix(n.Name, "1") {
					closed(n)
				}
			}, gang: workers("g", 2, 2, 1, must),
			want: "gang a/g needs 2 pods at once in one domain of rack and has room for 1 in b, the best of 2, " +
				"none for pod g-0: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)",
		},
		"none holds it where it may be": {
			reason: "racks of other nodes are no room, however much is free there",
			nodes:  map[string]int{"a1": 8, "b1": 1, "c1": 8}, with: func(n *corev1.Node) {
				n.Labels["machine"] = map[string]string{"b1": "new"}[n.Name]
			}, gang: workers("g", 2, 2, 1, must, func(p *corev1.Pod) {
				p.Spec.NodeSelector = map[string]string{"machine": "new"}
			}),
			want: "gang a/g needs 2 pods at once in one domain of rack and has room for 1 in b, the best of 3, " +
				"none for pod g-0: 1 Insufficient nvidia.com/gpu",
		},
		"the next where the filters refuse": {
			reason: "the smallest by count is closed", nodes: map[string]int{"a1": 2, "b1": 3},
			with: func(n *corev1.Node) {
				if n.Name == "a1" {
					closed(n)
				}
			}, gang: workers("g", 2, 2, 1, must), want: "2 in b",
		},
		"what was tried in vain leaves nothing behind": {
			reason: "rack b takes one of those that keep apart, and is free again for the other gang of the group",
			nodes:  map[string]int{"b1": 3, "c1": 2, "c2": 2},
			gang: append(
				workers("g", 2, 2, 1, apart, must, inGroup), workers("h", 1, 1, 3, gathers("must zone"), inGroup)...),
			with: func(n *corev1.Node) { n.Labels["zone"] = "z" },
			want: "1 in b, 2 in c",
		},
		"no labels": {
			reason: "a node without the label is in no domain", nodes: map[string]int{"-1": 8, "-2": 8},
			gang: workers("g", 4, 4, 1, must),
			want: "gang a/g needs 4 pods at once in one domain of rack, and no node is in one",
		},
		"some labels": {
			reason: "a node without the label is no room", nodes: map[string]int{"-1": 8, "a1": 1},
			gang: workers("g", 2, 2, 1, must),
			want: "gang a/g needs 2 pods at once in one domain of rack and has room for 1 in a, the best of 1, " +
				"none for pod g-0: 1 Insufficient nvidia.com/gpu",
		},
		"preferred": {
			reason: "one that holds it is taken", nodes: map[string]int{"a1": 8, "b1": 4, "-1": 4},
			gang: workers("g", 4, 4, 1, gathers("prefer rack")), want: "4 in b",
		},
		"preferred in vain": {
			reason: "it goes anywhere where none holds it", nodes: map[string]int{"a1": 2, "b1": 2},
			gang: workers("g", 4, 4, 1, gathers("prefer rack")), want: "2 in a, 2 in b",
		},
		"preferred, and there is not room": {
			reason: "the message is that of a gang that may be anywhere", nodes: map[string]int{"a1": 2, "b1": 1},
			gang: workers("g", 4, 4, 1, gathers("prefer rack")),
			want: "gang a/g needs 4 pods at once and has room for 3, none for pod g-0: 2 Insufficient nvidia.com/gpu",
		},
		"two layers": {
			reason: "in one zone, and there in one rack, as long as one holds it",
			nodes:  map[string]int{"y/a1": 2, "y/b1": 9, "z/c1": 2, "z/d1": 5},
			gang:   workers("g", 4, 4, 1, gathers("prefer rack must zone")), want: "4 in d",
		},
		"two layers, the narrower given up": {
			reason: "no rack holds it; the zone is not given up",
			nodes:  map[string]int{"y/a1": 2, "y/b1": 1, "z/c1": 2, "z/d1": 2},
			gang:   workers("g", 4, 4, 1, gathers("prefer rack must zone")), want: "2 in c, 2 in d",
		},
		"two preferred layers": {
			reason: "the narrower is given up first, whichever is named first",
			nodes:  map[string]int{"y/a1": 2, "y/b1": 1, "z/c1": 2, "z/d1": 2},
			gang:   workers("g", 4, 4, 1, gathers("prefer zone prefer rack")), want: "2 in c, 2 in d",
		},
		"two required layers": {
			reason: "a rack of one name in two zones is two domains",
			nodes:  map[string]int{"y/a1": 2, "z/a2": 2}, gang: workers("g", 3, 3, 1, gathers("must zone must rack")),
			want: "gang a/g needs 3 pods at once in one domain of zone and rack and has room for 2 in y, a, " +
				"the best of 2, none for pod g-0: 1 Insufficient nvidia.com/gpu",
		},
		"more pods than the minimum": {
			reason: "a rack that holds all is better than one that holds the minimum",
			nodes:  map[string]int{"a1": 3, "b1": 6, "c1": 9}, gang: workers("g", 6, 2, 1, must), want: "2 in b",
		},
		"more pods than any rack holds": {
			reason: "the more of them the better", nodes: map[string]int{"a1": 3, "b1": 5, "c1": 4},
			gang: workers("g", 6, 2, 1, must), want: "2 in b",
		},
		"where others are": {
			reason: "members that are bound bind the others, though another rack is smaller",
			nodes:  map[string]int{"a1": 8, "b1": 2}, running: []*corev1.Pod{worker("g-9", "g", 3, 1, "a1", 100, must)},
			gang: workers("g", 2, 3, 1, must), want: "2 in a",
		},
		"where others are, which is full": {
			reason: "the message says why no other rack will do", nodes: map[string]int{"a1": 2, "b1": 8},
			running: []*corev1.Pod{worker("g-9", "g", 3, 1, "a1", 100, must)}, gang: workers("g", 2, 3, 1, must),
			want: "gang a/g needs 3 pods at once in one domain of rack and has room for 2 in a, where others of it " +
				"are, none for pod g-0: 1 Insufficient nvidia.com/gpu",
		},
		"where most are": {
			reason: "labels were changed while it ran", nodes: map[string]int{"a1": 4, "b1": 8},
			running: []*corev1.Pod{
				worker("g-7", "g", 4, 1, "b1", 100, must), worker("g-8", "g", 4, 1, "a1", 100, must),
				worker("g-9", "g", 4, 1, "b1", 100, must),
			},
			gang: workers("g", 1, 4, 1, must), want: "1 in b",
		},
		"where others were": {
			reason: "a node that is gone, one without the label and a pod that has failed bind nobody",
			nodes:  map[string]int{"a1": 8, "b1": 2, "-1": 1},
			running: []*corev1.Pod{
				worker("g-7", "g", 4, 1, "-1", 100, must), worker("g-9", "g", 4, 1, "a1", 100, must, ends),
			},
			gang: append(workers("g", 2, 4, 1, must), worker("g-8", "g", 4, 1, "gone", 100, must)), want: "2 in b",
		},
		"a late one": {
			reason: "the gang stands, and the pod that joins it goes where it is",
			nodes:  map[string]int{"a1": 8, "b1": 1},
			running: []*corev1.Pod{
				worker("g-8", "g", 2, 1, "a1", 100, must), worker("g-9", "g", 2, 1, "a1", 100, must),
			},
			gang: workers("g", 1, 2, 1, must), want: "1 in a",
		},
		"a late one without room": {
			reason: "it waits rather than train from elsewhere", nodes: map[string]int{"a1": 2, "b1": 1},
			running: []*corev1.Pod{
				worker("g-8", "g", 2, 1, "a1", 100, must), worker("g-9", "g", 2, 1, "a1", 100, must),
			},
			gang: workers("g", 1, 2, 1, must),
			want: "gang a/g needs a place for pod g-0 in one domain of rack and has none in a, where others of it " +
				"are: 1 Insufficient nvidia.com/gpu",
		},
		"a late one that would rather be near": {
			reason: "it is placed like any pod where there is no room near", nodes: map[string]int{"a1": 2, "b1": 1},
			running: []*corev1.Pod{
				worker("g-8", "g", 2, 1, "a1", 100, gathers("prefer rack")),
				worker("g-9", "g", 2, 1, "a1", 100, gathers("prefer rack")),
			},
			gang: workers("g", 1, 2, 1, gathers("prefer rack")), want: "",
		},
		"not strict": {
			reason: "the first chooses for all, so that they have room near it",
			nodes:  map[string]int{"a1": 1, "b1": 4, "c1": 8}, gang: workers("g", 4, 4, 1, must, notStrict),
			want: "1 in b",
		},
		"slices": {
			reason: "each in a rack of its own where none holds two",
			nodes:  map[string]int{"a1": 2, "b1": 3, "c1": 1, "d1": 9}, gang: workers("g", 4, 4, 1, must, sliced(2)),
			want: "2 in a, 2 in b",
		},
		"slices in one rack": {
			reason: "what one has taken makes the rack the smallest for the next",
			nodes:  map[string]int{"a1": 4, "b1": 5}, gang: workers("g", 4, 4, 1, must, sliced(2)), want: "4 in a",
		},
		"a slice too many": {
			reason: "nothing is placed, and the message says which", nodes: map[string]int{"a1": 2, "b1": 1},
			gang: workers("g", 4, 4, 1, must, sliced(2)),
			want: "gang a/g needs 4 pods at once, the 2 of slice 1 in one domain of rack and has room for 1 in b, " +
				"the best of 2, none for pod g-2: 1 Insufficient nvidia.com/gpu",
		},
		"slices where others are": {
			reason: "each slice is bound by its own members", nodes: map[string]int{"a1": 4, "b1": 2, "c1": 2},
			running: []*corev1.Pod{
				worker("g-1", "g", 4, 1, "a1", 100, must, sliced(2)),
				worker("g-3", "g", 4, 1, "b1", 100, must, sliced(2)),
			},
			gang: []*corev1.Pod{
				worker("g-0", "g", 4, 1, "", 100, must, sliced(2)), worker("g-2", "g", 4, 1, "", 100, must, sliced(2)),
			},
			want: "1 in a, 1 in b",
		},
		"a slice that has begun where there is no room": {
			reason: "the gang's other pods fill the need: nothing but this gang itself holds the place that is missed",
			nodes:  map[string]int{"a1": 4, "b1": 2},
			running: []*corev1.Pod{
				worker("g-0", "g", 6, 1, "a1", 100, must, sliced(3), withRunning),
				worker("g-1", "g", 6, 1, "a1", 100, must, sliced(3), withRunning),
				worker("g-2", "g", 6, 1, "a1", 100, must, sliced(3), withRunning),
				worker("g-3", "g", 6, 1, "a1", 100, must, sliced(3), withRunning),
			},
			gang: []*corev1.Pod{
				worker("g-4", "g", 6, 1, "", 100, must, sliced(3), withRunning),
				worker("g-5", "g", 6, 1, "", 100, must, sliced(3), withRunning),
				worker("g-6", "g", 6, 1, "", 100, must, sliced(3), withRunning),
				worker("g-7", "g", 6, 1, "", 100, must, sliced(3), withRunning),
			},
			want: "2 in b",
		},
		"a slice that has begun where there is some room": {
			reason: "it takes that, and another one of the gang the rest",
			nodes:  map[string]int{"a1": 3, "b1": 1},
			running: []*corev1.Pod{
				worker("g-0", "g", 4, 1, "a1", 100, must, sliced(3), withRunning),
				worker("g-3", "g", 4, 1, "a1", 100, must, sliced(3), withRunning),
			},
			gang: []*corev1.Pod{
				worker("g-1", "g", 4, 1, "", 100, must, sliced(3), withRunning),
				worker("g-2", "g", 4, 1, "", 100, must, sliced(3), withRunning),
				worker("g-6", "g", 4, 1, "", 100, must, sliced(3), withRunning),
			},
			want: "1 in a, 1 in b",
		},
		"a slice that has begun, and no others": {
			reason: "the message is about the slice that is needed",
			nodes:  map[string]int{"a1": 4, "b1": 2},
			running: []*corev1.Pod{
				worker("g-0", "g", 6, 1, "a1", 100, must, sliced(3), withRunning),
				worker("g-1", "g", 6, 1, "a1", 100, must, sliced(3), withRunning),
				worker("g-2", "g", 6, 1, "a1", 100, must, sliced(3), withRunning),
				worker("g-3", "g", 6, 1, "a1", 100, must, sliced(3), withRunning),
			},
			gang: []*corev1.Pod{
				worker("g-4", "g", 6, 1, "", 100, must, sliced(3), withRunning),
				worker("g-5", "g", 6, 1, "", 100, must, sliced(3), withRunning),
				worker("g-6", "g", 6, 1, "", 100, must, sliced(3), withRunning),
			},
			want: "gang a/g needs 6 pods at once, the 2 of slice 1 in one domain of rack and has room for 0 in a, " +
				"where others of it are, none for pod g-4: 1 Insufficient nvidia.com/gpu",
		},
		"slices beyond the minimum": {
			reason: "one whole slice rather than halves of two", nodes: map[string]int{"a1": 1, "b1": 1, "c1": 2},
			gang: workers("g", 4, 2, 1, must, sliced(2)), want: "2 in c",
		},
		"roles": {
			reason: "the gangs of a group share a rack", nodes: map[string]int{"a1": 4, "b1": 5, "c1": 9},
			gang: append(workers("g", 4, 4, 1, must, inGroup), workers("h", 1, 1, 1, must, inGroup)...), want: "5 in b",
		},
		"roles of which one runs": {
			reason: "one gang's members bind those of the other", nodes: map[string]int{"a1": 8, "b1": 4},
			running: []*corev1.Pod{worker("h-0", "h", 1, 1, "a1", 100, must, inGroup)},
			gang:    workers("g", 4, 4, 1, must, inGroup), want: "4 in a",
		},
		"roles of which one gathers": {
			reason: "the other goes anywhere", nodes: map[string]int{"a1": 4, "-1": 1},
			gang: append(workers("g", 4, 4, 1, must, inGroup), workers("h", 1, 1, 1, inGroup)...),
			want: "1 in -, 4 in a",
		},
		"roles of two sizes": {
			reason: "the rack is chosen for the large ones, and must hold the small ones too",
			nodes:  map[string]int{"a1": 4, "a2": 4, "b1": 4, "b2": 4, "b3": 1},
			gang:   append(workers("g", 2, 2, 4, must, inGroup), workers("h", 1, 1, 1, must, inGroup)...),
			want:   "3 in b",
		},
		"members of two sizes": {
			reason: "the large ones go first", nodes: map[string]int{"a1": 5, "b1": 3, "b2": 3},
			gang: append(workers("g", 1, 2, 1, must), worker("g-9", "g", 2, 4, "", 100, must)), want: "2 in a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := racks(c.nodes)
			if c.with != nil {
				for _, n := range nodes {
					c.with(n)
				}
			}
			g := newPlugin(t, nodes, c.running)
			for _, p := range c.gang {
				g.shared.seen(nil, p)
			}
			attempt := g.shared.cache.Attempt(uidOf(c.gang[0]))
			p, short, err := g.dryRun(t.Context(), attempt.Wants)
			if err != nil || !attempt.OK {
				t.Fatal(attempt.Reason, err)
			}
			got := ""
			if short != nil {
				got = short.String()
			} else {
				got = byRack(p)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if p != nil && len(p.assignments) > 0 && !p.pinning {
				t.Errorf("%s: nobody holds the pods to the nodes", c.reason)
			}
		})
	}
}

// byRack counts the pods of a plan by rack.
func byRack(p *plan) string {
	count := map[string]int{}
	for _, s := range p.assignments {
		count[p.name(s.node)[:1]]++
	}
	var out []string
	for rack, n := range count {
		out = append(out, fmt.Sprintf("%d in %s", n, rack))
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(a[len(a)-1:], b[len(b)-1:]) })
	return strings.Join(out, ", ")
}
