package gang

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// refusedKey marks in a pod's cycle that its gang found no room, for PostFilter.
const refusedKey fwk.StateKey = Name + "/refused"

// refused is what a gang asked for in vain.
type refused struct {
	gang  gangcache.Key
	wants []gangcache.Want // nothing if no eviction can help
}

// Clone is asked for by the framework. What was refused does not change.
func (r *refused) Clone() fwk.StateData { return r }

// PreFilter looks for room for a pod's whole gang before the pod takes its own place, and refuses the pod where there
// is none. Pods without a gang pass.
func (g *Gang) PreFilter(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo,
) (*fwk.PreFilterResult, *fwk.Status) {
	// kube-scheduler waits for its own handlers; a pod of a gang not known here would be evicted alone.
	if !g.shared.synced() {
		if !cache.WaitForCacheSync(ctx.Done(), g.shared.synced) {
			return nil, fwk.AsStatus(fmt.Errorf("reading the pods of gangs: %w", context.Cause(ctx)))
		}
	}
	if inDryRun(state) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	attempt := g.shared.cache.Attempt(uidOf(pod))
	if !attempt.OK {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, attempt.Reason)
	}
	node := attempt.Node
	if len(attempt.Wants) > 0 {
		var status *fwk.Status
		if node, status = g.look(ctx, state, pod, attempt); !status.IsSuccess() {
			return nil, status
		}
	}
	if node == "" {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	state.Write(plannedKey, planned(node))
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
}

// plannedKey marks in a pod's cycle the node that its gang's round has for it, for Filter.
const plannedKey fwk.StateKey = Name + "/planned"

type planned string

// Clone is asked for by the framework.
func (p planned) Clone() fwk.StateData { return p }

// Filter holds a pod to the node of its gang's round: kube-scheduler tries a node that the pod was nominated for, or
// that a pod of the same signature left over, whatever PreFilter named.
func (*Gang) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(plannedKey)
	if err != nil {
		return nil // it was not asked to choose
	}
	if name := node.Node().Name; name != string(data.(planned)) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) that its gang has for other pods")
	}
	return nil
}

// PreFilterExtensions is nil: adding or removing a pod on a node changes nothing for a gang.
func (*Gang) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// look does a dry run of what a gang's group wants. Where it works out a round begins; where it does not the gang is
// told why.
func (g *Gang) look(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, attempt gangcache.Attempt,
) (node string, status *fwk.Status) {
	wants, uid := attempt.Wants, uidOf(pod)
	if message := g.shared.awaitClaims(uid, wants); message != "" {
		g.shared.reports.refused(uid, wants, message)
		state.Write(refusedKey, &refused{gang: attempt.Gang})
		return "", fwk.NewStatus(fwk.UnschedulableAndUnresolvable, message)
	}
	g.shared.suspendNominations(wants)
	plan, shortage, err := g.dryRun(ctx, wants)
	if err != nil {
		g.shared.nominate(wants)
		return "", fwk.AsStatus(fmt.Errorf("looking for room for gang %s: %w", attempt.Gang, err))
	}
	if shortage != nil {
		g.shared.nominate(wants)
		message := shortage.String()
		r := &refused{gang: attempt.Gang, wants: wants}
		if wants[0].Alone {
			r.gang = gangcache.Key{Namespace: pod.Namespace, Name: pod.Name}
		} else {
			g.shared.reports.refused(uid, wants, message)
		}
		state.Write(refusedKey, r)
		return "", fwk.NewStatus(fwk.Unschedulable, message)
	}
	g.shared.clearNominations(wants)
	if wants[0].Alone {
		return plan.nodes(true)[uid], nil
	}
	node, change := g.shared.cache.Start(uid, plan.nodes(attempt.Pin))
	g.shared.apply(change)
	if node == "" && slices.ContainsFunc(wants, gangcache.Want.MustGather) {
		// The plan has places for others, or was called off at once: anywhere else it must not go.
		return "", fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("gang %s places other pods first", attempt.Gang))
	}
	return node, nil
}

// PostFilter makes room by preemption: for a whole gang that found none, or for a single pod. A member that found no
// place although its gang had found room ends the attempt.
func (g *Gang) PostFilter(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	if inDryRun(state) {
		return nil, fwk.NewStatus(fwk.Unschedulable) // only the plugin DynamicResources has something to do
	}
	if data, err := state.Read(refusedKey); err == nil {
		r := data.(*refused)
		if len(r.wants) == 0 {
			return nil, fwk.NewStatus(fwk.Unschedulable)
		}
		return g.preempt(ctx, pod, r.gang, r.wants)
	}
	uid := uidOf(pod)
	attempt := g.shared.cache.Attempt(uid)
	switch {
	case attempt.Planned:
		g.shared.apply(g.shared.cache.Fail(uid))
		return nil, fwk.NewStatus(fwk.Unschedulable, lostRoom(attempt.Gang))
	case !attempt.OK, slices.ContainsFunc(attempt.Wants, gangcache.Want.MustGather):
		// Others go first, or it lost the place that it had found near its gang: elsewhere it needs no room.
		if attempt.OK {
			time.AfterFunc(time.Second, func() { g.shared.wake([]gangcache.UID{uid}) })
		}
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	own := gangcache.Key{Namespace: pod.Namespace, Name: pod.Name}
	if n, _ := g.shared.leaving(own); n > 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("%d evicted pods are still leaving", n))
	}
	result, status := g.preempter.PostFilter(ctx, state, pod, nodes)
	// Without a result it was not looked for victims: those of an earlier attempt are still leaving, or it may have
	// none.
	if status.IsSuccess() || !status.IsRejected() || result == nil {
		return result, status
	}
	// No node has room even without the pods that may be evicted one by one: perhaps without a whole gang.
	alone := []gangcache.Want{{Min: 1, Need: 1, Candidates: []gangcache.UID{uid}}}
	if whole, s := g.preempt(ctx, pod, own, alone); s.IsSuccess() {
		return whole, s
	}
	return result, status
}

func lostRoom(key gangcache.Key) string {
	return fmt.Sprintf("gang %s lost the room that it had found, and tries again", key)
}
