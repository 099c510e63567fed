package gang

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// removal is the pods that a gang may have evicted. Members of the gang are placed one after another as kube-scheduler
// would: its own code finds whom one pod must have evicted on each node, and chooses the node. What is added here is
// that of a gang all go, wherever they are, but those that it can spare.
type removal struct {
	ranker  defaultpreemption.DefaultPreemption // kube-scheduler's own, which is told who may go
	sparing defaultpreemption.DefaultPreemption // the same without those with whom others would go
	victims map[types.UID]*victim
	gone    map[types.UID]bool              // victims that were taken off their nodes
	groups  map[string][]*victim            // by gangcache.Membership
	budgets []*policyv1.PodDisruptionBudget // with what they allow beside those who go already
	selects []labels.Selector
}

// victim is a pod that may be evicted, where it is in the simulation.
type victim struct {
	info       fwk.PodInfo
	node       int
	membership gangcache.Membership
}

func (v *victim) pod() *corev1.Pod { return v.info.GetPod() }

// newRemoval finds the pods below a priority that may go. Those of a gang with a member that may not go are left,
// except what it can spare.
func (g *Gang) newRemoval(nodes []fwk.NodeInfo, priority int32) (*removal, error) {
	r := &removal{
		ranker: *g.preempter, victims: map[types.UID]*victim{}, gone: map[types.UID]bool{},
		groups: map[string][]*victim{},
	}
	r.ranker.IsEligiblePod = func(_ fwk.NodeInfo, victim fwk.PodInfo, _ *corev1.Pod) bool {
		return r.victims[victim.GetPod().UID] != nil
	}
	r.ranker.MoreImportantPod = r.moreImportant
	r.sparing = r.ranker
	r.sparing.IsEligiblePod = func(_ fwk.NodeInfo, victim fwk.PodInfo, _ *corev1.Pod) bool {
		pod := victim.GetPod()
		return r.victims[pod.UID] != nil && len(r.company(pod)) == 0
	}
	if err := r.readBudgets(g.profile.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister().List(
		labels.Everything())); err != nil {
		return nil, err
	}
	protected, now := map[string]bool{}, time.Now()
	for i, n := range nodes {
		for _, info := range n.GetPods() {
			v := &victim{info, i, g.shared.cache.Membership(uidOf(info.GetPod()))}
			switch {
			case stuck(v.pod(), now):
			case corev1helpers.PodPriority(v.pod()) >= priority:
				protected[v.membership.Group] = true
			default:
				r.victims[v.pod().UID] = v
			}
		}
	}
	for uid, v := range r.victims {
		switch group := v.membership.Group; {
		case group == "":
		case protected[group] && !v.membership.Spare:
			delete(r.victims, uid)
		default:
			r.groups[group] = append(r.groups[group], v)
		}
	}
	return r, nil
}

// company is the pods that go with one that is evicted: the rest of its gang, unless the gang can spare it.
func (r *removal) company(pod *corev1.Pod) []*victim {
	v := r.victims[pod.UID]
	if v == nil || v.membership.Group == "" || v.membership.Spare {
		return nil
	}
	var out []*victim
	for _, other := range r.groups[v.membership.Group] {
		if !r.gone[other.pod().UID] {
			out = append(out, other)
		}
	}
	return out
}

// moreImportant is kube-scheduler's order of who is spared first, but that of equals those are spared with whom others
// would have to go.
func (r *removal) moreImportant(a, b *corev1.Pod) bool {
	if with, without := len(r.company(a)), len(r.company(b)); byPriority(a, b) == 0 && with != without {
		return with > without
	}
	return util.MoreImportantPod(a, b)
}

// lost is what it costs to evict pods, with those that go with them, as kube-scheduler reckons.
func (r *removal) lost(pods []*corev1.Pod) *extenderv1.Victims {
	out := &extenderv1.Victims{}
	known := map[types.UID]bool{}
	add := func(pod *corev1.Pod) {
		if !known[pod.UID] {
			known[pod.UID], out.Pods = true, append(out.Pods, pod)
		}
	}
	for _, pod := range pods {
		add(pod)
		for _, v := range r.company(pod) {
			add(v.pod())
		}
	}
	slices.SortStableFunc(out.Pods, func(a, b *corev1.Pod) int { return byPriority(b, a) })
	left := make([]int32, len(r.budgets))
	for i, b := range r.budgets {
		left[i] = b.Status.DisruptionsAllowed
	}
	for _, pod := range out.Pods {
		broken := false
		r.eachBudget(pod, func(i int) {
			left[i]--
			broken = broken || left[i] < 0
		})
		if broken {
			out.NumPDBViolations++
		}
	}
	return out
}

