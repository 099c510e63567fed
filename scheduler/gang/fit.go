package gang

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
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
func (p *plan) nodes(pin bool) map[gangcache.UID]string {
	out := make(map[gangcache.UID]string, len(p.spots))
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
	want    gangcache.Want
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
func (g *Gang) rehearse(ctx context.Context, wants []gangcache.Want) (*plan, *shortage, error) {
	st, err := g.newStage()
	if err != nil {
		return nil, nil, err
	}
	return st.placeAll(ctx, wants, g.podsOf)
}

// podsOf are the members as they were last seen, without those that have gone since.
func (o *office) podsOf(uids []gangcache.UID) []*corev1.Pod {
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

func (st *stage) placeAll(ctx context.Context, wants []gangcache.Want, pods func([]gangcache.UID) []*corev1.Pod) (*plan, *shortage, error) {
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
	want   gangcache.Want
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
