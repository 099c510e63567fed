package gang

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// refuse finds without placing a pod that a queue needs more than there is room for, where its pods are alike and in
// each other's way in nothing but what they request: what is free on the nodes says then how many fit. It leaves in
// the queue what placing one after another would have left; false where they must be placed to know.
func (sim *simulation) refuse(ctx context.Context, q *queue) (bool, error) {
	if !q.uniform || len(q.pods) < q.need || len(sim.overlooked) < len(numberings) {
		return false, nil
	}
	c, err := sim.class(ctx, q.pods[0])
	if err != nil || c.refusal != nil || c.within[sim.domain] != nil {
		return false, err
	}
	ask := requestOf(c.pod)
	if !sim.countable(c, ask) || sim.anyRoom(ask, q.need) {
		return false, nil
	}
	if sim.removal != nil { // no eviction would do
		q.tried, q.failed = len(q.pods), q.pods[0]
		return true, nil
	}
	room, reasons, err := sim.count(ctx, c, ask)
	if err != nil || reasons == nil {
		return false, err
	}
	q.tried, q.placed, q.failed, q.reasons = len(q.pods), room, q.pods[0], reasons
	return true, nil
}

// countable says whether pods of a class are in each other's way on a node in nothing but what they request.
func (sim *simulation) countable(c *class, ask *framework.Resource) bool {
	spec := &c.pod.Spec
	if c.coupled || c.claims || spec.HostNetwork || len(util.GetHostPorts(c.pod)) > 0 ||
		len(elsewhere(spec.Volumes)) > 0 {
		return false
	}
	// What a node counts for a pod may be more than what the filters ask for, such as while a pod is resized.
	taken, ok := c.info.CalculateResource().Resource.(*framework.Resource)
	return ok && same(ask, taken)
}

// anyRoom says whether the nodes of the simulation's domain take so many pods by their free resources, or by those that
// evictions would free.
func (sim *simulation) anyRoom(ask *framework.Resource, need int) bool {
	room := 0
	for _, i := range sim.domain.nodes {
		if room += sim.places(sim.removal.withoutVictims(sim.nodes[i]), ask); room >= need {
			return true
		}
	}
	return false
}

// count is how many pods of a class the domain takes, and why its nodes take no more. There are no reasons where the
// count would not be that of the filters: where they do not hold the class to what it asks for, or reckon with pods
// that are nominated.
func (sim *simulation) count(
	ctx context.Context, c *class, ask *framework.Resource,
) (room int, reasons map[string]int, err error) {
	f := filling{reasons: map[string]int{}}
	for _, i := range sim.domain.nodes {
		n := sim.nodes[i]
		switch status := sim.takes(ctx, c, i); {
		case status.IsRejected():
			f.blame(status)
			continue
		case !status.IsSuccess():
			return 0, nil, status.AsError()
		}
		places := sim.places(n, ask)
		held := room > 0 || sim.held(ctx, c, n, ask)
		if !held || places == 0 || len(sim.fw.NominatedPodsForNode(n.Node().Name)) > 0 {
			return 0, nil, nil
		}
		room += places
		for _, r := range lacks(n, ask, places) {
			f.reasons[r]++
		}
	}
	return room, f.reasons, nil
}

// held says whether the filters hold a class to all that it asks for, by asking about a node that took it until all of
// that was taken: a profile may ignore resources, or do without the filter of resources.
func (sim *simulation) held(ctx context.Context, c *class, n fwk.NodeInfo, ask *framework.Resource) bool {
	rest := corev1.ResourceList{}
	eachAmount(n, ask, func(name corev1.ResourceName, _, free int64) {
		rest[name] = *resource.NewQuantity(free, resource.DecimalSI)
		if name == corev1.ResourceCPU {
			rest[name] = *resource.NewMilliQuantity(free, resource.DecimalSI)
		}
	})
	info, err := framework.NewPodInfo(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "rest", UID: "rest"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: rest}},
		}},
	})
	if err != nil {
		return false
	}
	full := n.Snapshot()
	full.AddPodInfo(info)
	status := sim.fw.RunFilterPlugins(ctx, c.state, c.pod, full)
	if !status.IsRejected() || len(rest) == 0 {
		return false
	}
	for name := range rest {
		if !slices.Contains(status.Reasons(), insufficient(name)) {
			return false
		}
	}
	return true
}

// eachAmount calls a function with each resource that is asked for: how much of it, and how much a node has free.
func eachAmount(n fwk.NodeInfo, ask *framework.Resource, with func(name corev1.ResourceName, asked, free int64)) {
	has, used := n.GetAllocatable(), n.GetRequested()
	if ask.MilliCPU > 0 {
		with(corev1.ResourceCPU, ask.MilliCPU, has.GetMilliCPU()-used.GetMilliCPU())
	}
	if ask.Memory > 0 {
		with(corev1.ResourceMemory, ask.Memory, has.GetMemory()-used.GetMemory())
	}
	if ask.EphemeralStorage > 0 {
		free := has.GetEphemeralStorage() - used.GetEphemeralStorage()
		with(corev1.ResourceEphemeralStorage, ask.EphemeralStorage, free)
	}
	for name, asked := range ask.ScalarResources {
		if asked > 0 {
			with(name, asked, has.GetScalarResources()[name]-used.GetScalarResources()[name])
		}
	}
}

// places is how many pods that ask for something a node takes by its free resources.
func (sim *simulation) places(n fwk.NodeInfo, ask *framework.Resource) int {
	out := int64(n.GetAllocatable().GetAllowedPodNumber() - len(n.GetPods()))
	eachAmount(n, ask, func(name corev1.ResourceName, asked, free int64) {
		if n.GetAllocatable().GetScalarResources()[name] == 0 && sim.devices.claimed(name) {
			return
		}
		out = min(out, free/asked)
	})
	return int(max(out, 0))
}

// lacks is what a node has not enough of for one more pod beside a few of the same, in the words of the filter.
func lacks(n fwk.NodeInfo, ask *framework.Resource, few int) []string {
	var out []string
	if len(n.GetPods())+few >= n.GetAllocatable().GetAllowedPodNumber() {
		out = append(out, "Too many pods")
	}
	eachAmount(n, ask, func(name corev1.ResourceName, asked, free int64) {
		if asked > free-asked*int64(few) {
			out = append(out, insufficient(name))
		}
	})
	return out
}

func insufficient(name corev1.ResourceName) string { return fmt.Sprintf("Insufficient %v", name) }
