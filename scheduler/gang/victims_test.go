package gang

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// TestVictims asks who is evicted for a gang of priority 100.
func TestVictims(t *testing.T) {
	guard := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guard", Namespace: "a"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "guarded"},
		}},
	}
	spare := guard.DeepCopy() // of whose pods one may go
	spare.Name, spare.Spec.Selector.MatchLabels["app"], spare.Status.DisruptionsAllowed = "spare", "spared", 1
	app := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["app"] = name } }
	for name, c := range map[string]struct {
		reason  string
		nodes   []*corev1.Node
		running []*corev1.Pod
		gang    []*corev1.Pod
		evicted string // "-" where nobody is, "|" between names where either is right
	}{
		"least important": {
			reason: "lower priority goes first",
			nodes:  []*corev1.Node{machine("x", 1), machine("y", 1), machine("z", 1)},
			running: []*corev1.Pod{
				worker("p5", "", 0, 1, "x", 5), worker("p1", "", 0, 1, "y", 1), worker("p2", "", 0, 1, "z", 2),
			},
			gang: workers("g", 2, 2, 1), evicted: "p1 p2",
		},
		"no more than needed": {
			reason: "a node that is filled keeps what fits beside", nodes: []*corev1.Node{machine("x", 4)},
			running: []*corev1.Pod{worker("p1", "", 0, 2, "x", 1), worker("p2", "", 0, 2, "x", 2)},
			gang:    workers("g", 2, 2, 1), evicted: "p1",
		},
		"in vain": {
			reason: "nobody goes for what would not fit even then", nodes: []*corev1.Node{machine("x", 1)},
			running: []*corev1.Pod{worker("p1", "", 0, 1, "x", 1)}, gang: workers("g", 2, 2, 1), evicted: "-",
		},
		"equals": {
			reason: "nobody of equal priority goes", nodes: []*corev1.Node{machine("x", 1)},
			running: []*corev1.Pod{worker("p", "", 0, 1, "x", 100)}, gang: workers("g", 1, 1, 1), evicted: "-",
		},
		"its least important member": {
			reason: "what that one may not evict is not evicted for the gang", nodes: []*corev1.Node{machine("x", 2)},
			running: []*corev1.Pod{worker("p1", "", 0, 1, "x", 50)},
			gang:    append(workers("g", 1, 2, 1), worker("g-9", "g", 2, 1, "", 10)), evicted: "-",
		},
		"a gang's spare": {
			reason: "the newest member beyond the minimum", nodes: []*corev1.Node{machine("x", 3)},
			running: []*corev1.Pod{
				worker("v-0", "v", 2, 1, "x", 1), worker("v-1", "v", 2, 1, "x", 1), worker("v-2", "v", 2, 1, "x", 1),
			},
			gang: workers("g", 1, 1, 1), evicted: "v-2",
		},
		"a whole gang": {
			reason: "also where it is not in the way", nodes: []*corev1.Node{machine("x", 1), machine("y", 1)},
			running: []*corev1.Pod{worker("v-0", "v", 2, 1, "x", 1), worker("v-1", "v", 2, 1, "y", 1)},
			gang:    workers("g", 1, 1, 1), evicted: "v-0 v-1",
		},
		"a spare, and then its gang": {
			reason: "what one of its pods made room for, the rest of the gang makes room beside",
			nodes:  []*corev1.Node{machine("x", 1), machine("y", 1), machine("z", 1)},
			running: []*corev1.Pod{
				worker("v-0", "v", 2, 1, "x", 1), worker("v-1", "v", 2, 1, "y", 1), worker("v-2", "v", 2, 1, "z", 1),
			},
			gang: workers("g", 2, 2, 1), evicted: "v-0 v-1 v-2",
		},
		"a member that is not needed": {
			reason: "who is beyond the minimum limits nobody", nodes: []*corev1.Node{machine("x", 2)},
			running: []*corev1.Pod{worker("p", "", 0, 2, "x", 50)},
			gang:    append(workers("g", 2, 2, 1), worker("g-9", "g", 2, 1, "", 10)), evicted: "p",
		},
		"a gang with an important member": {
			reason:  "it cannot go as a whole, so no part of it does",
			nodes:   []*corev1.Node{machine("x", 1), machine("y", 1)},
			running: []*corev1.Pod{worker("v-0", "v", 2, 1, "x", 1), worker("v-1", "v", 2, 1, "y", 200)},
			gang:    workers("g", 1, 1, 1), evicted: "-",
		},
		"a member that leaves": {
			reason: "the rest of its gang need not follow", nodes: []*corev1.Node{machine("x", 1), machine("y", 2)},
			running: []*corev1.Pod{
				worker("v-0", "v", 2, 1, "y", 1), worker("v-1", "v", 2, 1, "y", 1),
				worker("v-2", "v", 2, 1, "x", 1, leaves),
			},
			gang: workers("g", 1, 1, 1), evicted: "v-2",
		},
		"beside members apart": {
			reason: "members that keep apart from each other need not keep apart from others",
			nodes:  []*corev1.Node{machine("x", 4), machine("y", 4)},
			running: []*corev1.Pod{
				worker("x1", "", 0, 2, "x", 1), worker("x2", "", 0, 2, "x", 2), worker("y1", "", 0, 2, "y", 1),
				worker("y2", "", 0, 2, "y", 2),
			},
			gang: workers("g", 2, 2, 2, apart), evicted: "x1 y1",
		},
		"kept away": {
			reason: "who is shunned goes, though there is room beside", nodes: []*corev1.Node{machine("x", 8)},
			running: []*corev1.Pod{worker("v", "shunned", 0, 1, "x", 1), worker("p", "", 0, 1, "x", 1)},
			gang:    workers("g", 1, 1, 1, shuns), evicted: "v",
		},
		"guarded": {
			reason: "a PodDisruptionBudget is broken last", nodes: []*corev1.Node{machine("x", 2)},
			running: []*corev1.Pod{worker("p1", "guarded", 0, 1, "x", 1), worker("p2", "", 0, 1, "x", 2)},
			gang:    workers("g", 1, 1, 1), evicted: "p2",
		},
		"guarded elsewhere": {
			reason: "a node where no budget is broken, though what goes there is more important",
			nodes:  []*corev1.Node{machine("x", 1), machine("y", 1)},
			running: []*corev1.Pod{
				worker("p1", "guarded", 0, 1, "x", 1), worker("p2", "", 0, 1, "y", 2),
			},
			gang: workers("g", 1, 1, 1), evicted: "p2",
		},
		"one after another": {
			reason: "each member goes where least is lost for it, not to the node of the one before",
			nodes:  []*corev1.Node{machine("x", 2), machine("y", 2)},
			running: []*corev1.Pod{
				worker("x1", "", 0, 1, "x", 1), worker("x2", "guarded", 0, 1, "x", 1), worker("y1", "", 0, 1, "y", 2),
				worker("y2", "", 0, 1, "y", 3),
			},
			gang: workers("g", 2, 2, 1), evicted: "x1 y1",
		},
		"a budget for one": {
			reason: "the budget knows of the pods that go already",
			nodes:  []*corev1.Node{machine("x", 1), machine("y", 1), machine("z", 1)},
			running: []*corev1.Pod{
				worker("x1", "spared", 0, 1, "x", 1), worker("y1", "spared", 0, 1, "y", 1),
				worker("z1", "", 0, 1, "z", 9),
			},
			gang: workers("g", 2, 2, 1), evicted: "x1 z1|y1 z1",
		},
		"a guarded member elsewhere": {
			reason: "a whole gang goes, and so does the budget of its member on another node",
			nodes:  []*corev1.Node{machine("x", 1), machine("y", 2), machine("z", 1)},
			running: []*corev1.Pod{
				worker("v-0", "v", 2, 1, "x", 1), worker("v-1", "v", 2, 2, "y", 1, app("guarded")),
				worker("p", "", 0, 1, "z", 9),
			},
			gang: workers("g", 1, 1, 1), evicted: "p",
		},
		"most sum of priorities": {
			reason: "as kube-scheduler, of nodes with the same most important pod that with the smaller sum",
			nodes:  []*corev1.Node{machine("x", 2), machine("y", 2)},
			running: []*corev1.Pod{
				worker("x1", "", 0, 1, "x", 5), worker("x2", "", 0, 1, "x", 4), worker("y1", "", 0, 1, "y", 5),
				worker("y2", "", 0, 1, "y", 1),
			},
			gang: workers("g", 1, 1, 2), evicted: "y1 y2",
		},
		"stuck": {
			reason: "a pod that should have been gone long ago makes no room by being evicted again",
			nodes:  []*corev1.Node{machine("x", 1), machine("y", 1)},
			running: []*corev1.Pod{
				worker("p1", "", 0, 1, "x", 1, ends), worker("p2", "", 0, 1, "y", 2),
			},
			gang: workers("g", 1, 1, 1), evicted: "p2",
		},
		"a guarded gang": {
			reason: "a single pod that its budget can spare, rather than a gang with one that it cannot",
			nodes:  []*corev1.Node{machine("x", 4)},
			running: []*corev1.Pod{
				worker("v-0", "v", 2, 1, "x", 1, app("guarded")), worker("v-1", "v", 2, 1, "x", 1, app("spared")),
				worker("p1", "spared", 0, 1, "x", 1), worker("p2", "", 0, 1, "x", 2),
			},
			gang: workers("g", 1, 1, 1), evicted: "p1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newPlugin(t, c.nodes, c.running, guard, spare)
			for _, p := range c.gang {
				g.shared.seen(nil, p)
			}
			if got := evicted(t, g, c.gang[0]); !slices.Contains(strings.Split(c.evicted, "|"), got) {
				t.Errorf("%s: evicted %s, want %s", c.reason, got, c.evicted)
			}
		})
	}
}

// evicted are the names of the pods that are evicted for a pod's gang.
func evicted(t testing.TB, g *Gang, pod *corev1.Pod) string {
	t.Helper()
	wants := g.shared.cache.Attempt(uidOf(pod)).Wants
	least := leastImportant(wants, g.shared.podsOf)
	sim, err := g.newSimulation()
	if err != nil {
		t.Fatal(err)
	}
	if sim.removal, err = g.newRemoval(sim.nodes, *least.Spec.Priority); err != nil {
		t.Fatal(err)
	}
	_, short, err := sim.placeAll(t.Context(), wants, func(uids []gangcache.UID) []*corev1.Pod {
		return slices.DeleteFunc(g.shared.podsOf(uids), func(p *corev1.Pod) bool { return byPriority(p, least) < 0 })
	})
	if err != nil {
		t.Fatal(err)
	}
	if short != nil {
		return "-"
	}
	var out []string
	for _, v := range evictedPods(sim.moves) {
		out = append(out, v.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
