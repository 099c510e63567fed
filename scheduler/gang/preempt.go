package gang

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// nomination is room that is kept for a member until the pods have left that made it: without it a pod of lower
// priority, such as the successor of an evicted one, would take it.
type nomination struct {
	info  fwk.PodInfo
	node  string
	group string // as in gangcache.Membership
}

// goesAlone says whether a pod may be evicted without its gang: it has none, or the gang keeps its minimum.
func (g *Gang) goesAlone(_ fwk.NodeInfo, victim fwk.PodInfo, _ *corev1.Pod) bool {
	t := g.shared.cache.Membership(uidOf(victim.GetPod()))
	return t.Group == "" || t.Spare
}

// preempt evicts pods of lower priority so that all that is wanted fits: as few and as unimportant ones as it finds,
// and of a gang only what it can spare or the whole. It returns the node on which the pod itself will have room.
func (g *Gang) preempt(
	ctx context.Context, pod *corev1.Pod, key gangcache.Key, wants []gangcache.Want,
) (*fwk.PostFilterResult, *fwk.Status) {
	no := func(format string, args ...any) (*fwk.PostFilterResult, *fwk.Status) {
		return nil, fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf(format, args...))
	}
	// The room that it was nominated for did not come true, and is not kept from others any longer.
	never := func(why string) (*fwk.PostFilterResult, *fwk.Status) {
		return framework.NewPostFilterResultWithNominatedNode(""), fwk.NewStatus(fwk.Unschedulable, why)
	}
	if p := pod.Spec.PreemptionPolicy; p != nil && *p == corev1.PreemptNever {
		return no("its preemptionPolicy is Never")
	}
	if n := g.shared.leaving(key); n > 0 {
		return no("%d evicted pods are still leaving", n)
	}
	g.shared.clearNominations(wants) // their nominations did not come true
	members := []*corev1.Pod{pod}
	for _, w := range wants {
		members = append(members, g.shared.podsOf(w.Candidates)...)
	}
	r, err := g.newRemoval(lowest(members))
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	if len(r.pods) == 0 {
		return never("no pods of lower priority could make room")
	}
	sim, err := g.newSimulation()
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	if err := r.from(ctx, sim); err != nil {
		return nil, fwk.AsStatus(err)
	}
	p, short, err := sim.placeAll(ctx, wants, func(uids []gangcache.UID) []*corev1.Pod {
		return g.membersOr(pod, uids)
	})
	switch {
	case err != nil:
		return nil, fwk.AsStatus(err)
	case short != nil:
		return never("evicting all pods of lower priority would not make room")
	}
	victims, err := r.victims(ctx, sim, p)
	switch {
	case err != nil:
		return nil, fwk.AsStatus(err)
	case len(victims) == 0: // nobody's leaving would have it tried again
		return never("no pods of lower priority are in the way")
	}
	return g.evict(ctx, pod, key, p, victims), nil
}

// membersOr are the members of a gang, or the pod itself where it has none.
func (g *Gang) membersOr(pod *corev1.Pod, uids []gangcache.UID) []*corev1.Pod {
	if _, ok := g.shared.cache.GangOf(uidOf(pod)); !ok {
		return []*corev1.Pod{pod}
	}
	return g.shared.podsOf(uids)
}

// leaving is how many of the pods that were evicted for a gang still hold their places.
func (c *coordinator) leaving(key gangcache.Key) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	lister := c.handle.SharedInformerFactory().Core().V1().Pods().Lister()
	c.evicted[key] = slices.DeleteFunc(c.evicted[key], func(p *corev1.Pod) bool {
		now, err := lister.Pods(p.Namespace).Get(p.Name)
		return err != nil || now.UID != p.UID || now.Spec.NodeName == ""
	})
	n := len(c.evicted[key])
	if n == 0 {
		delete(c.evicted, key)
	}
	return n
}

// evict evicts pods, in the background, and keeps the room for those it was made for.
func (g *Gang) evict(
	ctx context.Context, pod *corev1.Pod, key gangcache.Key, p *plan, victims []*corev1.Pod,
) *fwk.PostFilterResult {
	logger := klog.FromContext(ctx)
	target := p.name(p.assignments[0].node)
	g.shared.mu.Lock()
	g.shared.evicted[key] = victims
	for _, s := range p.assignments {
		if s.pod.UID == pod.UID {
			target = p.name(s.node)
			continue // the framework keeps the room of the pod that it is scheduling
		}
		if info, err := framework.NewPodInfo(s.pod); err == nil {
			g.shared.nominated[uidOf(s.pod)] = nomination{
				info, p.name(s.node), g.shared.cache.Membership(uidOf(s.pod)).Group,
			}
		}
	}
	g.shared.mu.Unlock()
	for _, s := range p.assignments {
		g.shared.keep(uidOf(s.pod))
	}
	logger.V(2).Info("Evicting pods to make room for a gang", "gang", key.String(), "pods", len(victims))
	background := klog.NewContext(context.WithoutCancel(ctx), logger)
	go g.evictAll(background, pod, key, target, victims)
	return framework.NewPostFilterResultWithNominatedNode(target)
}

// evictAll evicts pods. Where an eviction is refused the pod is tried again after a pause: it may find others.
func (g *Gang) evictAll(ctx context.Context, pod *corev1.Pod, key gangcache.Key, target string, victims []*corev1.Pod) {
	errs := make([]error, len(victims))
	g.profile.Parallelizer().Until(ctx, len(victims), func(i int) {
		errs[i] = g.preempter.Executor.PreemptPod(ctx, candidate(target), preemptor{pod}, victims[i], Name)
	}, Name)
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return
	}
	g.shared.mu.Lock()
	// Nobody waits for those to leave whose eviction was refused.
	g.shared.evicted[key] = slices.DeleteFunc(g.shared.evicted[key], func(p *corev1.Pod) bool {
		i := slices.Index(victims, p)
		return i >= 0 && errs[i] != nil
	})
	g.shared.mu.Unlock()
	time.AfterFunc(refusedPause, func() {
		g.profile.Activate(klog.FromContext(ctx), map[string]*corev1.Pod{pod.Namespace + "/" + pod.Name: pod})
	})
}

