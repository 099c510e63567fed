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
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// dryRunKey marks a cycle state of a dry run, in which this plugin must not begin another.
const dryRunKey fwk.StateKey = Name + "/dryRun"

type dryRunMark struct{}

// Clone is asked for by the framework.
func (m dryRunMark) Clone() fwk.StateData { return m }

func inDryRun(state fwk.CycleState) bool {
	_, err := state.Read(dryRunKey)
	return err == nil
}

// simulation is a private copy of the cluster's snapshot on which pods are placed one after another with the profile's
// own filters: resources, taints, affinity, topology, volumes. What filters do not see, such as the second claim on one
// volume, is found when the pods are placed in earnest.
type simulation struct {
	fw      framework.Framework
	nodes   []fwk.NodeInfo // the snapshot's, or a copy where something was placed or removed
	copied  []bool
	classes map[string]*class
	kinds   map[*corev1.Pod]*class
	last    *class    // that was asked for
	start   int       // the node that is looked at first
	removal *removal  // who may be evicted, nil where nobody may
	moves   []move    // what changed against the snapshot, for classes that are met later
	clock   int       // counts the moves, those that were taken back too
	domain  *domain   // where pods are placed now
	all     *domain   // of all nodes
	layouts []*layout // of the layers that were asked for
	devices reserver

	nominated  []fwk.PodInfo // members of gangs for which room is kept
	overlooked []string      // labels that tell no classes apart
}

// move is a pod placed on a node, or removed from it.
type move struct {
	pod      fwk.PodInfo
	node     int
	taken    bool
	reserved *class // with the state in which the pod's devices are reserved; nil if none are
}

// assignment is where a dry run placed a pod.
type assignment struct {
	pod  *corev1.Pod
	node int
	free bool // another node would do as well: not all that the pod needs there was reserved, and it does not gather
}

// plan is a dry run that worked out.
type plan struct {
	assignments []assignment
	on          []fwk.NodeInfo // the nodes by index
	pinning     bool           // its pods go to its nodes: others might not work out, or would be no better
}

// name is that of a node, asked of those alone that pods go to: a small gang would pay for all of a large cluster.
func (p *plan) name(node int) string { return p.on[node].Node().Name }

// nodes are the pods of the plan, each with the node it must be placed on where that matters.
func (p *plan) nodes(pin bool) map[gangcache.UID]string {
	out := make(map[gangcache.UID]string, len(p.assignments))
	for _, s := range p.assignments {
		node := ""
		if (pin || p.pinning) && !s.free {
			node = p.name(s.node)
		}
		out[uidOf(s.pod)] = node
	}
	return out
}

// shortage is a dry run that did not work out.
type shortage struct {
	gang    string
	placed  int
	want    gangcache.Want
	pod     string
	failed  *corev1.Pod // that pod, if it found no place
	reasons map[string]int
	search  *search // nil where all nodes were looked at
}

func (s *shortage) String() string {
	reasons := make([]string, 0, len(s.reasons))
	for _, r := range slices.Sorted(maps.Keys(s.reasons)) {
		if n := s.reasons[r]; n > 0 {
			r = fmt.Sprintf("%d %s", n, r)
		}
		reasons = append(reasons, r)
	}
	why := ""
	if len(reasons) > 0 {
		why = ": " + strings.Join(reasons, ", ")
	}
	if s.search != nil {
		return s.search.message(s) + why
	}
	return fmt.Sprintf(
		"gang %s needs %d pods at once and has room for %d, none for pod %s%s", s.gang, s.want.Min,
		s.want.Min-s.want.Need+s.placed, s.pod, why,
	)
}

// dryRun finds a place for what is wanted, all of it or nothing.
func (g *Gang) dryRun(ctx context.Context, wants []gangcache.Want) (*plan, *shortage, error) {
	sim, err := g.newSimulation()
	if err != nil {
		return nil, nil, err
	}
	p, short, err := sim.placeAll(ctx, wants, g.shared.podsOf)
	if err == nil && short != nil {
		err = g.deallocate(ctx, sim, short)
	}
	return p, short, err
}

// podsOf are the members as they were last seen, without those that have gone since.
func (c *coordinator) podsOf(uids []gangcache.UID) []*corev1.Pod {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]*corev1.Pod, 0, len(uids))
	for _, uid := range uids {
		if p := c.pods[uid]; p != nil {
			out = append(out, p)
		}
	}
	return out
}

func (g *Gang) newSimulation() (*simulation, error) {
	snapshot, err := g.profile.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot: %w", err)
	}
	for len(g.indexes) < len(snapshot) {
		g.indexes = append(g.indexes, len(g.indexes))
	}
	all := &domain{nodes: g.indexes[:len(snapshot):len(snapshot)]}
	return &simulation{
		fw: g.profile, devices: reserver{fw: g.profile}, nodes: slices.Clone(snapshot),
		copied: make([]bool, len(snapshot)), classes: map[string]*class{}, kinds: map[*corev1.Pod]*class{},
		start: rand.IntN(max(len(snapshot), 1)), all: all, domain: all,
		nominated: g.shared.nominations(),
	}, nil
}

