package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// Fit is whether the pods without which training does not start have a place, and where.
type Fit struct {
	Fits      bool      `json:"fits"`
	Heuristic bool      `json:"heuristic"`
	PodSets   []SetFit  `json:"podSets"`
	Missing   []Missing `json:"missing"`
	Domains   []Domain  `json:"domains,omitempty"`
	Nodes     []NodeFit `json:"nodes"`
}

// SetFit counts the pods of a set, in the order of the job's podSets.
type SetFit struct {
	Role     string `json:"role"`
	Required int32  `json:"required"`
	Replicas int32  `json:"replicas"`
	Running  int32  `json:"running"`
	Finished int32  `json:"finished"`
	Placed   int32  `json:"placed"`
}

// Missing is pods without a place, and why no node has one. Where the job fits, it starts without them.
type Missing struct {
	Role    string   `json:"role"`
	Pods    int32    `json:"pods"`
	Reasons []Reason `json:"reasons"`
}

// Reason counts the nodes to which it applies.
type Reason struct {
	Nodes  int    `json:"nodes"`
	Reason string `json:"reason"`
}

// NodeFit is one node with pods of the job: what is free on it before the job, which pods are there and which go there.
type NodeFit struct {
	Node
	Running []string `json:"running"`
	Pods    []string `json:"pods"`
}

// Fit places the jobs of a plan, one after another, each in what those before it leave.
func (p *Plan) Fit(inv *Inventory) {
	p.Inventory = &Cluster{Pods: len(inv.pods), Nodes: make([]Node, len(inv.nodes))}
	for i, n := range inv.nodes {
		p.Inventory.Nodes[i] = Node{n.Name, n.free.quantities()}
	}
	for _, j := range p.Jobs {
		j.Fit = inv.fit(j)
	}
}

// Fits reports whether every job of the plan fits, or was not asked.
func (p *Plan) Fits() bool {
	return !slices.ContainsFunc(p.Jobs, func(j *Job) bool { return j.Fit != nil && !j.Fit.Fits })
}

// placing is a set of pods on its way to nodes.
type placing struct {
	demand
	set     *PodSet
	names   []string // of the pods that have no place yet
	left    int32    // of them, that must have one
	refused []string // by node: why it takes none of them, whatever is free
	open    int      // nodes that do not refuse
	places  []place
	running []place
}

type place struct {
	node  int
	names []string
}

func (inv *Inventory) fit(j *Job) *Fit {
	f := &Fit{PodSets: make([]SetFit, len(j.PodSets)), Missing: []Missing{}}
	var all []*placing
	for i, s := range j.PodSets {
		all = append(all, inv.placing(j, s, &f.PodSets[i]))
	}
	if j.Gang.Topology != nil {
		f.Fits, f.Heuristic = inv.gather(j, all, f)
	} else {
		impossible := slices.ContainsFunc(all, inv.lacksRoom)
		f.Fits = inv.search(all, impossible)
		f.Heuristic = !f.Fits && !impossible
	}
	if f.Fits { // the pods beyond the minimum take what is left
		for _, p := range all {
			if t := j.Gang.Topology; t != nil && t.Slice > 0 && p.set.Role == job.RoleWorker {
				continue // but for slices, which are whole
			}
			p.left = int32(len(p.names))
			inv.place(p, packed)
		}
	}
	for i, p := range all {
		if p.left > 0 {
			reasons := inv.reasons(p)
			if len(reasons) == 0 && j.Gang.Topology != nil {
				reasons = j.Gang.Topology.noDomain(len(inv.nodes))
			}
			f.Missing = append(f.Missing, Missing{p.set.Role, p.left, reasons})
		}
		for _, at := range p.places {
			f.PodSets[i].Placed += int32(len(at.names))
		}
	}
	f.countDomains(all)
	f.Nodes = inv.used(all)
	if !f.Fits { // a gang that does not start takes nothing
		inv.clear(all)
	}
	return f
}