// readBudgets takes the cluster's PodDisruptionBudgets. One with a malformed selector, or without one, has no pods.
func (r *removal) readBudgets(budgets []*policyv1.PodDisruptionBudget, err error) error {
	if err != nil {
		return fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	r.budgets = slices.Clone(budgets)
	for _, b := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || selector.Empty() {
			selector = labels.Nothing()
		}
		r.selects = append(r.selects, selector)
	}
	return nil
}

// eachBudget calls a function with each budget that a pod is under, which does not know yet that the pod goes.
func (r *removal) eachBudget(pod *corev1.Pod, with func(int)) {
	for i, b := range r.budgets {
		if _, known := b.Status.DisruptedPods[pod.Name]; !known && b.Namespace == pod.Namespace &&
			r.selects[i].Matches(labels.Set(pod.Labels)) {
			with(i)
		}
	}
}

// count enters in the budgets that a pod goes, or stays after all.
func (r *removal) count(m move) {
	uid := m.pod.GetPod().UID
	if r.victims[uid] == nil {
		return
	}
	r.gone[uid] = m.taken
	r.eachBudget(m.pod.GetPod(), func(i int) {
		b := *r.budgets[i] // that of the informer stays as it is
		if m.taken {
			b.Status.DisruptionsAllowed--
		} else {
			b.Status.DisruptionsAllowed++
		}
		r.budgets[i] = &b
	})
}

// taken are the pods that moves take off their nodes.
func taken(moves []move) []*corev1.Pod {
	var out []*corev1.Pod
	for _, m := range moves {
		if m.taken {
			out = append(out, m.pod.GetPod())
		}
	}
	return out
}

// eviction is who must go for one pod of a class on a node, nobody where there is room.
type eviction struct {
	lost  *extenderv1.Victims // nil where nobody's leaving makes room
	clock int                 // the simulation's when that was found out
}

// shortlist is the nodes of a domain on which a class was tried with evictions. Of a large domain that is a part, as
// kube-scheduler has it: more nodes are tried when too few are left.
type shortlist struct {
	tried  []int
	offset int // of the first of the domain's nodes that was tried
}

// makeRoom puts a pod on the node where least is lost, and takes those off who must go; -1 where no node is left.
func (sim *simulation) makeRoom(ctx context.Context, c *class, pod *corev1.Pod) (int, error) {
	if c.refusal != nil {
		return -1, nil
	}
	for again := false; ; {
		node, err := sim.cheapest(ctx, c)
		if err != nil {
			return -1, err
		}
		if node < 0 && c.coupled && !again { // what was placed may have opened up a node
			again = true
			clear(c.evictions)
			continue
		}
		if node < 0 {
			return -1, nil
		}
		e := c.evictions[node]
		if e.clock == sim.clock {
			return node, sim.evictFor(ctx, c, pod, node)
		}
		before := e.lost
		if err := sim.findEviction(ctx, c, node, e); err != nil {
			return -1, err
		}
		if e.lost != nil && slices.Equal(before.Pods, e.lost.Pods) &&
			before.NumPDBViolations == e.lost.NumPDBViolations {
			return node, sim.evictFor(ctx, c, pod, node) // it is still the best, and another draw would be among equals
		}
	}
}

// evictFor takes those off who must go for a pod on a node, and puts it there.
func (sim *simulation) evictFor(ctx context.Context, c *class, pod *corev1.Pod, node int) error {
	for _, p := range c.evictions[node].lost.Pods {
		v := sim.removal.victims[p.UID]
		if err := sim.move(ctx, move{pod: v.info, node: v.node, taken: true}); err != nil {
			return err
		}
	}
	return sim.put(ctx, c, pod, node)
}

// cheapest is the node on which a class loses least, by kube-scheduler's choice among as many as it would try; -1 where
// no node takes the class.
func (sim *simulation) cheapest(ctx context.Context, c *class) (int, error) {
	nodes := sim.domain.nodes
	list := c.tried[sim.domain]
	offset, enough := sim.removal.ranker.GetOffsetAndNumCandidates(int32(len(nodes)))
	if list == nil {
		list = &shortlist{offset: int(offset)}
		c.tried[sim.domain] = list
	}
	for {
		if err := sim.findEvictions(ctx, c, list.tried); err != nil {
			return -1, err
		}
		var candidates []preemption.Candidate
		harmless := false
		for _, i := range list.tried {
			switch e := c.evictions[i]; {
			case e.lost == nil:
			case len(e.lost.Pods) == 0:
				return i, nil
			default:
				candidates = append(candidates, candidate{strconv.Itoa(i), e.lost})
				harmless = harmless || e.lost.NumPDBViolations == 0
			}
		}
		from := len(list.tried)
		if from == len(nodes) || harmless && len(candidates) >= int(enough) {
			return sim.removal.choose(ctx, candidates), nil
		}
		for k := range min(int(enough), len(nodes)-from) {
			list.tried = append(list.tried, nodes[(list.offset+from+k)%len(nodes)])
		}
	}
}

