package gang

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// cohort is the members of some gangs that are to be in one domain; without layers, those that may be anywhere.
type cohort struct {
	layers []gangcache.Layer
	slice  gangcache.Slice
	sites  []gangcache.Site // where members are that were placed before
	queues []*queue
	size   int // pods that it needs
}

// portion is the members of one gang in one slice.
type portion struct {
	gang  gangcache.Key
	slice gangcache.Slice
}

// limits are how many pods may be needed of portions whose domain has no room for more. What no limit is known of may
// be needed whole.
type limits map[portion]int

// relax limits a slice that has begun to what its domain has room for, where the gang's other pods can fill the need;
// false where they cannot. Without it such a gang would wait for good for a place that its own slices hold.
func (l limits) relax(s *shortage, pods func([]gangcache.UID) []*corev1.Pod) bool {
	if s.search == nil || !s.search.home || s.want.Alone || s.search.slice == (gangcache.Slice{}) {
		return false
	}
	key := portion{s.want.Gang, s.search.slice}
	if limit, ok := l[key]; ok && s.placed >= limit {
		return false
	}
	l[key] = s.placed
	possible := map[gangcache.Slice]int{}
	for _, pod := range pods(s.want.Candidates) {
		slice, _ := sliceOf(pod)
		possible[slice]++
	}
	sum := 0
	for slice, n := range possible {
		if limit, ok := l[portion{s.want.Gang, slice}]; ok {
			n = min(n, limit)
		}
		sum += n
	}
	return sum >= s.want.Need
}

// cohorts are what is wanted, apart by where it may go, in the order in which places are looked for: what has the
// least choice goes first.
func cohorts(wants []gangcache.Want, pods func([]gangcache.UID) []*corev1.Pod, most limits) []*cohort {
	type key struct {
		layers string
		slice  gangcache.Slice
	}
	var out []*cohort
	known := map[key]*cohort{}
	add := func(w gangcache.Want, s gangcache.Slice, q *queue) {
		k := key{slice: s}
		if len(w.Layers) > 0 {
			k.layers = fmt.Sprint(w.Layers)
		}
		g := known[k]
		if g == nil {
			g = &cohort{layers: w.Layers, slice: s}
			for _, site := range w.Sites {
				if site.Slice == s {
					g.sites = append(g.sites, site)
				}
			}
			known[k], out = g, append(out, g)
		}
		g.queues = append(g.queues, q)
		g.size += q.need
	}
	for _, w := range wants {
		members := pods(w.Candidates)
		if len(w.Layers) == 0 {
			add(w, gangcache.Slice{}, &queue{want: w, need: w.Need, pods: members})
			continue
		}
		for _, part := range bySlice(w, members, most) {
			part.queue.company = pods(w.Company)
			add(w, part.slice, part.queue)
		}
	}
	slices.SortStableFunc(out, func(a, b *cohort) int {
		return cmp.Or(
			first(len(a.layers) > 0, len(b.layers) > 0), first(len(a.sites) > 0, len(b.sites) > 0),
			cmp.Compare(b.size, a.size),
		)
	})
	return out
}

// sliceQueue is the members of one slice of a gang.
type sliceQueue struct {
	slice gangcache.Slice
	queue *queue
}

// bySlice divides the members of a gang by slice. Of a gang that needs less than it has whole slices are needed first,
// and those before them that have begun; none for more than its limit.
func bySlice(w gangcache.Want, members []*corev1.Pod, most limits) []sliceQueue {
	of := make(map[*corev1.Pod]gangcache.Slice, len(members))
	for _, pod := range members {
		of[pod], _ = sliceOf(pod) // a pod with a mistake stops its gang before
	}
	begun := map[gangcache.Slice]bool{}
	for _, site := range w.Sites {
		begun[site.Slice] = true
	}
	slices.SortStableFunc(members, func(a, b *corev1.Pod) int {
		return cmp.Or(
			first(begun[of[a]], begun[of[b]]), cmp.Compare(of[a].Owner, of[b].Owner),
			cmp.Compare(of[a].Number, of[b].Number),
		)
	})
	var out []sliceQueue
	missing := w.Need
	for i, pod := range members {
		if i == 0 || of[pod] != out[len(out)-1].slice {
			if missing == 0 && i > 0 {
				break
			}
			out = append(out, sliceQueue{of[pod], &queue{want: w}})
		}
		q := out[len(out)-1].queue
		q.pods = append(q.pods, pod)
		limit, limited := most[portion{w.Gang, of[pod]}]
		if missing > 0 && (!limited || q.need < limit) {
			q.need++
			missing--
		}
	}
	if missing > 0 { // they have gone meanwhile, and are missed when places are looked for
		if len(out) == 0 {
			out = []sliceQueue{{queue: &queue{want: w}}}
		}
		out[0].queue.need += missing
	}
	return out
}