// placing finds out which pods of a set have a place already.
func (inv *Inventory) placing(j *Job, s *PodSet, count *SetFit) *placing {
	p := &placing{demand: demandOf(s.pod), set: s, refused: make([]string, len(inv.nodes))}
	if inv.devices.known() {
		p.claims = inv.devices.claimsOf(s.pod, j.templates)
		j.noteClaims(s, p.claims.notes)
	}
	count.Role, count.Required, count.Replicas = s.Role, s.Required, s.Replicas
	used := map[string]int{} // several pods have one name where it is unknown
	for i := range s.Pods {
		name := s.Pods[i].Name
		there := inv.named[s.pod.Namespace+"/"+name]
		if used[name] == len(there) {
			p.names = append(p.names, name)
			continue
		}
		pod := there[used[name]]
		used[name]++
		switch pod.phase {
		case corev1.PodSucceeded:
			count.Finished++
		default:
			count.Running++
			if n, ok := inv.index[pod.node]; ok {
				p.running = append(p.running, place{n, []string{name}})
			}
		}
	}
	p.left = min(max(s.Required-count.Running-count.Finished, 0), int32(len(p.names)))
	for i, n := range inv.nodes {
		if p.refused[i] = n.refuses(p.demand); p.refused[i] == "" {
			p.open++
		}
	}
	return p
}

// used are the nodes that have pods of the sets, or get some.
func (inv *Inventory) used(all []*placing) []NodeFit {
	free := map[int]amounts{} // before
	running, going := map[int][]string{}, map[int][]string{}
	for _, p := range all {
		for _, at := range slices.Concat(p.places, p.running) {
			if free[at.node] == nil {
				free[at.node] = maps.Clone(inv.nodes[at.node].free)
			}
		}
		for _, at := range p.running {
			running[at.node] = append(running[at.node], at.names...)
		}
		for _, at := range p.places {
			going[at.node] = append(going[at.node], at.names...)
			free[at.node].subtract(p.needs, -int64(len(at.names)))
		}
	}
	out := []NodeFit{}
	for _, i := range slices.Sorted(maps.Keys(free)) {
		out = append(out, NodeFit{
			Node{inv.nodes[i].Name, free[i].quantities()},
			append([]string{}, running[i]...), append([]string{}, going[i]...), // never null
		})
	}
	return out
}

// strategy orders nodes by the pods that they take: the sooner a node comes, the sooner it is filled.
type strategy func(a, b int64) int

// packed uses few nodes, tight leaves the large ones to others.
func packed(a, b int64) int { return cmp.Compare(b, a) }
func tight(a, b int64) int  { return cmp.Compare(a, b) }

// maxOrders bounds the search: four sets in every order.
const maxOrders = 24

// search places the sets, the one with fewest nodes to go to first, and reports whether all have their minimum. With
// several sets that is a heuristic, so other orders are tried before it gives up; the first is what is reported then.
func (inv *Inventory) search(all []*placing, impossible bool) bool {
	first := slices.Clone(all)
	slices.SortStableFunc(first, func(a, b *placing) int {
		return cmp.Or(cmp.Compare(a.open, b.open), -cmp.Compare(inv.share(a), inv.share(b)))
	})
	if inv.try(first, packed) || impossible {
		return !impossible
	}
	tried, found := 0, false
	permute(slices.Clone(first), 0, func(order []*placing) bool {
		tried++
		for _, s := range []strategy{packed, tight} {
			inv.clear(all)
			if inv.try(order, s) {
				found = true
				break
			}
		}
		return found || tried == maxOrders
	})
	if !found {
		inv.clear(all)
		inv.try(first, packed)
	}
	return found
}

// permute calls try with every order until it returns true.
func permute(list []*placing, from int, try func([]*placing) bool) bool {
	if from >= len(list)-1 {
		return try(list)
	}
	for i := from; i < len(list); i++ {
		list[from], list[i] = list[i], list[from]
		if permute(list, from+1, try) {
			return true
		}
		list[from], list[i] = list[i], list[from]
	}
	return false
}

