package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// Topology is within which domain of the network the gang is placed: the nodes with one value of a label.
type Topology struct {
	Label string `json:"label"`
	Mode  string `json:"mode"`
	Slice int32  `json:"slice,omitempty"`
}

// Domain is the nodes with one value of the topology's label.
type Domain struct {
	Name    string   `json:"name"`
	Nodes   int      `json:"nodes"`
	Room    int32    `json:"room"`
	Placed  int32    `json:"placed"`
	Reasons []Reason `json:"reasons"`

	members []int // its nodes
}

// topologyOf is the job's, nil where it has none, or a level that its scheduler alone knows.
func topologyOf(j *job.Job) *Topology {
	t := j.Spec.Topology()
	if t == nil {
		return nil
	}
	label := j.TopologyLevel().Label
	if label == "" {
		return nil
	}
	return &Topology{label, t.Mode, t.Slice}
}

// domains are those of a label, by name, each with the room that it has for a set of pods, that set being alone.
func (inv *Inventory) domains(label string, p *placing) []Domain {
	byName := map[string]*Domain{}
	for i, n := range inv.nodes {
		name, ok := n.Labels[label]
		if !ok && label == corev1.LabelHostname { // an inventory written by hand may lack it
			name, ok = n.Name, true
		}
		if !ok {
			continue
		}
		if byName[name] == nil {
			byName[name] = &Domain{Name: name, Reasons: []Reason{}} // never null
		}
		byName[name].members = append(byName[name].members, i)
	}
	out := make([]Domain, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		d := byName[name]
		d.Nodes, d.Room = len(d.members), inv.roomOn(p, d.members)
		if d.Room < p.left {
			d.Reasons = inv.reasonsBeyond(p, d)
		}
		out = append(out, *d)
	}
	return out
}

// roomOn is how many more of a set some nodes take.
func (inv *Inventory) roomOn(p *placing, on []int) int32 {
	room := int64(0)
	for _, i := range on {
		if p.refused[i] == "" {
			more, _ := inv.nodes[i].room(p.demand)
			room += more
		}
	}
	return int32(min(room, math.MaxInt32))
}

// reasonsBeyond counts why a domain has no place for more of a set than it has room for.
func (inv *Inventory) reasonsBeyond(p *placing, d *Domain) []Reason {
	undo := restrict([]*placing{p}, d)
	defer undo()
	inv.place(p, packed)
	reasons := inv.reasonsOn(p, d.members)
	inv.clear([]*placing{p})
	return reasons
}

// restrict has the sets refuse all nodes but those of a domain, until it is undone.
func restrict(sets []*placing, d *Domain) (undo func()) {
	before := make([][]string, len(sets))
	for i, p := range sets {
		before[i] = p.refused
		p.refused = slices.Repeat([]string{"in another domain"}, len(before[i]))
		for _, n := range d.members {
			p.refused[n] = before[i][n]
		}
	}
	return func() {
		for i, p := range sets {
			p.refused = before[i]
		}
	}
}

// gather places a job by its topology, the sets that help wherever there is room, and says whether all have their
// minimum, and whether that was counted or searched for.
func (inv *Inventory) gather(j *Job, all []*placing, f *Fit) (fits, heuristic bool) {
	t := j.Gang.Topology
	var gang []*placing
	for _, p := range all {
		if !p.set.Helper {
			gang = append(gang, p)
		}
	}
	i := slices.IndexFunc(gang, func(p *placing) bool { return p.set.Role == job.RoleWorker })
	if i < 0 {
		return inv.search(all, false), false
	}
	f.Domains = inv.domains(t.Label, gang[i])
	if t.Slice > 0 {
		fits = inv.gatherSlices(t.Slice, gang[i], all, f.Domains)
	} else {
		fits = inv.gatherGang(gang, all, f.Domains, t.Mode == job.TopologyRequired)
	}
	if !fits && t.Mode == job.TopologyPreferred {
		inv.clear(all)
		impossible := slices.ContainsFunc(all, inv.lacksRoom)
		fits = inv.search(all, impossible)
		return fits, !fits && !impossible
	}
	return fits, !fits && len(all) > 1 && !slices.ContainsFunc(all, inv.lacksRoom)
}

