package gang

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// Reserve does nothing: a place counts once Permit has seen it, after which Unreserve takes it back.
func (*Gang) Reserve(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status { return nil }

// Unreserve enters that a pod lost its place. In a strict gang the others that wait let go too.
func (g *Gang) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	if inDryRun(state) {
		return // the pod had no place
	}
	g.shared.apply(g.shared.cache.Unreserve(uidOf(pod)))
	g.shared.binds.done(uidOf(pod))
}

// PostBind lets the next member of a gang bind.
func (g *Gang) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	g.shared.binds.done(uidOf(pod))
}

// Permit lets a pod bind that has no gang or whose gang has what it needs; others hold their places for as long as the
// gang says, counted from the first of them.
func (g *Gang) Permit(
	_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string,
) (*fwk.Status, time.Duration) {
	uid := uidOf(pod)
	r := g.shared.cache.Reserve(uid, node, time.Now())
	// This pod is answered here.
	r.Change.Allow = slices.DeleteFunc(r.Change.Allow, func(other gangcache.UID) bool { return other == uid })
	g.shared.apply(r.Change)
	switch {
	case r.Allowed:
		return nil, 0
	case r.Wait <= 0:
		return fwk.NewStatus(fwk.Unschedulable, lostRoom(r.Gang)), 0
	}
	time.AfterFunc(r.Wait, func() { g.expire(uid) })
	// The framework would end the wait as well, but in words that name no gang.
	return fwk.NewStatus(fwk.Wait, fmt.Sprintf("gang %s is getting its places", r.Gang)), r.Wait + grace
}

// grace is how much later than the gang's own waiting time the framework ends a pod's wait: members that may bind take
// turns, which must not end their wait.
const grace = time.Minute

// expire makes a pod let go whose gang has waited long enough. The pod may have let go since, and wait anew.
func (g *Gang) expire(uid gangcache.UID) {
	message := g.shared.cache.Overdue(uid, time.Now())
	if message == "" {
		return
	}
	if w := g.shared.handle.GetWaitingPod(types.UID(uid)); w != nil {
		w.Reject(Name, message)
	}
}
