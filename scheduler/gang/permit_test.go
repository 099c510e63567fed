package gang

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestLateAnswer: what is decided for a pod before the framework counts it among those that wait reaches it all the
// same.
func TestLateAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		happen func(g *Gang, gang []*corev1.Pod)
		binds  bool
	}{
		"lets go": {
			reason: "the gang lost a pod that it needs",
			happen: func(g *Gang, gang []*corev1.Pod) { g.shared.gone(gang[1]) },
		},
		"binds": {
			reason: "the gang asks for less", happen: func(g *Gang, gang []*corev1.Pod) {
				for i := range gang {
					g.shared.seen(gang[i], worker(gang[i].Name, "g", 1, 1, "", 100))
				}
			}, binds: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newPlugin(t, []*corev1.Node{machine("x", 2)}, nil)
			gang := workers("g", 2, 2, 1)
			for _, p := range gang {
				g.shared.seen(nil, p)
			}
			if _, status := g.PreFilter(t.Context(), framework.NewCycleState(), gang[0], nil); status.IsRejected() {
				t.Fatalf("the gang does not fit: %v", status)
			}
			status, wait := g.Permit(t.Context(), nil, gang[0], "x")
			if !status.IsWait() {
				t.Fatalf("the first member does not wait: %v", status)
			}
			c.happen(g, gang)
			g.profile.AddWaitingPod(gang[0], map[string]time.Duration{Name: wait})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			done := make(chan bool, 1)
			go func() { done <- g.profile.WaitOnPermit(ctx, gang[0]).IsSuccess() }()
			select {
			case binds := <-done:
				if binds != c.binds {
					t.Errorf("%s: it binds: %t", c.reason, binds)
				}
			case <-ctx.Done():
				t.Errorf("%s, and the pod was not told within 20 s", c.reason)
			}
		})
	}
}

// TestPermitAfterRound: a pod whose round was called off between its PreFilter and its Permit holds nothing.
func TestPermitAfterRound(t *testing.T) {
	g := newPlugin(t, []*corev1.Node{machine("x", 2)}, nil)
	gang := workers("g", 2, 2, 1)
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	if status, wait := g.Permit(t.Context(), nil, gang[0], "x"); !status.IsRejected() {
		t.Errorf("it may hold its place for %v: %v", wait, status)
	}
}

// TestUnreserveOfDryRun: that a dry run takes back a placement costs the pod no place that it has.
func TestUnreserveOfDryRun(t *testing.T) {
	g := newPlugin(t, []*corev1.Node{machine("x", 2)}, nil)
	gang := workers("g", 2, 2, 1)
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	if _, status := g.PreFilter(t.Context(), framework.NewCycleState(), gang[0], nil); status.IsRejected() {
		t.Fatalf("the gang does not fit: %v", status)
	}
	if status, _ := g.Permit(t.Context(), nil, gang[0], "x"); !status.IsWait() {
		t.Fatalf("the first member does not wait: %v", status)
	}
	state := framework.NewCycleState()
	state.Write(dryRunKey, dryRunMark{})
	g.Unreserve(t.Context(), state, gang[0], "x")
	if status, _ := g.Permit(t.Context(), nil, gang[1], "x"); !status.IsSuccess() {
		t.Errorf("the first member has lost its place: %v", status)
	}
}
