package gang

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestEvents: who leads a gang without room is tried again after what can make room for it, and not after what cannot.
func TestEvents(t *testing.T) {
	near := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}
		p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "data"}},
		}}
	}
	placed, pending := worker("other", "data", 0, 1, "x", 1), worker("other", "data", 0, 1, "", 1)
	for name, c := range map[string]struct {
		reason   string
		action   fwk.ActionType
		with     func(*corev1.Pod)
		old, now *corev1.Pod
		again    bool
	}{
		"a pod to be near to":      {"it may be placed beside it", fwk.Add, near, nil, placed, true},
		"a pod that is not placed": {"it is near to nothing", fwk.Add, near, nil, pending, false},
		"any pod":                  {"one more pod takes room", fwk.Add, asIs, nil, placed, false},
		"a pod to keep away from":  {"one more pod takes room", fwk.Add, apart, nil, placed, false},
		"a pod that is not shunned": {
			"it may be placed beside it now", fwk.UpdatePodLabel, apart, placed, placed, true,
		},
		"a pod has left":            {"its room is free", fwk.Delete, asIs, placed, nil, true},
		"a pod that was not placed": {"it held nothing", fwk.Delete, asIs, pending, nil, false},
		"its own tolerations": {
			"a node may be open to it", fwk.UpdatePodToleration, asIs, worker("g-0", "g", 2, 1, "", 100),
			worker("g-0", "g", 2, 1, "", 100), true,
		},
		"its own ResourceClaim": {
			"it may have devices", fwk.UpdatePodGeneratedResourceClaim, asIs, worker("g-0", "g", 2, 1, "", 100),
			worker("g-0", "g", 2, 1, "", 100), true,
		},
		"the tolerations of another": {
			"they open no node to it", fwk.UpdatePodToleration, asIs, pending, pending, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newPlugin(t, []*corev1.Node{machine("x", 1)}, nil)
			gang := workers("g", 2, 2, 1, c.with)
			for _, p := range gang {
				g.shared.seen(nil, p)
			}
			events, err := g.EventsToRegister(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			again := false
			var old, now any
			if c.old != nil {
				old = c.old
			}
			if c.now != nil {
				now = c.now
			}
			for _, e := range events {
				if e.Event.Resource != fwk.Pod || e.Event.ActionType&c.action == 0 {
					continue
				}
				hint, err := e.QueueingHintFn(klog.Background(), gang[0], old, now)
				if err != nil {
					t.Fatal(err)
				}
				again = again || hint == fwk.Queue
			}
			if again != c.again {
				t.Errorf("%s: it is tried again: %t", c.reason, again)
			}
		})
	}
}

// asIs leaves a pod as it is.
func asIs(*corev1.Pod) {}

// TestPlannedNode: a member that is held to a node goes nowhere else, though it was nominated for another.
func TestPlannedNode(t *testing.T) {
	g := newPlugin(t, []*corev1.Node{machine("x", 8), machine("y", 8)}, nil)
	gang := workers("g", 2, 2, 1, apart)
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	state := framework.NewCycleState()
	result, status, _ := g.profile.RunPreFilterPlugins(t.Context(), state, gang[0])
	if status.IsRejected() || result.AllNodes() || result.NodeNames.Len() != 1 {
		t.Fatalf("the gang is not held to nodes: %v, %v", result, status)
	}
	nodes, err := g.profile.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		name := n.Node().Name
		fits := g.profile.RunFilterPlugins(t.Context(), state, gang[0], n).IsSuccess()
		if fits != result.NodeNames.Has(name) {
			t.Errorf("node %s takes the pod: %t", name, fits)
		}
	}
}

// TestGate: of a gang that has its pods one may be tried; the gate holds the others back, and TegenGang where there is
// no gate.
func TestGate(t *testing.T) {
	g := newPlugin(t, []*corev1.Node{machine("x", 8)}, nil)
	gang := workers("g", 3, 3, 1, asIs)
	gate := &Gate{&scheduler{coordinator: g.shared}}
	if gate.PreEnqueue(t.Context(), gang[0]).IsSuccess() {
		t.Error("a member is let in whose gang is not known")
	}
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	for name, pre := range map[string]fwk.PreEnqueuePlugin{
		"the gate":               gate,
		"TegenGang without gate": &Gang{shared: g.shared, profile: ungated{g.profile}, preempter: g.preempter},
	} {
		let := 0
		for _, p := range gang {
			if pre.PreEnqueue(t.Context(), p).IsSuccess() {
				let++
			}
		}
		if let != 1 {
			t.Errorf("%s lets %d of 3 in", name, let)
		}
	}
	for _, p := range gang {
		if s := g.PreEnqueue(t.Context(), p); !s.IsSuccess() {
			t.Errorf("TegenGang holds %s back beside the gate: %s", p.Name, s.Message())
		}
	}
	if events, err := gate.EventsToRegister(t.Context()); err != nil || len(events) > 0 {
		t.Errorf("the queue would ask the gate about %d kinds of events, %v", len(events), err)
	}
}

// ungated is a profile without the gate.
type ungated struct{ framework.Framework }

func (ungated) PreEnqueuePlugins() []fwk.PreEnqueuePlugin { return nil }
