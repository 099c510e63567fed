package gang

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/tegen-dev/tegen/scheduler/gang/ledger"
)

// rehearsalKey marks a cycle state of a rehearsal, in which this plugin must not rehearse again.
const rehearsalKey fwk.StateKey = Name + "/rehearsal"

type rehearsal struct{}

// Clone is asked for by the framework.
func (r rehearsal) Clone() fwk.StateData { return r }

func rehearsing(state fwk.CycleState) bool {
	_, err := state.Read(rehearsalKey)
	return err == nil
}

// stage is a private copy of the cluster's snapshot on which pods are placed one after another with the profile's own
// filters: resources, taints, affinity, topology, volumes. What filters do not see, such as the second claim on one
// volume, is found when the pods are placed in earnest.
type stage struct {
	fw      framework.Framework
	nodes   []fwk.NodeInfo // the snapshot's, or a copy where something was placed or removed
	copied  []bool
	classes map[string]*class
	start   int    // the node that is looked at first
	ordered bool   // the nodes are in the order in which they are to be filled
	moves   []move // what changed against the snapshot, for classes that are met later
}

// class is a kind of pods that differ in nothing that filters look at.
type class struct {
	pod     *corev1.Pod
	info    *framework.PodInfo
	state   fwk.CycleState
	allowed sets.Set[string] // nodes that PreFilter leaves, nil for all
	refusal *fwk.Status      // PreFilter's, of the whole class
	coupled bool             // where one pod goes changes where the next may: a node that was full may open up
	soft    bool             // where one pod goes changes where the next had better go
	order   []int            // nodes, in the order in which they are filled
	next    int              // nodes of the order before it take no more
	moved   bool             // something was placed since the class was last at the first node
	reasons map[string]int   // why nodes take no more
}

// move is a pod placed on a node, or removed from it.
type move struct {
	pod   fwk.PodInfo
	node  int
	taken bool
}

// spot is where a rehearsal placed a pod.
type spot struct {
	pod  *corev1.Pod
	node int
}

// plan is a rehearsal that worked out.
type plan struct {
	spots   []spot
	names   []string // of the nodes by index
	pinning bool     // its pods go to its nodes: others might not work out, or would be no better
}

// nodes are the pods of the plan, each with the node it must be placed on where that matters.
func (p *plan) nodes(pin bool) map[ledger.UID]string {
	out := make(map[ledger.UID]string, len(p.spots))
	for _, s := range p.spots {
		node := ""
		if pin || p.pinning {
			node = p.names[s.node]
		}
		out[uidOf(s.pod)] = node
	}
	return out
}

// shortage is a rehearsal that did not work out.
type shortage struct {
	gang    string
	placed  int
	want    ledger.Want
	pod     string
	reasons map[string]int
}

func (s *shortage) String() string {
	reasons := make([]string, 0, len(s.reasons))
	for _, r := range slices.Sorted(maps.Keys(s.reasons)) {
		reasons = append(reasons, fmt.Sprintf("%d %s", s.reasons[r], r))
	}
	why := ""
	if len(reasons) > 0 {
		why = ": " + strings.Join(reasons, ", ")
	}
	have := s.want.Min - s.want.Need
	return fmt.Sprintf("gang %s needs %d pods at once and has room for %d, none for pod %s%s", s.gang, s.want.Min, have+s.placed, s.pod, why)
}

// rehearse finds a place for what is wanted, all of it or nothing.
func (g *Gang) rehearse(ctx context.Context, wants []ledger.Want) (*plan, *shortage, error) {
	st, err := g.newStage()
	if err != nil {
		return nil, nil, err
	}
	return st.placeAll(ctx, wants, g.podsOf)
}

// podsOf are the members as they were last seen, without those that have gone since.
func (o *office) podsOf(uids []ledger.UID) []*corev1.Pod {
	o.mu.RLock()
	defer o.mu.RUnlock()
	out := make([]*corev1.Pod, 0, len(uids))
	for _, uid := range uids {
		if p := o.pods[uid]; p != nil {
			out = append(out, p)
		}
	}
	return out
}

func (g *Gang) newStage() (*stage, error) {
	snapshot, err := g.profile.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot: %w", err)
	}
	return &stage{fw: g.profile, nodes: slices.Clone(snapshot), copied: make([]bool, len(snapshot)), classes: map[string]*class{}, start: rand.IntN(max(len(snapshot), 1))}, nil
}

func (st *stage) placeAll(ctx context.Context, wants []ledger.Want, pods func([]ledger.UID) []*corev1.Pod) (*plan, *shortage, error) {
	p := &plan{names: make([]string, len(st.nodes))}
	for i, n := range st.nodes {
		p.names[i] = n.Node().Name
	}
	queues := make([]queue, len(wants))
	for i, w := range wants {
		queues[i] = queue{want: w, pods: pods(w.Candidates)}
	}
	for _, i := range bySize(queues) {
		q := &queues[i]
		placed, err := st.placeNext(ctx, p, q)
		if err != nil {
			return nil, nil, err
		}
		if !placed {
			return nil, q.shortage(), nil
		}
	}
	p.pinning = p.pinning || len(st.classes) > 1
	return p, nil, nil
}

