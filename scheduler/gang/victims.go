package gang

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// unit is what is evicted together or stays together: a pod, or all of a gang's pods but the spare ones.
type unit struct {
	pods     []*victim
	group    string // "" for a pod without a gang
	core     bool   // without it the group's spare pods go too
	priority int32
	violates bool // evicting it breaks a PodDisruptionBudget
}

// victims are the pods that must go for a plan: of all that were taken out of the simulation those that it cannot do
// with. The most important are put back first, those before all whose eviction breaks a PodDisruptionBudget.
func (r *removal) victims(ctx context.Context, sim *simulation, p *plan) ([]*corev1.Pod, error) {
	placed := map[int][]*class{}
	for _, s := range p.assignments {
		c, err := sim.class(ctx, s.pod)
		if err != nil {
			return nil, err
		}
		placed[s.node] = append(placed[s.node], c)
	}
	units := r.units(sim, placed)
	kept, lost := map[*victim]bool{}, map[string]bool{}
	for _, u := range units {
		stays, err := r.stays(ctx, sim, u, placed, kept)
		if err != nil {
			return nil, err
		}
		if !stays && u.core {
			lost[u.group] = true
		}
	}
	var out []*corev1.Pod
	for _, u := range units {
		for _, v := range u.pods {
			if !kept[v] || lost[u.group] {
				out = append(out, v.pod())
			}
		}
	}
	return out, nil
}

// stays puts a unit back, and takes it off again where what is placed would not fit beside it.
func (r *removal) stays(
	ctx context.Context, sim *simulation, u *unit, placed map[int][]*class, kept map[*victim]bool,
) (bool, error) {
	set := func(to bool) error {
		for _, v := range u.pods {
			kept[v] = to
			if err := sim.updateAll(ctx, move{pod: v.info, node: v.node, taken: !to}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := set(true); err != nil {
		return false, err
	}
	nodes := map[int]bool{}
	for _, v := range u.pods {
		nodes[v.node] = true
		if sim.farReaching(v) {
			for n := range placed {
				nodes[n] = true
			}
		}
	}
	for n := range nodes {
		if len(placed[n]) == 0 {
			continue
		}
		if ok, err := r.fits(ctx, sim, n, placed[n], kept); err != nil || !ok {
			return false, errors.Join(err, set(false))
		}
	}
	return true, nil
}

// farReaching says whether a pod may keep what is placed away from other nodes than its own.
func (sim *simulation) farReaching(v *victim) bool {
	if len(v.info.GetRequiredAntiAffinityTerms()) > 0 {
		return true
	}
	for _, c := range sim.classes {
		if len(c.pod.Spec.TopologySpreadConstraints) > 0 {
			return true
		}
		for _, t := range c.info.GetRequiredAntiAffinityTerms() {
			if t.Matches(v.pod(), nil) {
				return true
			}
		}
	}
	return false
}

// fits says whether what a plan places on a node still fits there beside the pods that are kept.
func (r *removal) fits(
	ctx context.Context, sim *simulation, node int, placed []*class, kept map[*victim]bool,
) (bool, error) {
	name := sim.nodes[node].Node().Name
	n := r.original[name].Snapshot()
	for _, v := range r.byNode[name] {
		if kept[v] {
			continue
		}
		if err := n.RemovePod(klog.FromContext(ctx), v.pod()); err != nil {
			return false, fmt.Errorf("taking pod %s off its node: %w", v.pod().Name, err)
		}
	}
	// The classes know of the pods that are placed here: each is to fit beside those before it, not beside itself.
	for _, c := range placed {
		if err := sim.updateAll(ctx, move{pod: c.info, node: node, taken: true}); err != nil {
			return false, err
		}
	}
	fits := true
	for _, c := range placed {
		fits = fits && sim.fw.RunFilterPluginsWithNominatedPods(ctx, c.state, c.pod, n).IsSuccess()
		n.AddPodInfo(c.info)
		if err := sim.updateAll(ctx, move{pod: c.info, node: node}); err != nil {
			return false, err
		}
	}
	return fits, nil
}

// units groups the pods that may be in the way of a plan, with the rest of their gangs, in the order in which they are
// put back.
func (r *removal) units(sim *simulation, placed map[int][]*class) []*unit {
	inTheWay := func(v *victim) bool { return len(placed[v.node]) > 0 || sim.farReaching(v) }
	touched := map[string]bool{}
	for _, v := range r.pods {
		if v.membership.Group != "" && inTheWay(v) {
			touched[v.membership.Group] = true
		}
	}
	var out []*unit
	cores := map[string]*unit{}
	for _, v := range r.pods {
		switch group := v.membership.Group; {
		case group == "" && !inTheWay(v), group != "" && !touched[group]:
		case group == "" || v.membership.Spare:
			out = append(out, &unit{pods: []*victim{v}, group: group})
		case cores[group] == nil:
			cores[group] = &unit{pods: []*victim{v}, group: group, core: true}
			out = append(out, cores[group])
		default:
			cores[group].pods = append(cores[group].pods, v)
		}
	}
	for _, u := range out {
		for _, v := range u.pods {
			u.priority = max(u.priority, corev1helpers.PodPriority(v.pod()))
			u.violates = r.pdbs.broken(v.pod()) || u.violates
		}
	}
	slices.SortStableFunc(out, func(a, b *unit) int {
		return cmp.Or(
			first(a.violates, b.violates), cmp.Compare(b.priority, a.priority), first(a.core, b.core),
			cmp.Compare(len(b.pods), len(a.pods)),
		)
	})
	return out
}

// first orders what holds before what does not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// budgets are the cluster's PodDisruptionBudgets, and how many pods each can still lose.
type budgets struct {
	pdbs      []*policyv1.PodDisruptionBudget
	selectors []labels.Selector
	left      []int32
}

func (g *Gang) budgets() (*budgets, error) {
	informer := g.profile.SharedInformerFactory().Policy().V1().PodDisruptionBudgets()
	pdbs, err := informer.Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	b := &budgets{pdbs: pdbs}
	for _, pdb := range pdbs {
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil {
			selector = labels.Nothing()
		}
		b.selectors = append(b.selectors, selector)
		b.left = append(b.left, pdb.Status.DisruptionsAllowed)
	}
	return b, nil
}

// broken counts a pod as evicted and says whether that is more than a budget allows.
func (b *budgets) broken(pod *corev1.Pod) bool {
	broken := false
	for i, pdb := range b.pdbs {
		if pdb.Namespace != pod.Namespace || b.selectors[i].Empty() || !b.selectors[i].Matches(labels.Set(pod.Labels)) {
			continue
		}
		b.left[i]--
		broken = broken || b.left[i] < 0
	}
	return broken
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

// candidate is the node that a preemptor will have room on.
type candidate string

var _ preemption.Candidate = candidate("")

func (c candidate) Victims() *extenderv1.Victims { return &extenderv1.Victims{} }
func (c candidate) Name() string                 { return string(c) }