// refusedPause is how long after a refused eviction the next is asked for: what refuses it is seldom over at once.
const refusedPause = 5 * time.Second

// dropNominations gives up what is kept for a gang's group that cannot be tried: nobody would give it up later. It
// forgets what the gang had evicted too.
func (c *coordinator) dropNominations(key gangcache.Key, group string) {
	c.mu.Lock()
	delete(c.evicted, key)
	var broken []*corev1.Pod
	for uid, p := range c.nominated {
		if p.group == group {
			broken = append(broken, p.info.GetPod())
			delete(c.nominated, uid)
		}
	}
	c.mu.Unlock()
	for _, pod := range broken {
		c.handle.DeleteNominatedPodIfExists(pod)
	}
}

// keep makes the scheduler count a nominated place as taken.
func (c *coordinator) keep(uid gangcache.UID) {
	c.mu.RLock()
	p, ok := c.nominated[uid]
	c.mu.RUnlock()
	if ok {
		c.handle.AddNominatedPod(
			klog.Background(), p.info, &fwk.NominatingInfo{NominatedNodeName: p.node, NominatingMode: fwk.ModeOverride},
		)
	}
}

// nominations are the members for which room is kept.
func (c *coordinator) nominations() []fwk.PodInfo {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []fwk.PodInfo
	for _, n := range c.nominated {
		out = append(out, n.info)
	}
	return out
}

// nominate restores the nominations that were suspended.
func (c *coordinator) nominate(wants []gangcache.Want) {
	for _, w := range wants {
		for _, uid := range w.Candidates {
			c.keep(uid)
		}
	}
}

// suspendNominations stops to count the places that are kept for members that now look for places themselves.
func (c *coordinator) suspendNominations(wants []gangcache.Want) {
	for _, w := range wants {
		for _, pod := range c.podsOf(w.Candidates) {
			c.handle.DeleteNominatedPodIfExists(pod)
		}
	}
}

// clearNominations ends the nominations of those who now have their places, or cannot get them.
func (c *coordinator) clearNominations(wants []gangcache.Want) {
	c.suspendNominations(wants)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range wants {
		for _, uid := range w.Candidates {
			delete(c.nominated, uid)
		}
	}
}

// victim is a pod that may be removed, where it is in the simulation.
type victim struct {
	info       fwk.PodInfo
	node       int
	membership gangcache.Membership
}

func (v *victim) pod() *corev1.Pod { return v.info.GetPod() }

// removal is the pods that a pod of some priority may have evicted.
type removal struct {
	pods     []*victim
	byNode   map[string][]*victim
	original map[string]fwk.NodeInfo
	pdbs     *budgets
}

// lowest returns the lowest priority among pods, which bounds what may be evicted.
func lowest(pods []*corev1.Pod) int32 {
	out := int32(math.MaxInt32)
	for _, p := range pods {
		out = min(out, corev1helpers.PodPriority(p))
	}
	return out
}

// newRemoval finds the pods of lower priority that may go. Those of a gang with a member that may not go are left,
// except what it can spare.
func (g *Gang) newRemoval(priority int32) (*removal, error) {
	snapshot, err := g.profile.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot: %w", err)
	}
	r := &removal{byNode: map[string][]*victim{}, original: map[string]fwk.NodeInfo{}}
	if r.pdbs, err = g.budgets(); err != nil {
		return nil, err
	}
	protected := map[string]bool{}
	for _, n := range snapshot {
		r.original[n.Node().Name] = n
		for _, info := range n.GetPods() {
			v := &victim{info: info, membership: g.shared.cache.Membership(uidOf(info.GetPod()))}
			if corev1helpers.PodPriority(v.pod()) >= priority {
				protected[v.membership.Group] = true
				continue
			}
			r.pods = append(r.pods, v)
		}
	}
	r.pods = slices.DeleteFunc(r.pods, func(v *victim) bool {
		return v.membership.Group != "" && protected[v.membership.Group] && !v.membership.Spare
	})
	for _, v := range r.pods {
		name := v.pod().Spec.NodeName
		r.byNode[name] = append(r.byNode[name], v)
	}
	return r, nil
}

// from takes the pods out of a simulation, whose nodes it orders so that those are filled first where least is lost.
func (r *removal) from(ctx context.Context, sim *simulation) error {
	cost := func(n fwk.NodeInfo) (l loss) {
		for _, v := range r.byNode[n.Node().Name] {
			l.highest = max(l.highest, int(corev1helpers.PodPriority(v.pod())))
			l.pods++
		}
		return l
	}
	sim.ordered = true
	slices.SortStableFunc(sim.nodes, func(a, b fwk.NodeInfo) int {
		x, y := cost(a), cost(b)
		return cmp.Or(
			cmp.Compare(min(x.pods, 1), min(y.pods, 1)), cmp.Compare(x.highest, y.highest), cmp.Compare(x.pods, y.pods),
		)
	})
	for i, n := range sim.nodes {
		sim.losses = append(sim.losses, cost(n))
		for _, v := range r.byNode[n.Node().Name] {
			v.node = i
			if err := sim.move(ctx, move{pod: v.info, node: i, taken: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