// queue is the members of one gang that may fill its need, those of the most demanding kind first.
type queue struct {
	want   ledger.Want
	pods   []*corev1.Pod
	placed int
	failed *class // the first that found no place
}

// bySize orders the members that each gang needs first, largest first: what is small finds a place beside what is
// large, and not the other way round. It returns the gang of each in that order, and orders the gangs' pods alike.
func bySize(queues []queue) []int {
	type item struct {
		gang int
		size float64
	}
	sizes := map[*corev1.Pod]float64{}
	var all []*corev1.Pod
	for _, q := range queues {
		all = append(all, q.pods...)
	}
	measure(all, sizes)
	var items []item
	for i, q := range queues {
		first := q.pods[:min(q.want.Need, len(q.pods))]
		slices.SortStableFunc(first, func(a, b *corev1.Pod) int { return cmp.Compare(sizes[b], sizes[a]) })
		for _, pod := range first {
			items = append(items, item{i, sizes[pod]})
		}
		for range q.want.Need - len(first) { // they have gone meanwhile, and are missed below
			items = append(items, item{gang: i})
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(b.size, a.size) })
	out := make([]int, len(items))
	for i, it := range items {
		out[i] = it.gang
	}
	return out
}

// measure gives each pod a size: of each resource its share of what all of them ask for, so that what is rare weighs
// more, added up.
func measure(pods []*corev1.Pod, sizes map[*corev1.Pod]float64) {
	total := map[corev1.ResourceName]float64{}
	asks := make([]corev1.ResourceList, len(pods))
	for i, pod := range pods {
		asks[i] = resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		for name, q := range asks[i] {
			total[name] += q.AsApproximateFloat64()
		}
	}
	for i, pod := range pods {
		for name, q := range asks[i] {
			if total[name] > 0 {
				sizes[pod] += q.AsApproximateFloat64() / total[name]
			}
		}
	}
}

// placeNext places the next member of a gang that finds a place; false where none does.
func (st *stage) placeNext(ctx context.Context, p *plan, q *queue) (bool, error) {
	for len(q.pods) > 0 {
		pod := q.pods[0]
		q.pods = q.pods[1:]
		c, err := st.class(ctx, pod)
		if err != nil {
			return false, err
		}
		node, err := st.place(ctx, c, pod)
		if err != nil {
			return false, err
		}
		if node >= 0 {
			p.spots = append(p.spots, spot{pod, node})
			p.pinning = p.pinning || c.coupled || !c.soft
			q.placed++
			return true, nil
		}
		q.failed = cmp.Or(q.failed, c)
	}
	return false, nil
}

func (q *queue) shortage() *shortage {
	s := &shortage{gang: q.want.Gang.String(), placed: q.placed, want: q.want}
	if q.failed != nil {
		s.pod, s.reasons = q.failed.pod.Name, q.failed.reasons
	}
	return s
}