// attempts are the labels of the domains that are tried, one after another: all layers, then without those that are
// only preferred, of which the narrowest is given up first; none stands for all nodes. Nobody is evicted for what is
// only preferred.
func (sim *simulation) attempts(g *cohort) [][]string {
	var required, preferred []string
	for _, l := range g.layers {
		if l.Required {
			required = append(required, l.Label)
		} else {
			preferred = append(preferred, l.Label)
		}
	}
	if sim.removal != nil || len(preferred) == 0 {
		return [][]string{required}
	}
	if len(preferred) > 1 {
		slices.SortStableFunc(preferred, func(a, b string) int {
			return cmp.Compare(len(sim.layout([]string{a}).domains), len(sim.layout([]string{b}).domains))
		})
	}
	var out [][]string
	for n := len(preferred); n >= 0; n-- {
		out = append(out, slices.Concat(required, preferred[:n]))
	}
	return out
}

// gather places what a cohort needs: in the smallest domain that holds it, or in that where its others are.
func (sim *simulation) gather(ctx context.Context, p *plan, g *cohort) (*shortage, error) {
	order := sim.bySize(g.queues)
	if len(order) == 0 { // nothing of it is needed
		return nil, nil
	}
	attempts := sim.attempts(g)
	for i, labels := range attempts {
		last := i == len(attempts)-1
		if len(labels) > 0 {
			short, err := sim.gatherBy(ctx, p, g, labels, order, last)
			if err != nil || short == nil || last {
				return short, err
			}
			continue
		}
		if g.queues[0].want.Alone { // it goes on like a pod that does not gather
			return nil, nil
		}
		sim.domain = sim.all
		return sim.fill(ctx, p, g.queues, order)
	}
	return nil, nil
}

// gatherBy places what a cohort needs in one of the domains of some labels. Where it fails and is to explain itself
// it says what the domain lacked that came nearest.
func (sim *simulation) gatherBy(
	ctx context.Context, p *plan, g *cohort, labels []string, order []int, explain bool,
) (*shortage, error) {
	domains := sim.layout(labels).domains
	home := sim.home(g.sites, labels)
	if home != "" {
		domains = slices.DeleteFunc(slices.Clone(domains), func(d *domain) bool { return d.name != home })
	}
	chosen, nearest := sim.choose(g, domains, order)
	if len(chosen) == 0 && explain && nearest != nil {
		chosen = []*domain{nearest}
	}
	if sim.removal != nil && len(chosen) > 1 {
		d, err := g.leastLoss(ctx, sim, p, chosen, order)
		if err != nil {
			return nil, err
		}
		if chosen = nil; d != nil {
			chosen = []*domain{d}
		}
	}
	best := g.queues[0].shortage()
	found := &search{cohort: g, labels: labels, domains: len(domains), home: home != ""}
	for i, d := range chosen {
		short, err := sim.try(ctx, p, g, d, order)
		if err != nil || short == nil {
			return nil, err
		}
		if i == 0 || short.placed > best.placed {
			best, found.nearest = short, d.name
		}
	}
	best.search = found
	return best, nil
}

// try places what a cohort needs in a domain, or leaves the simulation as it was.
func (sim *simulation) try(
	ctx context.Context, p *plan, g *cohort, d *domain, order []int,
) (*shortage, error) {
	undo := g.undo(sim, p, d)
	sim.domain = d
	short, err := sim.fill(ctx, p, g.queues, order)
	switch {
	case err != nil:
		return nil, err
	case short == nil:
		p.pinning = true
		return nil, nil
	}
	return short, undo(ctx)
}

// undo returns what leaves the simulation and a plan as they are now, after a cohort was placed in a domain.
func (g *cohort) undo(sim *simulation, p *plan, d *domain) func(context.Context) error {
	moves, before := len(sim.moves), *p
	return func(ctx context.Context) error {
		*p = before
		for _, q := range g.queues {
			q.tried, q.placed, q.failed, q.reasons = 0, 0, nil, nil
		}
		if err := sim.rewind(ctx, moves); err != nil {
			return err
		}
		for _, c := range sim.classes {
			delete(c.within, d)
		}
		return nil
	}
}