func (sim *simulation) placeAll(
	ctx context.Context, wants []gangcache.Want, pods func([]gangcache.UID) []*corev1.Pod,
) (*plan, *shortage, error) {
	defer func() { sim.unreserve(ctx, sim.moves) }()
	var wanted []*corev1.Pod
	for _, w := range wants {
		wanted = append(wanted, pods(w.Candidates)...)
	}
	var err error
	if sim.overlooked, err = sim.unselected(wanted); err != nil {
		return nil, nil, err
	}
	p := &plan{on: sim.nodes}
	moves := len(sim.moves)
	var first *shortage // which is the gang's own choice of what it needs, and so what its author understands
	for most := (limits{}); ; {
		short, err := sim.placeCohorts(ctx, p, cohorts(wants, pods, most))
		switch {
		case err != nil:
			return nil, nil, err
		case short == nil:
			p.pinning = p.pinning || len(sim.classes) > 1
			return p, nil, nil
		}
		if first == nil {
			first = short
		}
		if !most.relax(short, pods) {
			return nil, first, nil
		}
		// Only now: most gangs that find no room have nothing to relax.
		if err := sim.restart(ctx, p, moves); err != nil {
			return nil, nil, err
		}
	}
}

// restart leaves the plan as it was at first, and the simulation as it was after its first moves.
func (sim *simulation) restart(ctx context.Context, p *plan, moves int) error {
	p.assignments, p.pinning = nil, false
	for _, c := range sim.classes {
		clear(c.within)
	}
	return sim.rewind(ctx, moves)
}

// placeCohorts places all of some cohorts, or stops at one that finds no room.
func (sim *simulation) placeCohorts(ctx context.Context, p *plan, all []*cohort) (*shortage, error) {
	for _, c := range all {
		short, err := sim.gather(ctx, p, c)
		if err != nil || short != nil {
			return short, err
		}
	}
	return nil, nil
}

// fill finds places in the simulation's domain for what some gangs need, in the order of bySize.
func (sim *simulation) fill(ctx context.Context, p *plan, queues []*queue, order []int) (*shortage, error) {
	if len(queues) == 1 {
		if refused, err := sim.refuse(ctx, queues[0]); err != nil || refused {
			return queues[0].shortage(), err
		}
	}
	for _, i := range order {
		placed, err := sim.placeNext(ctx, p, queues[i])
		if err != nil {
			return nil, err
		}
		if !placed {
			return queues[i].shortage(), nil
		}
	}
	return nil, nil
}

// queue is the members of one gang that may fill its need, those of the most demanding kind first.
type queue struct {
	want    gangcache.Want
	need    int // how many of them, at least
	pods    []*corev1.Pod
	uniform bool          // the pods are alike
	company []*corev1.Pod // that would gather with them
	tried   int           // pods that were placed, or found no place
	placed  int
	failed  *corev1.Pod    // that found no place: the first of its kind, or with claims the pod itself
	reasons map[string]int // and why
}