// shape is what filters look at in a pod. Labels that number the pods of a Job or StatefulSet are left out: they would
// make every pod a class of its own.
func shape(pod *corev1.Pod) (string, error) {
	labels := maps.Clone(pod.Labels)
	for _, numbering := range []string{"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"} {
		delete(labels, numbering)
	}
	spec := pod.Spec
	text, err := json.Marshal(struct {
		Namespace string
		Labels    map[string]string
		Spec      corev1.PodSpec
	}{pod.Namespace, labels, corev1.PodSpec{
		Containers: requests(spec.Containers), InitContainers: requests(spec.InitContainers), Overhead: spec.Overhead, Resources: spec.Resources,
		NodeSelector: spec.NodeSelector, NodeName: spec.NodeName, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
		TopologySpreadConstraints: spec.TopologySpreadConstraints, Volumes: spec.Volumes, ResourceClaims: spec.ResourceClaims, Priority: spec.Priority,
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
		out[i] = corev1.Container{Image: c.Image, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return out
}

// class is the class of a pod, prepared when its first pod is met.
func (st *stage) class(ctx context.Context, pod *corev1.Pod) (*class, error) {
	key, err := shape(pod)
	if err != nil {
		return nil, err
	}
	if c := st.classes[key]; c != nil {
		return c, nil
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("reading the affinity of pod %s: %w", pod.Name, err)
	}
	c := &class{pod: pod, info: info, state: framework.NewCycleState(), reasons: map[string]int{}}
	c.coupled, c.soft = couples(&pod.Spec)
	c.state.Write(rehearsalKey, rehearsal{})
	result, status, _ := st.fw.RunPreFilterPlugins(ctx, c.state, pod)
	switch {
	case status.IsRejected():
		c.refusal = status
		c.reasons[status.Message()] = len(st.nodes)
	case !status.IsSuccess():
		return nil, status.AsError()
	case !result.AllNodes():
		c.allowed = result.NodeNames
	}
	for _, m := range st.moves {
		if err := st.tell(ctx, c, m); err != nil {
			return nil, err
		}
	}
	if err := st.rank(ctx, c); err != nil {
		return nil, err
	}
	st.classes[key] = c
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

// rank orders the nodes that a class is to fill: those that take a pod of it, by the profile's scores. Pods whose places
// depend on each other try all nodes as they come, and so does preemption, which has put them in an order of its own.
func (st *stage) rank(ctx context.Context, c *class) error {
	if c.refusal != nil {
		return nil
	}
	if c.coupled || st.ordered {
		for i := range st.nodes {
			c.order = append(c.order, i)
		}
		return nil
	}
	index := map[string]int{}
	var feasible []fwk.NodeInfo
	rest := len(st.nodes)
	for k := range st.nodes {
		i := (st.start + k) % len(st.nodes)
		n := st.nodes[i]
		if len(feasible) == scored {
			rest = k
			break
		}
		switch status := st.takes(ctx, c, i); {
		case status.IsSuccess():
			index[n.Node().Name] = i
			feasible = append(feasible, n)
		case !status.IsRejected():
			return status.AsError()
		default:
			c.blame(status)
		}
	}
	if len(feasible) == 0 {
		return nil
	}
	if status := st.fw.RunPreScorePlugins(ctx, c.state, c.pod, feasible); !status.IsSuccess() {
		return status.AsError()
	}
	scores, status := st.fw.RunScorePlugins(ctx, c.state, c.pod, feasible)
	if !status.IsSuccess() {
		return status.AsError()
	}
	slices.SortFunc(scores, func(a, b fwk.NodePluginScores) int {
		return cmp.Or(cmp.Compare(b.TotalScore, a.TotalScore), cmp.Compare(b.Randomizer, a.Randomizer))
	})
	for _, s := range scores {
		c.order = append(c.order, index[s.Name])
	}
	for k := rest; k < len(st.nodes); k++ { // should those not have room for all
		c.order = append(c.order, (st.start+k)%len(st.nodes))
	}
	return nil
}

// scored is how many nodes that take a pod are scored and filled first, as kube-scheduler scores a part of a large
// cluster: looking at all of them would cost a gang more than what its members cost otherwise.
const scored = 100

// blame counts why a node takes no pod of the class.
func (c *class) blame(status *fwk.Status) {
	for _, r := range status.Reasons() {
		c.reasons[r]++
	}
}

// tell brings what PreFilter computed for a class up to date with a move.
func (st *stage) tell(ctx context.Context, c *class, m move) error {
	if c.refusal != nil {
		return nil
	}
	run := st.fw.RunPreFilterExtensionAddPod
	if m.taken {
		run = st.fw.RunPreFilterExtensionRemovePod
	}
	return run(ctx, c.state, c.pod, m.pod, st.nodes[m.node]).AsError()
}

// place finds the first node that takes a pod and puts it there; -1 where none does.
func (st *stage) place(ctx context.Context, c *class, pod *corev1.Pod) (int, error) {
	if c.refusal != nil {
		return -1, nil
	}
	for {
		for ; c.next < len(c.order); c.next++ {
			node := c.order[c.next]
			status := st.takes(ctx, c, node)
			switch {
			case status.IsSuccess():
				return node, st.put(ctx, c, pod, node)
			case !status.IsRejected():
				return -1, status.AsError()
			}
			c.blame(status)
		}
		if !c.coupled || !c.moved {
			return -1, nil
		}
		c.next, c.moved = 0, false
		clear(c.reasons)
	}
}

// takes runs the filters of a class on a node.
func (st *stage) takes(ctx context.Context, c *class, node int) *fwk.Status {
	n := st.nodes[node]
	if c.allowed != nil && !c.allowed.Has(n.Node().Name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) that its volumes or claims rule out")
	}
	return st.fw.RunFilterPluginsWithNominatedPods(ctx, c.state, c.pod, n)
}

// put places a pod on a node of the stage.
func (st *stage) put(ctx context.Context, c *class, pod *corev1.Pod, node int) error {
	info := c.info
	if pod != c.pod {
		var err error
		if info, err = framework.NewPodInfo(pod); err != nil {
			return fmt.Errorf("reading the affinity of pod %s: %w", pod.Name, err)
		}
	}
	return st.move(ctx, move{pod: info, node: node})
}

// move carries out a move and tells the classes met so far.
func (st *stage) move(ctx context.Context, m move) error {
	if !st.copied[m.node] {
		st.nodes[m.node], st.copied[m.node] = st.nodes[m.node].Snapshot(), true
	}
	if m.taken {
		if err := st.nodes[m.node].RemovePod(klog.FromContext(ctx), m.pod.GetPod()); err != nil {
			return fmt.Errorf("taking pod %s off its node: %w", m.pod.GetPod().Name, err)
		}
	} else {
		st.nodes[m.node].AddPodInfo(m.pod)
	}
	st.moves = append(st.moves, m)
	for _, c := range st.classes {
		c.moved = true
	}
	return st.tellAll(ctx, m)
}

// tellAll tells the classes met so far of a move.
func (st *stage) tellAll(ctx context.Context, m move) error {
	for _, c := range st.classes {
		if err := st.tell(ctx, c, m); err != nil {
			return err
		}
	}
	return nil
}
