package gang

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// PreEnqueue keeps out a pod for which others are being evicted, and what the gate would where the profile has none.
func (g *Gang) PreEnqueue(ctx context.Context, pod *corev1.Pod) *fwk.Status {
	if s := g.preempter.PreEnqueue(ctx, pod); !s.IsSuccess() || gated(g.profile) {
		return s
	}
	return g.shared.gate(pod)
}

// Less orders the queue by priority, then by time: that of a gang is when it had its pods, so that gangs take turns as
// wholes and no two of them interleave.
func (g *Gang) Less(a, b fwk.QueuedPodInfo) bool {
	podA, podB := a.GetPodInfo().GetPod(), b.GetPodInfo().GetPod()
	if pa, pb := corev1helpers.PodPriority(podA), corev1helpers.PodPriority(podB); pa != pb {
		return pa > pb
	}
	orderA, gangA := g.shared.cache.Order(uidOf(podA))
	orderB, gangB := g.shared.cache.Order(uidOf(podB))
	switch {
	case gangA && gangB:
		return orderA.Compare(orderB) < 0
	case gangA:
		return orderA.Since.Before(b.GetTimestamp())
	case gangB:
		return a.GetTimestamp().Before(orderB.Since)
	}
	return a.GetTimestamp().Before(b.GetTimestamp())
}

// EventsToRegister names what can make room for a gang that found none: other events leave it where it is.
func (g *Gang) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	on := func(resource fwk.EventResource, action fwk.ActionType, hint fwk.QueueingHintFn) fwk.ClusterEventWithHint {
		return fwk.ClusterEventWithHint{
			Event: fwk.ClusterEvent{Resource: resource, ActionType: action}, QueueingHintFn: hint,
		}
	}
	const volumes = fwk.Add | fwk.Update
	return []fwk.ClusterEventWithHint{
		on(fwk.Node, fwk.Add|fwk.UpdateNodeAllocatable|fwk.UpdateNodeLabel|fwk.UpdateNodeTaint, g.hintAny),
		on(fwk.Pod, fwk.Delete|fwk.UpdatePodScaleDown, g.hintPod),
		on(fwk.Pod, fwk.Add|fwk.UpdatePodLabel, g.hintNeighbour),
		on(fwk.Pod, fwk.UpdatePodToleration|fwk.UpdatePodLabel|fwk.UpdatePodScaleDown|
			fwk.UpdatePodGeneratedResourceClaim, g.hintOwn),
		on(fwk.PersistentVolumeClaim, volumes, g.hintAny),
		on(fwk.PersistentVolume, volumes, g.hintAny),
		on(fwk.StorageClass, volumes, g.hintAny),
		on(fwk.CSINode, volumes, g.hintAny),
		on(fwk.ResourceClaim, volumes, g.hintAny),
		on(fwk.ResourceSlice, volumes, g.hintAny),
		on(fwk.DeviceClass, volumes, g.hintAny),
	}, nil
}

// hintAny tries a pod again that may enter the queue at all.
func (g *Gang) hintAny(_ klog.Logger, pod *corev1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if !g.shared.cache.Admit(uidOf(pod)).OK {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// hintPod tries a pod again when another one left a node, or asks for less of it.
func (g *Gang) hintPod(logger klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, _, err := util.As[*corev1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if before == nil || before.Spec.NodeName == "" {
		return fwk.QueueSkip, nil
	}
	return g.hintAny(logger, pod, oldObj, newObj)
}

// hintNeighbour tries a pod again that wants to be near others, or spread among them, when one came to a node or has
// other labels: it may be what the pod lacked.
func (g *Gang) hintNeighbour(logger klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	a := pod.Spec.Affinity
	shuns := oldObj != nil && a != nil && a.PodAntiAffinity != nil // one pod more only takes room from it
	if len(pod.Spec.TopologySpreadConstraints) == 0 && !shuns && (a == nil || a.PodAffinity == nil) {
		return fwk.QueueSkip, nil
	}
	_, now, err := util.As[*corev1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if now == nil || now.Spec.NodeName == "" {
		return fwk.QueueSkip, nil
	}
	return g.hintAny(logger, pod, oldObj, newObj)
}

// hintOwn tries a pod again that asks for something else than before.
func (g *Gang) hintOwn(logger klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	_, now, err := util.As[*corev1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if now == nil || now.UID != pod.UID {
		return fwk.QueueSkip, nil
	}
	return g.hintAny(logger, pod, oldObj, newObj)
}

// SignPod adds the gang to a pod's signature: its members may share one ranking of the nodes, other pods do not join.
func (g *Gang) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	key, ok := g.shared.gangOf(pod)
	if !ok {
		return nil, nil
	}
	return []fwk.SignFragment{{Key: Name, Value: key.String()}}, nil
}