// leastLoss finds the domain in which the fewest pods and the least important ones are evicted for a cohort, as
// kube-scheduler chooses, by placing it in one after another. Of many domains it tries as many as kube-scheduler would
// try nodes.
func (g *cohort) leastLoss(
	ctx context.Context, sim *simulation, p *plan, domains []*domain, order []int,
) (*domain, error) {
	_, most := sim.removal.ranker.GetOffsetAndNumCandidates(int32(len(domains)))
	var candidates []preemption.Candidate
	for i, d := range domains {
		if len(candidates) >= int(most) {
			break
		}
		undo, moves := g.undo(sim, p, d), len(sim.moves)
		short, err := sim.try(ctx, p, g, d, order)
		if err != nil {
			return nil, err
		}
		if short != nil {
			continue
		}
		evicted := evictedPods(sim.moves[moves:])
		if err := undo(ctx); err != nil {
			return nil, err
		}
		if len(evicted) == 0 {
			return d, nil
		}
		candidates = append(candidates, candidate{strconv.Itoa(i), sim.removal.costOf(evicted)})
	}
	if i := sim.removal.choose(ctx, candidates); i >= 0 {
		return domains[i], nil
	}
	return nil, nil
}

// choose orders the domains that may hold what a cohort needs: first those that hold all that would gather, the
// smallest first, then those that hold the most of it. What a domain holds is counted by what the most demanding pods
// ask for, on the nodes that they select, and so never too low for them. It also names the domain that holds most, nil
// where there is none.
func (sim *simulation) choose(g *cohort, domains []*domain, order []int) (chosen []*domain, nearest *domain) {
	if len(order) == 0 || len(g.queues[order[0]].pods) == 0 {
		return nil, nil
	}
	pod := g.queues[order[0]].pods[0]
	ask := requestOf(pod)
	need, wish := g.count(ask)
	type choice struct {
		*domain
		room int
	}
	var choices []choice
	most := -1
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, d := range domains {
		room := sim.room(d, affinity, ask)
		if room > most {
			most, nearest = room, d
		}
		if room >= need {
			choices = append(choices, choice{d, room})
		}
	}
	slices.SortStableFunc(choices, func(a, b choice) int { // they are ordered by name
		switch holdsA, holdsB := a.room >= wish, b.room >= wish; {
		case holdsA != holdsB:
			return first(holdsA, holdsB)
		case holdsA:
			return cmp.Compare(a.room, b.room)
		}
		return cmp.Compare(b.room, a.room)
	})
	for _, c := range choices {
		chosen = append(chosen, c.domain)
	}
	return chosen, nearest
}

// count is how many pods of a gathering ask for the same: of those that it needs, and of all that would gather.
func (g *cohort) count(ask *framework.Resource) (need, wish int) {
	for _, q := range g.queues {
		for i, pod := range q.pods {
			if same(ask, requestOf(pod)) {
				wish++
				if i < q.need {
					need++
				}
			}
		}
		for _, pod := range q.company {
			if same(ask, requestOf(pod)) {
				wish++
			}
		}
	}
	return need, wish
}

// requestOf is what a pod asks for.
func requestOf(pod *corev1.Pod) *framework.Resource {
	return framework.NewResource(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
}

// search is the domains in which a cohort looked for places in vain.
type search struct {
	*cohort
	labels  []string
	domains int
	nearest string // the domain that had most places
	home    bool   // it is the one where others of the gang are
}

// message says what a cohort needs, and what the domain lacked that came nearest.
func (f *search) message(s *shortage) string {
	in := "in one domain of " + strings.Join(f.labels, " and ")
	needs := fmt.Sprintf("gang %s needs %d pods at once %s", s.gang, s.want.Min, in)
	has := fmt.Sprintf("has room for %d", s.want.Min-s.want.Need+s.placed)
	none := ", none for pod " + s.pod
	switch {
	case s.want.Alone:
		needs = fmt.Sprintf("gang %s needs a place for pod %s %s", s.gang, s.pod, in)
		has, none = "has none", ""
	case f.slice != gangcache.Slice{}:
		needs = fmt.Sprintf("gang %s needs %d pods at once, the %d of %s %s", s.gang, s.want.Min, f.size, f.slice, in)
		has = fmt.Sprintf("has room for %d", s.placed)
	}
	where := fmt.Sprintf("%s, the best of %d", f.nearest, f.domains)
	switch {
	case f.domains == 0:
		return needs + ", and no node is in one"
	case f.home:
		where = f.nearest + ", where others of it are"
	}
	return fmt.Sprintf("%s and %s in %s%s", needs, has, where, none)
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