// gatherGang places all sets of a gang in one domain, the one with least room that holds them. Where some of its pods
// run, that is theirs. stay keeps what is beyond the minimum there too.
func (inv *Inventory) gatherGang(gang, all []*placing, domains []Domain, stay bool) bool {
	for _, d := range sortedDomains(domains, func(a, b *Domain) int { return cmp.Compare(a.Room, b.Room) }) {
		if slices.ContainsFunc(gang, func(p *placing) bool { return p.runsBeside(d) }) {
			continue
		}
		undo := restrict(gang, d)
		found := inv.search(all, slices.ContainsFunc(gang, inv.lacksRoom))
		if !found || !stay {
			undo()
		}
		if found {
			return true
		}
		inv.clear(all)
	}
	return false
}

// noDomain is why pods of a gang have no place where the nodes have room, but no domain of them.
func (t *Topology) noDomain(nodes int) []Reason {
	what := "all workers"
	if t.Slice > 0 {
		what = "one more slice"
	}
	return []Reason{{nodes, fmt.Sprintf("no domain of %s has room for %s", t.Label, what)}}
}

// runsBeside says whether some pod of the set runs outside a domain.
func (p *placing) runsBeside(d *Domain) bool {
	return slices.ContainsFunc(p.running, func(at place) bool { return !slices.Contains(d.members, at.node) })
}

// gatherSlices places whole slices of workers, those domains first that hold most, the other sets, and then the slices
// beyond the minimum. Which ranks make a slice does not matter to the count.
func (inv *Inventory) gatherSlices(slice int32, workers *placing, all []*placing, domains []Domain) bool {
	order := sortedDomains(domains, func(a, b *Domain) int { return cmp.Compare(b.Room/slice, a.Room/slice) })
	inv.placeSlices(slice, workers, order)
	needed := workers.left
	others := slices.DeleteFunc(slices.Clone(all), func(p *placing) bool { return p == workers })
	if !inv.search(others, slices.ContainsFunc(others, inv.lacksRoom)) || needed > 0 {
		return false
	}
	workers.left = int32(len(workers.names))
	inv.placeSlices(slice, workers, order)
	workers.left = 0
	return true
}

// placeSlices places as many whole slices as domains have room for, up to the workers that are left.
func (inv *Inventory) placeSlices(slice int32, workers *placing, order []*Domain) {
	left := workers.left
	for _, d := range order {
		undo := restrict([]*placing{workers}, d)
		workers.left = min(left, inv.roomOn(workers, d.members)) / slice * slice
		left -= workers.left
		inv.place(workers, packed)
		undo()
	}
	workers.left = left
}

// sortedDomains are domains in an order.
func sortedDomains(domains []Domain, compare func(a, b *Domain) int) []*Domain {
	order := make([]*Domain, len(domains))
	for i := range domains {
		order[i] = &domains[i]
	}
	slices.SortStableFunc(order, compare)
	return order
}

// countDomains notes how many workers of the job each domain got.
func (f *Fit) countDomains(all []*placing) {
	for i := range f.Domains {
		d := &f.Domains[i]
		for _, p := range all {
			if p.set.Role != job.RoleWorker {
				continue
			}
			for _, at := range slices.Concat(p.places, p.running) {
				if slices.Contains(d.members, at.node) {
					d.Placed += int32(len(at.names))
				}
			}
		}
	}
}

// domainsText lists the domains: those with workers of the job, and why the others lack room for them.
func (j *Job) domainsText(out *strings.Builder) {
	t := j.Gang.Topology
	if t == nil || len(j.Fit.PodSets) == 0 {
		return
	}
	what := "all workers"
	if t.Slice > 0 {
		what = fmt.Sprintf("each %d workers", t.Slice)
	}
	fmt.Fprintf(out, "  %s in one domain of %s (%s):\n", what, t.Label, t.Mode)
	if len(j.Fit.Domains) == 0 {
		fmt.Fprintf(out, "    no node has the label %s\n", t.Label)
	}
	for _, d := range j.Fit.Domains {
		var why []string
		for _, r := range d.Reasons {
			why = append(why, fmt.Sprintf("%s: %s", nodes(r.Nodes), r.Reason))
		}
		text := fmt.Sprintf("    %s: %s, room for %d", d.Name, nodes(d.Nodes), d.Room)
		if d.Placed > 0 {
			text += fmt.Sprintf(", takes %d", d.Placed)
		}
		if len(why) > 0 {
			text += "; " + strings.Join(why, ", ")
		}
		fmt.Fprintln(out, text)
	}
}
