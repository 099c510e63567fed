package gang

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// leaves marks a pod as one that another makes leave, ends as one that should have left long ago.
func leaves(p *corev1.Pod) {
	ends(p)
	p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Hour)}
}

func ends(p *corev1.Pod) {
	p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
	}}
}

// full says of every node that pods on it are in the way.
func full(nodes ...string) *framework.NodeToStatus {
	m := framework.NewDefaultNodeToStatus()
	for _, n := range nodes {
		m.Set(n, fwk.NewStatus(fwk.Unschedulable, "Insufficient nvidia.com/gpu"))
	}
	return m
}

// TestAlone asks for whom a single pod of priority 100 has others evicted while the pod that it had evicted leaves node
// y.
func TestAlone(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		leaving *corev1.Pod
		gang    string
	}{
		"a single pod leaves": {
			reason:  "its room is on its way, so no gang goes for it",
			leaving: worker("single", "", 0, 1, "y", 1, leaves),
		},
		"a member leaves": {
			reason: "the rest of its gang need not follow", leaving: worker("v-9", "v", 2, 1, "y", 1, leaves),
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := worker("p", "", 0, 1, "", 100)
			pod.Status.NominatedNodeName = "y"
			g := newPlugin(t, []*corev1.Node{machine("x", 2), machine("y", 1)},
				[]*corev1.Pod{worker("v-0", "v", 2, 1, "x", 1), worker("v-1", "v", 2, 1, "x", 1), c.leaving}, pod)
			result, status := g.PostFilter(t.Context(), framework.NewCycleState(), pod, full("x", "y"))
			if status.IsSuccess() {
				t.Errorf("%s: it has others evicted", c.reason)
			}
			if result != nil {
				t.Errorf("%s: its nomination is overwritten with %+v", c.reason, result.NominatingInfo)
			}
			if diff := cmp.Diff(0, len(g.shared.evicted)); diff != "" {
				t.Errorf("%s: evictions (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestNominations: who cannot have room made does not keep the node that it was nominated for from others.
func TestNominations(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		running *corev1.Pod
	}{
		"equals":  {"nobody of equal priority goes", worker("p", "", 0, 1, "x", 100)},
		"in vain": {"nobody goes for what would not fit even then", worker("p", "", 0, 1, "x", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			gang := workers("g", 2, 2, 1)
			gang[0].Status.NominatedNodeName = "x"
			g := newPlugin(t, []*corev1.Node{machine("x", 1)}, []*corev1.Pod{c.running})
			for _, p := range gang {
				g.shared.seen(nil, p)
			}
			state := framework.NewCycleState()
			if _, status := g.PreFilter(t.Context(), state, gang[0], nil); !status.IsRejected() {
				t.Fatalf("the gang fits: %v", status)
			}
			result, status := g.PostFilter(t.Context(), state, gang[0], full("x"))
			if status.IsSuccess() || result == nil ||
				result.Mode() != fwk.ModeOverride || result.NominatedNodeName != "" {
				t.Errorf("%s: the nomination stays: %+v, %v", c.reason, result, status)
			}
		})
	}
}

// evicts is a plugin whose gang of two has the pod on node x evicted, and what becomes of evictions.
func evicts(t *testing.T, outcome error) (g *Gang, gang []*corev1.Pod, try func() *fwk.Status) {
	t.Helper()
	running := worker("r", "", 0, 2, "x", 1)
	gang = workers("g", 2, 2, 1)
	g = newPlugin(t, []*corev1.Node{machine("x", 2)}, []*corev1.Pod{running}, running)
	done := make(chan bool, 1)
	g.preempter.Executor.PreemptPod = func(
		context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *corev1.Pod, string,
	) error {
		done <- true
		return outcome
	}
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	try = func() *fwk.Status {
		state := framework.NewCycleState()
		if _, status := g.PreFilter(t.Context(), state, gang[0], nil); !status.IsRejected() {
			t.Fatalf("the gang fits: %v", status)
		}
		_, status := g.PostFilter(t.Context(), state, gang[0], full("x"))
		if status.IsSuccess() {
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("nobody was evicted within 10 s")
			}
		}
		return status
	}
	return g, gang, try
}

func evicting(g *Gang, key gangcache.Key) int {
	n, _ := g.shared.leaving(key)
	return n
}

// TestRefusedEviction: a pod whose eviction was refused is not waited for.
func TestRefusedEviction(t *testing.T) {
	g, _, try := evicts(t, errors.New("a webhook says no"))
	if status := try(); !status.IsSuccess() {
		t.Fatalf("nobody is evicted: %v", status)
	}
	key := gangcache.Key{Namespace: "a", Name: "g"}
	for end := time.Now().Add(10 * time.Second); evicting(g, key) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("after 10 s the pod that stays is still waited for")
		}
	}
	if status := try(); !status.IsSuccess() {
		t.Errorf("nobody else is looked for: %v", status)
	}
}

