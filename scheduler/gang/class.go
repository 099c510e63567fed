package gang

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// class is a kind of pods that differ in nothing that filters look at.
type class struct {
	pod     *corev1.Pod
	info    *framework.PodInfo
	state   fwk.CycleState
	allowed sets.Set[string] // nodes that PreFilter leaves, nil for all
	refusal *fwk.Status      // PreFilter's, of the whole class
	coupled bool             // where one pod goes changes where the next may: a node that was full may open up
	soft    bool             // where one pod goes changes where the next had better go
	claims  bool             // it asks for devices, and is of one pod: each has claims of its own
	as      int              // how often reservations of devices had changed when the class was prepared
	within  map[*domain]*filling
	// evictions are who must go for a pod of the class, by node, where that is known.
	evictions map[int]*eviction
	tried     map[*domain]*shortlist // nodes for evictions
}

// filling is how far the nodes of a domain are filled with pods of a class.
type filling struct {
	order   []int          // nodes that are filled first, in that order
	others  []int          // nodes that are filled then, from one of them on and round to those before it
	from    int            // which of the others comes first
	left    int            // how many of the others are in the order
	next    int            // how many nodes of the order take no more
	since   int            // the simulation's clock when it was last at the first node
	reasons map[string]int // why nodes take no more
}

// current is the node that is to be filled now, -1 where all are full.
func (f *filling) current() int {
	switch i := f.next - len(f.order); {
	case i < 0:
		return f.order[f.next]
	case i < f.left:
		return f.others[(f.from+i)%len(f.others)]
	}
	return -1
}

// shape is what filters look at in a pod. What would make every pod a class of its own is left out: labels that are
// overlooked, and volumes that are made where a pod is, among which the one with an account's token has a name by
// chance.
func shape(pod *corev1.Pod, overlooked []string) (string, error) {
	labels := maps.Clone(pod.Labels)
	for _, label := range overlooked {
		delete(labels, label)
	}
	spec := pod.Spec
	text, err := json.Marshal(struct {
		Namespace string
		Labels    map[string]string
		Spec      corev1.PodSpec
	}{pod.Namespace, labels, corev1.PodSpec{
		Containers: requests(spec.Containers), InitContainers: requests(spec.InitContainers), Overhead: spec.Overhead,
		Resources:    spec.Resources,
		NodeSelector: spec.NodeSelector, NodeName: spec.NodeName, Affinity: spec.Affinity,
		Tolerations:               spec.Tolerations,
		TopologySpreadConstraints: spec.TopologySpreadConstraints, Volumes: elsewhere(spec.Volumes),
		ResourceClaims: spec.ResourceClaims, Priority: spec.Priority,
		HostNetwork: spec.HostNetwork,
	}})
	if err != nil {
		return "", fmt.Errorf("comparing pod %s: %w", pod.Name, err)
	}
	return string(text), nil
}

// requests are containers without what only a kubelet reads.
func requests(containers []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(containers))
	for i, c := range containers {
		out[i] = corev1.Container{
			Image: c.Image, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy,
		}
	}
	return out
}

// elsewhere are the volumes that are not made on the pod's node of what the API or the node itself has.
func elsewhere(volumes []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for _, v := range volumes {
		if v.Projected == nil && v.ConfigMap == nil && v.Secret == nil && v.DownwardAPI == nil && v.EmptyDir == nil &&
			v.HostPath == nil {
			out = append(out, v)
		}
	}
	return out
}

// class is the class of a pod, prepared when its first pod is met.
func (sim *simulation) class(ctx context.Context, pod *corev1.Pod) (*class, error) {
	if c := sim.kinds[pod]; c != nil && !c.claims {
		return c, nil
	}
	if sim.last != nil && !sim.last.claims && alike(pod, sim.last.pod, sim.overlooked) {
		sim.kinds[pod] = sim.last
		return sim.last, nil
	}
	key, err := sim.key(pod)
	if err != nil {
		return nil, err
	}
	c := sim.classes[key]
	// The state of a class with claims reserves devices for its own pod only, and is outdated after any reservation.
	stale := c != nil && c.claims && (c.pod != pod || c.as != sim.devices.changes)
	if c == nil || stale && !c.full(sim.domain) {
		before := c
		if c, err = sim.newClass(ctx, pod); err != nil {
			return nil, err
		}
		// Pods with equal claims share what is known of each node. A refused class has looked at none.
		if before != nil && before.refusal == nil && c.refusal == nil {
			c.within, c.evictions, c.tried = before.within, before.evictions, before.tried
		}
		sim.classes[key] = c
	}
	sim.kinds[pod], sim.last = c, c
	return c, nil
}