// bySize orders the members that each gang needs first, largest first: what is small finds a place beside what is
// large, and not the other way round. It returns the gang of each in that order, and orders the gangs' pods alike.
func (sim *simulation) bySize(queues []*queue) []int {
	type item struct {
		gang int
		size float64
	}
	sizes := map[*corev1.Pod]float64{}
	var all []*corev1.Pod
	for _, q := range queues {
		all = append(all, q.pods...)
	}
	uniform := sim.measure(all, sizes)
	var items []item
	for i, q := range queues {
		q.uniform = uniform
		first := q.pods[:min(q.need, len(q.pods))]
		slices.SortStableFunc(first, func(a, b *corev1.Pod) int { return cmp.Compare(sizes[b], sizes[a]) })
		for _, pod := range first {
			items = append(items, item{i, sizes[pod]})
		}
		for range q.need - len(first) { // they have gone meanwhile, and are missed below
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

// claimedDevices is what the devices of claims count as when pods are ordered by size.
const claimedDevices corev1.ResourceName = "devices of ResourceClaims"

// measure gives each pod a size: of each resource its share of what all of them ask for, so that what is rare weighs
// more, added up. It says whether all are alike but for their numberings.
func (sim *simulation) measure(pods []*corev1.Pod, sizes map[*corev1.Pod]float64) (uniform bool) {
	total := map[corev1.ResourceName]float64{}
	asks := make([]corev1.ResourceList, len(pods)) // nil where they are those of the pod before
	uniform = true
	var last corev1.ResourceList
	for i, pod := range pods {
		if i == 0 || !alike(pod, pods[i-1], numberings) {
			last = resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
			if n := sim.devices.count(pod); n > 0 {
				last[claimedDevices] = *resource.NewQuantity(n, resource.DecimalSI)
			}
			asks[i], uniform = last, i == 0
		}
		for name, q := range last {
			total[name] += q.AsApproximateFloat64()
		}
	}
	for i, pod := range pods {
		if asks[i] == nil { // the sum is not made anew: in another order it might be another one
			sizes[pod] = sizes[pods[i-1]]
			continue
		}
		for name, q := range asks[i] {
			if total[name] > 0 {
				sizes[pod] += q.AsApproximateFloat64() / total[name]
			}
		}
	}
	return uniform
}

// placeNext places the next member of a gang that finds a place; false where none does.
func (sim *simulation) placeNext(ctx context.Context, p *plan, q *queue) (bool, error) {
	for q.tried < len(q.pods) {
		pod := q.pods[q.tried]
		q.tried++
		c, err := sim.class(ctx, pod)
		if err != nil {
			return false, err
		}
		node, err := sim.place(ctx, c, pod)
		if err != nil {
			return false, err
		}
		if node >= 0 {
			free := c.claims && sim.moves[len(sim.moves)-1].reserved == nil && len(q.want.Layers) == 0
			p.assignments = append(p.assignments, assignment{pod, node, free})
			p.pinning = p.pinning || c.coupled || !c.soft
			q.placed++
			return true, nil
		}
		if q.failed == nil {
			q.failed = pod
			ofKind := func(p *corev1.Pod) bool { return sim.kinds[p] == c }
			if i := slices.IndexFunc(q.pods, ofKind); i >= 0 && !c.claims { // which stays the same as room appears
				q.failed = q.pods[i]
			}
			if f := c.within[sim.domain]; f != nil {
				q.reasons = f.reasons
			}
		}
	}
	return false, nil
}

func (q *queue) shortage() *shortage {
	s := &shortage{gang: q.want.Gang.String(), placed: q.placed, want: q.want}
	switch {
	case q.failed != nil:
		s.pod, s.failed, s.reasons = q.failed.Name, q.failed, q.reasons
	case len(q.pods) > 0:
		s.pod = q.pods[0].Name
	}
	return s
}

// update brings what PreFilter computed for a class up to date with a move.
func (sim *simulation) update(ctx context.Context, c *class, m move) error {
	if c.refusal != nil {
		return nil
	}
	run := sim.fw.RunPreFilterExtensionAddPod
	if m.taken {
		run = sim.fw.RunPreFilterExtensionRemovePod
	}
	return run(ctx, c.state, c.pod, m.pod, sim.nodes[m.node]).AsError()
}

// place finds the first node that takes a pod and puts it there; -1 where none does.
func (sim *simulation) place(ctx context.Context, c *class, pod *corev1.Pod) (int, error) {
	if sim.removal != nil {
		return sim.makeRoom(ctx, c, pod)
	}
	f, err := sim.filling(ctx, c)
	if err != nil || c.refusal != nil {
		return -1, err
	}
	for {
		for node := f.current(); node >= 0; node = f.current() {
			status := sim.takes(ctx, c, node)
			switch {
			case status.IsSuccess():
				return node, sim.put(ctx, c, pod, node)
			case !status.IsRejected():
				return -1, status.AsError()
			}
			f.blame(status)
			f.next++
		}
		if !c.coupled || f.since == sim.clock {
			return -1, nil
		}
		f.next, f.since = 0, sim.clock
		clear(f.reasons)
	}
}

// takes runs the filters of a class on a node.
func (sim *simulation) takes(ctx context.Context, c *class, node int) *fwk.Status {
	n := sim.nodes[node]
	if c.allowed != nil && !c.allowed.Has(n.Node().Name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) that its volumes or claims rule out")
	}
	return sim.fw.RunFilterPluginsWithNominatedPods(ctx, c.state, c.pod, n)
}

// put places a pod on a node of the simulation.
func (sim *simulation) put(ctx context.Context, c *class, pod *corev1.Pod, node int) error {
	info := c.info
	if pod != c.pod { // what it requests and its affinity are the class's, and costly to work out
		info = new(*c.info)
		info.Pod = pod
	}
	m := move{pod: info, node: node}
	if c.claims {
		reserved, err := sim.devices.reserve(ctx, c, sim.nodes[node].Node().Name)
		if err != nil {
			return err
		}
		if reserved {
			m.reserved = c
		}
	}
	return sim.move(ctx, m)
}

// move carries out a move and notes it for classes that are met later.
func (sim *simulation) move(ctx context.Context, m move) error {
	sim.moves = append(sim.moves, m)
	return sim.carryOut(ctx, m)
}

// carryOut carries out a move and updates the classes met so far.
func (sim *simulation) carryOut(ctx context.Context, m move) error {
	if !sim.copied[m.node] {
		sim.nodes[m.node], sim.copied[m.node] = sim.nodes[m.node].Snapshot(), true
	}
	if m.taken {
		if err := sim.nodes[m.node].RemovePod(klog.FromContext(ctx), m.pod.GetPod()); err != nil {
			return fmt.Errorf("taking pod %s off its node: %w", m.pod.GetPod().Name, err)
		}
	} else {
		sim.nodes[m.node].AddPodInfo(m.pod)
	}
	sim.clock++
	if sim.removal != nil {
		sim.removal.record(m)
	}
	for _, c := range sim.classes {
		delete(c.evictions, m.node)
		if err := sim.update(ctx, c, m); err != nil {
			return err
		}
	}
	return nil
}