// choose is the number that the best of some candidates has as its name, -1 where there are none.
func (r *removal) choose(ctx context.Context, candidates []preemption.Candidate) int {
	if len(candidates) == 0 {
		return -1
	}
	i, _ := strconv.Atoi(r.best(ctx, candidates).Name()) // all are numbers
	return i
}

// best is the candidate that kube-scheduler chooses.
func (r *removal) best(ctx context.Context, candidates []preemption.Candidate) preemption.Candidate {
	return r.ranker.Evaluator.SelectCandidate(ctx, candidates)
}

// findEvictions finds out who must go for a class on those of some nodes of which it is not known.
func (sim *simulation) findEvictions(ctx context.Context, c *class, of []int) error {
	var nodes []int
	for _, i := range of {
		if c.evictions[i] == nil {
			nodes = append(nodes, i)
		}
	}
	found, errs := make([]eviction, len(nodes)), make([]error, len(nodes))
	sim.fw.Parallelizer().Until(ctx, len(nodes), func(k int) {
		errs[k] = sim.findEviction(ctx, c, nodes[k], &found[k])
	}, Name)
	for k, i := range nodes {
		if errs[k] != nil {
			return errs[k]
		}
		c.evictions[i] = &found[k]
	}
	return context.Cause(ctx)
}

// findEviction finds out who must go for a pod of a class on a node.
func (sim *simulation) findEviction(ctx context.Context, c *class, node int, e *eviction) error {
	*e = eviction{clock: sim.clock}
	n := sim.nodes[node]
	if status := sim.takes(ctx, c, node); status.IsSuccess() || !status.IsRejected() {
		e.lost = &extenderv1.Victims{}
		return status.AsError()
	}
	if c.allowed != nil && !c.allowed.Has(n.Node().Name) {
		return nil
	}
	r := sim.removal
	var candidates []preemption.Candidate
	for i, ranker := range []*defaultpreemption.DefaultPreemption{&r.ranker, &r.sparing} {
		pods, _, status := ranker.SelectVictimsOnNode(ctx, c.state.Clone(), c.pod, n.Snapshot(), r.budgets)
		if !status.IsSuccess() {
			if !status.IsRejected() {
				return status.AsError()
			}
			continue
		}
		if len(pods) == 0 { // a nomination has gone since, and there is room
			e.lost = &extenderv1.Victims{}
			return nil
		}
		candidates = append(candidates, candidate{strconv.Itoa(i), r.lost(pods)})
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return len(r.company(p)) > 0 }) {
			candidates = candidates[len(candidates)-1:]
			break // nobody goes along
		}
	}
	if len(candidates) > 0 {
		e.lost = r.best(ctx, candidates).Victims()
	}
	return nil
}

// bare is a node without those of its pods that may go. Without a removal nobody may.
func (r *removal) bare(n fwk.NodeInfo) fwk.NodeInfo {
	if r == nil {
		return n
	}
	rest := n.Snapshot()
	for _, info := range n.GetPods() {
		if pod := info.GetPod(); r.victims[pod.UID] != nil {
			_ = rest.RemovePod(klog.Background(), pod) // it is there
		}
	}
	return rest
}

// preemptor is the pod on whose behalf others are evicted, as kube-scheduler's own executor of preemption asks for it.
type preemptor struct{ pod *corev1.Pod }

var _ preemption.ExecutorPreemptor = preemptor{}

func (p preemptor) GetName() string              { return p.pod.Name }
func (p preemptor) GetNamespace() string         { return p.pod.Namespace }
func (p preemptor) UID() types.UID               { return p.pod.UID }
func (p preemptor) SchedulerName() string        { return p.pod.Spec.SchedulerName }
func (p preemptor) Obj() runtime.Object          { return p.pod }
func (p preemptor) Pods() map[string]*corev1.Pod { return map[string]*corev1.Pod{p.pod.Name: p.pod} }
func (p preemptor) Priority() int32              { return corev1helpers.PodPriority(p.pod) }
func (p preemptor) Type() string                 { return "pod" }

// candidate is a node, or another place, for a preemptor, and what is lost there.
type candidate struct {
	name string
	lost *extenderv1.Victims
}

var _ preemption.Candidate = candidate{}

func (c candidate) Victims() *extenderv1.Victims { return c.lost }
func (c candidate) Name() string                 { return c.name }