// full reports whether no node of a domain takes one more pod of the class.
func (c *class) full(d *domain) bool {
	f := c.within[d]
	return f != nil && f.current() < 0 && !c.coupled && c.refusal == nil
}

// key tells the classes of pods apart.
func (sim *simulation) key(pod *corev1.Pod) (string, error) {
	text, err := shape(pod, sim.overlooked)
	if err != nil || !sim.devices.needed(pod) {
		return text, err
	}
	return text + sim.devices.key(pod), nil
}

// newClass prepares a class for its first pod.
func (sim *simulation) newClass(ctx context.Context, pod *corev1.Pod) (*class, error) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("reading the affinity of pod %s: %w", pod.Name, err)
	}
	c := &class{
		pod: pod, info: info, state: framework.NewCycleState(), within: map[*domain]*filling{},
		evictions: map[int]*eviction{}, tried: map[*domain]*shortlist{}, as: sim.devices.changes,
	}
	info.CalculateResource() // so that the copies of it for other pods have that too
	c.coupled, c.soft = couples(&pod.Spec)
	c.claims = sim.devices.needed(pod)
	c.state.Write(dryRunKey, dryRunMark{})
	result, status, _ := sim.fw.RunPreFilterPlugins(ctx, c.state, pod)
	switch {
	case status.IsRejected():
		c.refusal = sim.devices.explain(pod, status)
	case !status.IsSuccess():
		return nil, status.AsError()
	case !result.AllNodes():
		c.allowed = result.NodeNames
	}
	for _, m := range sim.moves {
		if err := sim.update(ctx, c, m); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// couples says whether a pod's place depends on where its like are: whether it must, and whether it had better.
func couples(spec *corev1.PodSpec) (must, better bool) {
	for _, c := range spec.TopologySpreadConstraints {
		must = must || c.WhenUnsatisfiable == corev1.DoNotSchedule
		better = better || c.WhenUnsatisfiable != corev1.DoNotSchedule
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		must = must || len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
		better = better || len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		must = must || len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
		better = better || len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
	}
	return must, better
}

// filling is how far a class has filled the domain in which the simulation places pods now.
func (sim *simulation) filling(ctx context.Context, c *class) (*filling, error) {
	if f := c.within[sim.domain]; f != nil {
		return f, nil
	}
	f := &filling{since: sim.clock, reasons: map[string]int{}}
	if err := sim.rank(ctx, c, f); err != nil {
		return nil, err
	}
	c.within[sim.domain] = f
	return f, nil
}

// rank orders the nodes that a class is to fill: those that take a pod of it, by the profile's scores. Pods whose
// places depend on each other try all nodes as they come.
func (sim *simulation) rank(ctx context.Context, c *class, f *filling) error {
	nodes := sim.domain.nodes
	switch {
	case c.refusal != nil:
		f.reasons[c.refusal.Message()] = 0 // no node was looked at
		return nil
	case c.coupled:
		f.order = nodes
		return nil
	}
	index := map[string]int{}
	var feasible []fwk.NodeInfo
	rest := len(nodes)
	for k := range nodes {
		i := nodes[(sim.start+k)%len(nodes)]
		n := sim.nodes[i]
		if len(feasible) == scored {
			rest = k
			break
		}
		switch status := sim.takes(ctx, c, i); {
		case status.IsSuccess():
			index[n.Node().Name] = i
			feasible = append(feasible, n)
		case !status.IsRejected():
			return status.AsError()
		default:
			f.blame(status)
		}
	}
	if len(feasible) == 0 {
		return nil
	}
	if status := sim.fw.RunPreScorePlugins(ctx, c.state, c.pod, feasible); !status.IsSuccess() {
		return status.AsError()
	}
	scores, status := sim.fw.RunScorePlugins(ctx, c.state, c.pod, feasible)
	if !status.IsSuccess() {
		return status.AsError()
	}
	slices.SortFunc(scores, func(a, b fwk.NodePluginScores) int {
		return cmp.Or(cmp.Compare(b.TotalScore, a.TotalScore), cmp.Compare(b.Randomizer, a.Randomizer))
	})
	for _, s := range scores {
		f.order = append(f.order, index[s.Name])
	}
	// Should those not have room for all. A small gang would pay for a list of all nodes of a large cluster.
	f.others, f.from, f.left = nodes, sim.start+rest, len(nodes)-rest
	return nil
}

// scored is how many nodes that take a pod are scored and filled first, as kube-scheduler scores a part of a large
// cluster: looking at all of them would cost a gang more than what its members cost otherwise.
const scored = 100

// blame counts why a node takes no pod of the class.
func (f *filling) blame(status *fwk.Status) {
	for _, r := range status.Reasons() {
		f.reasons[r]++
	}
}
