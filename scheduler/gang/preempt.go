package gang

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
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

// goesAlone reports whether a pod may be evicted without its gang: it has none, or the gang keeps its minimum. A pod
// that is stuck may not, so that kube-scheduler no longer waits for it.
func (g *Gang) goesAlone(_ fwk.NodeInfo, victim fwk.PodInfo, _ *corev1.Pod) bool {
	t := g.shared.cache.Membership(uidOf(victim.GetPod()))
	return !stuck(victim.GetPod(), time.Now()) && (t.Group == "" || t.Spare)
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
	if n, until := g.shared.leaving(key); n > 0 {
		g.tryAgain(ctx, pod, until) // no event tells that one is stuck
		return no("%d evicted pods are still leaving", n)
	}
	g.shared.clearNominations(wants) // their nominations did not come true
	members := func(uids []gangcache.UID) []*corev1.Pod { return g.membersOr(pod, uids) }
	least := leastImportant(wants, members)
	sim, err := g.newSimulation()
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	if sim.removal, err = g.newRemoval(sim.nodes, corev1helpers.PodPriority(least)); err != nil {
		return nil, fwk.AsStatus(err)
	}
	lower := "lower priority"
	if byPriority(least, pod) < 0 {
		lower = fmt.Sprintf(
			"lower priority than %d, which is that of member %s,", corev1helpers.PodPriority(least), least.Name,
		)
	}
	if len(sim.removal.victims) == 0 {
		return never("no pods of " + lower + " could make room")
	}
	p, short, err := sim.placeAll(ctx, wants, func(uids []gangcache.UID) []*corev1.Pod {
		return slices.DeleteFunc(members(uids), func(p *corev1.Pod) bool { return byPriority(p, least) < 0 })
	})
	switch {
	case err != nil:
		return nil, fwk.AsStatus(err)
	case short != nil:
		return never("evicting all pods of " + lower + " would not make room")
	}
	victims := evictedPods(sim.moves)
	if len(victims) == 0 { // no event would wake the gang
		return never("no pods of " + lower + " are in the way")
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

// leastImportant returns the member with the lowest priority among those that a gang needs, which are the ones with the
// highest priorities. No pod is evicted for the others.
func leastImportant(wants []gangcache.Want, members func([]gangcache.UID) []*corev1.Pod) (least *corev1.Pod) {
	for _, w := range wants {
		pods := members(w.Candidates)
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return byPriority(b, a) })
		if len(pods) == 0 {
			continue
		}
		if last := pods[max(min(w.Need, len(pods)), 1)-1]; least == nil || byPriority(last, least) < 0 {
			least = last
		}
	}
	return least
}

// byPriority orders pods by their priority, the lowest first.
func byPriority(a, b *corev1.Pod) int {
	return cmp.Compare(corev1helpers.PodPriority(a), corev1helpers.PodPriority(b))
}

// leaving returns how many of the pods that were evicted for a gang are still on their nodes, without those that are
// stuck, and how long it takes until all of them are stuck.
func (c *coordinator) leaving(key gangcache.Key) (n int, until time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lister := c.handle.SharedInformerFactory().Core().V1().Pods().Lister()
	c.evicted[key] = slices.DeleteFunc(c.evicted[key], func(p *corev1.Pod) bool {
		now, err := lister.Pods(p.Namespace).Get(p.Name)
		if err != nil || now.UID != p.UID || now.Spec.NodeName == "" || stuck(now, time.Now()) {
			return true
		}
		if now.DeletionTimestamp != nil {
			until = max(until, time.Until(now.DeletionTimestamp.Add(stuckAfter+time.Second)))
		}
		return false
	})
	if n = len(c.evicted[key]); n == 0 {
		delete(c.evicted, key)
	}
	return n, max(until, time.Second)
}

// stuckAfter is how long after its grace period a pod that is being deleted counts as one that will leave. A kubelet
// that is alive kills it at the end of the grace period; that of a lost node never says that it did.
const stuckAfter = time.Minute

// stuck reports whether a pod is still there long after its grace period. It keeps its place on the node, and no gang
// waits for it.
func stuck(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.After(pod.DeletionTimestamp.Add(stuckAfter))
}

// evict evicts pods, in the background, and keeps the room for those it was made for.
func (g *Gang) evict(
	ctx context.Context, pod *corev1.Pod, key gangcache.Key, p *plan, victims []*corev1.Pod,
) *fwk.PostFilterResult {
	logger := klog.FromContext(ctx)
	target := p.name(p.assignments[0].node)
	g.shared.mu.Lock()
	g.shared.evicted[key] = slices.Clone(victims) // which leaving changes while they are being evicted
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

// longestGrace returns the longest grace period of some pods.
func longestGrace(pods []*corev1.Pod) time.Duration {
	longest := int64(0)
	for _, p := range pods {
		grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
		if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
			grace = *s
		}
		longest = max(longest, grace)
	}
	return time.Duration(longest) * time.Second
}

// evictAll evicts pods. Where an eviction is refused the pod is tried again after a pause: it may find others.
func (g *Gang) evictAll(ctx context.Context, pod *corev1.Pod, key gangcache.Key, target string, victims []*corev1.Pod) {
	errs := make([]error, len(victims))
	g.profile.Parallelizer().Until(ctx, len(victims), func(i int) {
		if victims[i].DeletionTimestamp != nil { // it leaves already
			return
		}
		errs[i] = g.preempter.Executor.PreemptPod(
			ctx, candidate{target, &extenderv1.Victims{}}, preemptor{pod}, victims[i], Name,
		)
	}, Name)
	g.tryAgain(ctx, pod, longestGrace(victims)+stuckAfter+time.Second) // in case one of them is stuck then
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
	g.tryAgain(ctx, pod, refusedPause)
}

// tryAgain wakes a pod after some time, for a change that no event reports.
func (g *Gang) tryAgain(ctx context.Context, pod *corev1.Pod, after time.Duration) {
	time.AfterFunc(after, func() {
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
