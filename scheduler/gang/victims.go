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

// removal is the preemption for one gang. The simulation places the members one after another. For each of them,
// kube-scheduler's own code selects the pods to evict on a node, and the node. This type adds the gangs among the
// victims: if a pod of a gang is evicted, all of the gang's pods are, on any node, unless the gang can spare the pod.
type removal struct {
	ranker       defaultpreemption.DefaultPreemption // may select any of the victims
	withoutGangs defaultpreemption.DefaultPreemption // selects no pod whose eviction evicts others
	victims      map[types.UID]*victim               // the pods that may be evicted
	evicted      map[types.UID]bool                  // of those, the ones that the simulation has removed
	groups       map[string][]*victim                // victims by gangcache.Membership.Group
	budgets      []*policyv1.PodDisruptionBudget     // as they are after these evictions
	selectors    []labels.Selector                   // of the budgets
}

// victim is a pod that may be evicted.
type victim struct {
	info       fwk.PodInfo
	node       int // its index in the simulation
	membership gangcache.Membership
}

func (v *victim) pod() *corev1.Pod { return v.info.GetPod() }

// newRemoval collects the pods below a priority. If a pod of a gang has at least that priority, the gang's other pods
// are no victims either, except those that it can spare.
func (g *Gang) newRemoval(nodes []fwk.NodeInfo, priority int32) (*removal, error) {
	r := &removal{
		ranker: *g.preempter, victims: map[types.UID]*victim{}, evicted: map[types.UID]bool{},
		groups: map[string][]*victim{},
	}
	r.ranker.IsEligiblePod = func(_ fwk.NodeInfo, victim fwk.PodInfo, _ *corev1.Pod) bool {
		return r.victims[victim.GetPod().UID] != nil
	}
	r.ranker.MoreImportantPod = r.moreImportant
	r.withoutGangs = r.ranker
	r.withoutGangs.IsEligiblePod = func(_ fwk.NodeInfo, victim fwk.PodInfo, _ *corev1.Pod) bool {
		pod := victim.GetPod()
		return r.victims[pod.UID] != nil && len(r.companionsOf(pod)) == 0
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

// companionsOf are the pods that are evicted together with a pod: its gang and the gangs of its group, unless the gang
// can spare the pod.
func (r *removal) companionsOf(pod *corev1.Pod) []*victim {
	v := r.victims[pod.UID]
	if v == nil || v.membership.Group == "" || v.membership.Spare {
		return nil
	}
	var out []*victim
	for _, other := range r.groups[v.membership.Group] {
		if !r.evicted[other.pod().UID] {
			out = append(out, other)
		}
	}
	return out
}

// moreImportant orders victims as kube-scheduler does: it tries to keep the first. Of equal priorities, a pod is kept
// whose eviction would evict more pods.
func (r *removal) moreImportant(a, b *corev1.Pod) bool {
	if with, without := len(r.companionsOf(a)), len(r.companionsOf(b)); byPriority(a, b) == 0 && with != without {
		return with > without
	}
	return util.MoreImportantPod(a, b)
}

// costOf returns pods and their companions, with the number of violated budgets, as kube-scheduler compares them.
func (r *removal) costOf(pods []*corev1.Pod) *extenderv1.Victims {
	out := &extenderv1.Victims{}
	known := map[types.UID]bool{}
	add := func(pod *corev1.Pod) {
		if !known[pod.UID] {
			known[pod.UID], out.Pods = true, append(out.Pods, pod)
		}
	}
	for _, pod := range pods {
		add(pod)
		for _, v := range r.companionsOf(pod) {
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

// readBudgets stores the cluster's PodDisruptionBudgets. A budget without a valid selector selects no pods.
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
		r.selectors = append(r.selectors, selector)
	}
	return nil
}

// eachBudget calls a function with the index of each budget of a pod, except those that count it as disrupted already.
func (r *removal) eachBudget(pod *corev1.Pod, with func(int)) {
	for i, b := range r.budgets {
		if _, known := b.Status.DisruptedPods[pod.Name]; !known && b.Namespace == pod.Namespace &&
			r.selectors[i].Matches(labels.Set(pod.Labels)) {
			with(i)
		}
	}
}

// record updates the budgets if a move evicts a pod, or takes an eviction back.
func (r *removal) record(m move) {
	uid := m.pod.GetPod().UID
	if r.victims[uid] == nil {
		return
	}
	r.evicted[uid] = m.taken
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

// evictedPods are the pods that moves remove from their nodes.
func evictedPods(moves []move) []*corev1.Pod {
	var out []*corev1.Pod
	for _, m := range moves {
		if m.taken {
			out = append(out, m.pod.GetPod())
		}
	}
	return out
}

// eviction is the result of kube-scheduler's search on one node for one pod of a class.
type eviction struct {
	cost  *extenderv1.Victims // the pods to evict; empty if the pod fits without, nil if it fits in no case
	clock int                 // the simulation's clock at the search
}

// shortlist is the nodes of a domain that were searched for a class. As in kube-scheduler, that is only a part of a
// large domain. More nodes are searched if too few of them are candidates.
type shortlist struct {
	tried  []int
	offset int // the position in the domain of the first of them
}

// makeRoom places a pod on the best node and evicts the pods that are in the way. It returns -1 if no node takes it.
func (sim *simulation) makeRoom(ctx context.Context, c *class, pod *corev1.Pod) (int, error) {
	if c.refusal != nil {
		return -1, nil
	}
	for again := false; ; {
		node, err := sim.bestNode(ctx, c)
		if err != nil {
			return -1, err
		}
		if node < 0 && c.coupled && !again { // the pods placed since may have made another node possible
			again = true
			clear(c.evictions)
			continue
		}
		if node < 0 {
			return -1, nil
		}
		e := c.evictions[node]
		if e.clock == sim.clock {
			return node, sim.evictAndPlace(ctx, c, pod, node)
		}
		before := e.cost
		if err := sim.findEviction(ctx, c, node, e); err != nil {
			return -1, err
		}
		if e.cost != nil && slices.Equal(before.Pods, e.cost.Pods) &&
			before.NumPDBViolations == e.cost.NumPDBViolations {
			// The choice holds. To choose again would draw lots among equal nodes.
			return node, sim.evictAndPlace(ctx, c, pod, node)
		}
	}
}

// evictAndPlace removes the pods that are in the way on a node, and places a pod there.
func (sim *simulation) evictAndPlace(ctx context.Context, c *class, pod *corev1.Pod, node int) error {
	for _, p := range c.evictions[node].cost.Pods {
		v := sim.removal.victims[p.UID]
		if err := sim.move(ctx, move{pod: v.info, node: v.node, taken: true}); err != nil {
			return err
		}
	}
	return sim.put(ctx, c, pod, node)
}

// bestNode returns the node that kube-scheduler would choose, among as many candidates as it would search for. It
// returns -1 if no node takes the class.
func (sim *simulation) bestNode(ctx context.Context, c *class) (int, error) {
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
			case e.cost == nil:
			case len(e.cost.Pods) == 0:
				return i, nil
			default:
				candidates = append(candidates, candidate{strconv.Itoa(i), e.cost})
				harmless = harmless || e.cost.NumPDBViolations == 0
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

// choose returns the number in the name of the best candidate, or -1 if there are no candidates.
func (r *removal) choose(ctx context.Context, candidates []preemption.Candidate) int {
	if len(candidates) == 0 {
		return -1
	}
	i, _ := strconv.Atoi(r.chooseCandidate(ctx, candidates).Name()) // all are numbers
	return i
}

// chooseCandidate returns the candidate that kube-scheduler chooses.
func (r *removal) chooseCandidate(ctx context.Context, candidates []preemption.Candidate) preemption.Candidate {
	return r.ranker.Evaluator.SelectCandidate(ctx, candidates)
}

// findEvictions searches those of some nodes whose result is not known.
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

// findEviction searches one node for a class.
func (sim *simulation) findEviction(ctx context.Context, c *class, node int, e *eviction) error {
	*e = eviction{clock: sim.clock}
	n := sim.nodes[node]
	if status := sim.takes(ctx, c, node); status.IsSuccess() || !status.IsRejected() {
		e.cost = &extenderv1.Victims{}
		return status.AsError()
	}
	if c.allowed != nil && !c.allowed.Has(n.Node().Name) {
		return nil
	}
	r := sim.removal
	var candidates []preemption.Candidate
	for i, ranker := range []*defaultpreemption.DefaultPreemption{&r.ranker, &r.withoutGangs} {
		pods, _, status := ranker.SelectVictimsOnNode(ctx, c.state.Clone(), c.pod, n.Snapshot(), r.budgets)
		if !status.IsSuccess() {
			if !status.IsRejected() {
				return status.AsError()
			}
			continue
		}
		if len(pods) == 0 { // it fits: a nomination was dropped meanwhile
			e.cost = &extenderv1.Victims{}
			return nil
		}
		candidates = append(candidates, candidate{strconv.Itoa(i), r.costOf(pods)})
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return len(r.companionsOf(p)) > 0 }) {
			candidates = candidates[len(candidates)-1:]
			break
		}
	}
	if len(candidates) > 0 {
		e.cost = r.chooseCandidate(ctx, candidates).Victims()
	}
	return nil
}

// withoutVictims is a node without the pods that may be evicted. Without a removal it is the node itself.
func (r *removal) withoutVictims(n fwk.NodeInfo) fwk.NodeInfo {
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

// candidate is a node, a domain or a choice of victims, with what it costs.
type candidate struct {
	name string
	cost *extenderv1.Victims
}

var _ preemption.Candidate = candidate{}

func (c candidate) Victims() *extenderv1.Victims { return c.cost }
func (c candidate) Name() string                 { return c.name }