// TestEvictions: each victim is evicted once while others have gone already, and one that leaves by itself is not.
func TestEvictions(t *testing.T) {
	var nodes []*corev1.Node
	var running []*corev1.Pod
	const n = 40
	for i := range n {
		node := fmt.Sprintf("x%d", i)
		nodes = append(nodes, machine(node, 1))
		running = append(running, worker(fmt.Sprintf("r%d", i), "", 0, 1, node, 1))
	}
	leaves(running[0])
	g := newPlugin(t, nodes, running) // whose lister has none of them: they have gone
	asked, release := make(chan string, 2*n), make(chan bool)
	g.preempter.Executor.PreemptPod = func(
		_ context.Context, _ preemption.Candidate, _ preemption.ExecutorPreemptor, victim *corev1.Pod, _ string,
	) error {
		<-release
		asked <- victim.Name
		return nil
	}
	gang := workers("g", n, n, 1)
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	state := framework.NewCycleState()
	if _, status := g.PreFilter(t.Context(), state, gang[0], nil); !status.IsRejected() {
		t.Fatalf("the gang fits: %v", status)
	}
	if _, status := g.PostFilter(t.Context(), state, gang[0], full()); !status.IsSuccess() {
		t.Fatalf("nobody is evicted: %v", status)
	}
	evicting(g, gangcache.Key{Namespace: "a", Name: "g"})
	close(release)
	seen := map[string]bool{}
	for range n - 1 {
		select {
		case name := <-asked:
			seen[name] = true
		case <-time.After(10 * time.Second):
			t.Fatalf("%d of %d are evicted after 10 s", len(seen), n-1)
		}
	}
	if len(seen) != n-1 || seen["r0"] {
		t.Errorf("%d pods are evicted, and the one that leaves by itself: %t", len(seen), seen["r0"])
	}
}

// TestStuckVictim: a pod that should have been gone for a while, as its node is dead, is neither waited for nor evicted
// again.
func TestStuckVictim(t *testing.T) {
	g, _, try := evicts(t, nil)
	if status := try(); !status.IsSuccess() {
		t.Fatalf("nobody is evicted: %v", status)
	}
	if status := try(); status.Message() != "1 evicted pods are still leaving" {
		t.Fatalf("while the pod leaves: %v", status)
	}
	running := worker("r", "", 0, 2, "x", 1, ends)
	pods := g.profile.SharedInformerFactory().Core().V1().Pods().Informer().GetStore()
	if err := pods.Update(running); err != nil {
		t.Fatal(err)
	}
	snapshot, err := g.profile.SnapshotSharedLister().NodeInfos().Get("x")
	if err != nil {
		t.Fatal(err)
	}
	snapshot.GetPods()[0].GetPod().DeletionTimestamp = running.DeletionTimestamp
	if status := try(); status.Message() != "no pods of lower priority could make room" {
		t.Errorf("after the pod should have been gone: %v", status)
	}
}

// TestLeastImportantMember: what limits whom a gang may evict is said.
func TestLeastImportantMember(t *testing.T) {
	gang := append(workers("g", 1, 2, 1), worker("g-9", "g", 2, 1, "", 10))
	g := newPlugin(t, []*corev1.Node{machine("x", 2)}, []*corev1.Pod{worker("p", "", 0, 1, "x", 50)})
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	state := framework.NewCycleState()
	if _, status := g.PreFilter(t.Context(), state, gang[0], nil); !status.IsRejected() {
		t.Fatalf("the gang fits: %v", status)
	}
	_, status := g.PostFilter(t.Context(), state, gang[0], full("x"))
	want := "no pods of lower priority than 10, which is that of member g-9, could make room"
	if status.Message() != want {
		t.Errorf("got %q, want %q", status.Message(), want)
	}
}

// TestDroppedNominations: what is kept for a gang is given up when the gang cannot be placed any more, and nothing is
// remembered of pods that have gone.
func TestDroppedNominations(t *testing.T) {
	g, gang, try := evicts(t, nil)
	if status := try(); !status.IsSuccess() {
		t.Fatalf("nobody is evicted: %v", status)
	}
	if len(g.shared.nominated) != 1 {
		t.Fatalf("room is kept for %d members beside the leader, want 1", len(g.shared.nominated))
	}
	if status := try(); status.IsSuccess() || len(g.shared.nominated) != 1 {
		t.Fatalf("while the pod leaves room is kept for %d members: %v", len(g.shared.nominated), status)
	}
	g.shared.gone(gang[0])
	if len(g.shared.nominated) != 0 {
		t.Error("room is kept for a gang that lacks pods")
	}
	leaving := gang[1].DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} // a finalizer keeps it for a while
	g.shared.reports.refused(uidOf(gang[1]), nil, "no room")
	g.shared.seen(gang[1], leaving)
	g.shared.gone(leaving)
	c, r := g.shared, g.shared.reports
	if n := len(c.nominated) + len(c.evicted) + len(c.pods) + len(r.last) + len(r.verdict); n != 0 {
		t.Errorf("%d facts are remembered of pods that have gone: %v %v %v %v",
			n, c.nominated, c.evicted, r.last, r.verdict)
	}
}