// share is the largest part of any node's resource that one pod takes.
func (inv *Inventory) share(p *placing) (most float64) {
	for name, need := range p.needs {
		largest := int64(0)
		for _, n := range inv.nodes {
			largest = max(largest, n.free[name])
		}
		if largest > 0 {
			most = max(most, float64(need)/float64(largest))
		}
	}
	return most
}

// try places all sets in an order, and reports whether all have their minimum.
func (inv *Inventory) try(order []*placing, s strategy) bool {
	ok := true
	for _, p := range order {
		inv.place(p, s)
		ok = ok && p.left == 0
	}
	return ok
}

// place assigns nodes to pods of a set, to as many as are left and find one.
func (inv *Inventory) place(p *placing, s strategy) {
	type candidate struct {
		node, foreign, others int // 0 others where pods of the set are already
		room                  int64
	}
	has := map[int]bool{}
	for _, at := range p.places {
		has[at.node] = true
	}
	var nodes []candidate
	for i, n := range inv.nodes {
		if p.left == 0 || p.refused[i] != "" {
			continue
		}
		if room, _ := n.room(p.demand); room > 0 {
			c := candidate{node: i, foreign: n.foreign(p.demand), room: room}
			if !has[i] {
				c.others = 1
			}
			nodes = append(nodes, c)
		}
	}
	slices.SortStableFunc(nodes, func(a, b candidate) int {
		return cmp.Or(a.foreign-b.foreign, a.others-b.others, s(a.room, b.room))
	})
	for _, c := range nodes {
		if p.left == 0 {
			return
		}
		if len(p.claims.own) > 0 { // whose devices may be of several nodes
			c.room, _ = inv.nodes[c.node].room(p.demand)
		}
		count := min(c.room, int64(p.left))
		if count == 0 {
			continue
		}
		inv.nodes[c.node].put(p.demand, count)
		p.places = append(p.places, place{c.node, p.names[:count:count]})
		p.names, p.left = p.names[count:], p.left-int32(count)
	}
}

// lacksRoom reports whether a set does not fit even alone, which for pods that are alike is a matter of counting.
func (inv *Inventory) lacksRoom(p *placing) bool {
	room := int64(0)
	for i, n := range inv.nodes {
		if p.refused[i] == "" {
			more, _ := n.room(p.demand)
			room += more
		}
	}
	return room < int64(p.left)
}

// reasons counts why nodes have no place for one more pod of a set.
func (inv *Inventory) reasons(p *placing) []Reason {
	everywhere := make([]int, len(inv.nodes))
	for i := range everywhere {
		everywhere[i] = i
	}
	return inv.reasonsOn(p, everywhere)
}

// reasonsOn is reasons of some nodes.
func (inv *Inventory) reasonsOn(p *placing, on []int) []Reason {
	counts := map[string]int{}
	for _, i := range on {
		n, why := inv.nodes[i], []string{p.refused[i]}
		if why[0] == "" {
			_, why = n.room(p.demand)
		}
		for _, w := range why {
			counts[w]++
		}
	}
	out := make([]Reason, 0, len(counts))
	for w, n := range counts {
		out = append(out, Reason{n, w})
	}
	slices.SortFunc(out, func(a, b Reason) int { return cmp.Or(b.Nodes-a.Nodes, strings.Compare(a.Reason, b.Reason)) })
	return out
}

// clear takes back the pods of all sets.
func (inv *Inventory) clear(all []*placing) {
	for _, p := range all {
		var names []string
		for _, at := range p.places {
			inv.nodes[at.node].take(p.demand, int64(len(at.names)))
			names = append(names, at.names...)
		}
		p.left += int32(len(names))
		p.names, p.places = append(names, p.names...), nil
	}
}
