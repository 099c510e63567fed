package gang

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// reserver reserves the devices of the pods that a dry run places, as scheduling cycles do: with the Reserve plugins of
// the profile. So the plugin DynamicResources counts the devices of one pod when it looks for those of the next. When
// the dry run ends or takes a placement back, Unreserve follows. Both only change the scheduler's memory: Unreserve
// writes to the API server only if a claim is reserved for the pod, and such pods are not reserved here. Scheduling
// cycles run one after another, and so none of them sees the reservations of a dry run.
type reserver struct {
	fw      framework.Framework
	changes int // counts reservations, and those that were taken back too
}

// claimed reports whether a DeviceClass provides a resource.
func (r *reserver) claimed(name corev1.ResourceName) bool {
	return r.fw.SharedDRAManager().DeviceClassResolver().GetDeviceClass(name) != nil
}

// needed reports whether a pod requests devices: by claims, or by an extended resource of a DeviceClass.
func (r *reserver) needed(pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	for name := range requestOf(pod).ScalarResources {
		if r.claimed(name) {
			return true
		}
	}
	return false
}

// claims are the ResourceClaims of a pod. It fails if one does not exist.
func (r *reserver) claims(pod *corev1.Pod) ([]*resourceapi.ResourceClaim, error) {
	var out []*resourceapi.ResourceClaim
	for _, ref := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &ref)
		if err != nil {
			return nil, err
		}
		if name == nil { // kube-controller-manager found that the pod needs none
			continue
		}
		c, err := r.fw.SharedDRAManager().ResourceClaims().Get(pod.Namespace, *name)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// count is how many devices the claims of a pod request. A request for all devices of a node counts as one.
func (r *reserver) count(pod *corev1.Pod) (n int64) {
	claims, err := r.claims(pod)
	if err != nil {
		return 0 // PreFilter refuses it
	}
	for _, c := range claims {
		for _, request := range c.Spec.Devices.Requests {
			switch {
			case request.Exactly != nil:
				n += max(request.Exactly.Count, 1)
			case len(request.FirstAvailable) > 0:
				n += max(request.FirstAvailable[0].Count, 1)
			}
		}
	}
	return n
}

// key tells pods of one shape apart by their claims. Pods with equal claims, none of which has devices yet, may share
// what is known of the nodes. Any other pod is different from all.
func (r *reserver) key(pod *corev1.Pod) string {
	claims, err := r.claims(pod)
	if err != nil || pod.Status.ExtendedResourceClaimStatus != nil {
		return string(pod.UID)
	}
	var key []byte
	for _, c := range claims {
		spec, err := json.Marshal(c.Spec)
		if err != nil || c.Status.Allocation != nil {
			return string(pod.UID)
		}
		key = append(key, spec...)
	}
	return string(key)
}

// reserve reserves the devices of a class's pod on a node. It returns false if nothing was reserved: a claim has gone
// meanwhile, or is reserved for the pod already, so that Unreserve would write to the API server.
func (r *reserver) reserve(ctx context.Context, c *class, node string) (bool, error) {
	claims, err := r.claims(c.pod)
	if err != nil || slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
		return resourceclaim.IsReservedForPod(c.pod, claim, false)
	}) {
		return false, nil
	}
	r.changes++
	if status := r.fw.RunReservePluginsReserve(ctx, c.state, c.pod, node); !status.IsSuccess() {
		r.fw.RunReservePluginsUnreserve(ctx, c.state, c.pod, node)
		return false, fmt.Errorf("reserving devices on node %s for pod %s: %w", node, c.pod.Name, status.AsError())
	}
	return true, nil
}

// unreserve takes back what the last moves have reserved.
func (sim *simulation) unreserve(ctx context.Context, moves []move) {
	for _, m := range slices.Backward(moves) {
		if m.reserved != nil {
			sim.devices.changes++
			sim.fw.RunReservePluginsUnreserve(ctx, m.reserved.state, m.reserved.pod, sim.nodes[m.node].Node().Name)
		}
	}
}

// explain explains a refusal that comes from a claim which several pods of the dry run share: kube-scheduler allocates
// it only when the first of them binds, which the gang prevents.
func (r *reserver) explain(pod *corev1.Pod, refusal *fwk.Status) *fwk.Status {
	claims, err := r.claims(pod)
	if err != nil {
		return refusal
	}
	for _, c := range claims {
		if c.Status.Allocation == nil && r.fw.SharedDRAManager().ResourceClaims().GetPendingAllocation(c.UID) != nil {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf(
				"several pods share ResourceClaim %s, which has no devices yet and gets them only when one of them "+
					"binds. Use a ResourceClaimTemplate, so that each pod has a claim", c.Name,
			))
		}
	}
	return refusal
}

// deallocate releases devices that a failed binding left to a pod, if no node that reaches them has room. The plugin
// DynamicResources does so for the pod of a scheduling cycle, and of a gang only one pod has such cycles.
func (g *Gang) deallocate(ctx context.Context, sim *simulation, short *shortage) error {
	c := sim.kinds[short.failed]
	if c == nil || !c.claims || c.refusal != nil {
		return nil
	}
	_, status := g.profile.RunPostFilterPlugins(ctx, c.state, c.pod, framework.NewDefaultNodeToStatus())
	if status.IsSuccess() || status.IsRejected() {
		return nil
	}
	return fmt.Errorf("deallocating the ResourceClaims of pod %s: %w", c.pod.Name, status.AsError())
}

// missingClaim names a ResourceClaim of a pod that does not exist yet, "" if all that are made from templates do.
func missingClaim(pod *corev1.Pod) string {
	for _, ref := range pod.Spec.ResourceClaims {
		if _, _, err := resourceclaim.Name(pod, &ref); errors.Is(err, resourceclaim.ErrClaimNotFound) {
			return fmt.Sprintf(
				"pod %s waits for kube-controller-manager to create its ResourceClaim from ResourceClaimTemplate %s",
				pod.Name, *ref.ResourceClaimTemplateName,
			)
		}
	}
	return ""
}

// awaitClaims explains that a gang has too few pods whose ResourceClaims exist, "" if it has enough. The pod that looks
// for room is then woken when another gets its claims: the queue of kube-scheduler offers a pod's update only to the
// pod itself.
func (c *coordinator) awaitClaims(uid gangcache.UID, wants []gangcache.Want) (message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range wants {
		delete(c.awaiting, w.Gang)
		var missing []string
		for _, candidate := range w.Candidates {
			if pod := c.pods[candidate]; pod != nil && missingClaim(pod) != "" {
				missing = append(missing, missingClaim(pod))
			}
		}
		if len(missing) > 0 && len(w.Candidates)-len(missing) < w.Need {
			c.awaiting[w.Gang] = uid
			message = fmt.Sprintf(
				"gang %s needs %d pods at once and lacks the ResourceClaims of %d: %s", w.Gang, w.Min, len(missing),
				missing[0],
			)
		}
	}
	return message
}

// claimsGenerated wakes the pod that looks for room on behalf of a gang if it waited for the claims of a member.
func (c *coordinator) claimsGenerated(key gangcache.Key, old, pod *corev1.Pod) {
	if old == nil || resourceclaim.PodStatusEqual(old.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses) {
		return
	}
	c.mu.RLock()
	uid, ok := c.awaiting[key]
	c.mu.RUnlock()
	if ok {
		c.wake([]gangcache.UID{uid})
	}
}
