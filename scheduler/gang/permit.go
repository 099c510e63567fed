package gang

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Reserve does nothing: a place counts once Permit has seen it, after which Unreserve takes it back.
func (*Gang) Reserve(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status { return nil }

// Unreserve enters that a pod lost its place. In a strict gang the others that wait let go too.
func (g *Gang) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	g.apply(g.ledger.Unreserve(uidOf(pod)))
}

// Permit lets a pod bind that has no gang or whose gang has what it needs; others hold their places for as long as the
// gang says, counted from the first of them.
func (g *Gang) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	key, ok := g.ledger.GangOf(uidOf(pod))
	if !ok {
		return nil, 0
	}
	allowed, wait, change := g.ledger.Reserve(uidOf(pod), time.Now())
	g.apply(change)
	if allowed {
		return nil, 0
	}
	if wait <= 0 {
		return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("gang %s did not get the places it needs within its waiting time", key)), 0
	}
	return fwk.NewStatus(fwk.Wait, fmt.Sprintf("gang %s is getting its places", key)), wait
}
