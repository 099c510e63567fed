package gang

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// domain is nodes, by their index in the simulation, whose labels have the same values.
type domain struct {
	name  string // the values; "" for all nodes
	nodes []int
}

// layout is the domains of some labels, by name. A node without one of the labels is in no domain.
type layout struct {
	labels  []string
	domains []*domain
}

// layout finds the domains of some labels.
func (sim *simulation) layout(labels []string) *layout {
	for _, l := range sim.layouts {
		if slices.Equal(l.labels, labels) {
			return l
		}
	}
	l := &layout{labels: labels}
	known := map[string]*domain{}
	for i, n := range sim.nodes {
		name := domainOf(n.Node(), labels)
		if name == "" {
			continue
		}
		d := known[name]
		if d == nil {
			d = &domain{name: name}
			known[name], l.domains = d, append(l.domains, d)
		}
		d.nodes = append(d.nodes, i)
	}
	slices.SortFunc(l.domains, func(a, b *domain) int { return strings.Compare(a.name, b.name) })
	sim.layouts = append(sim.layouts, l)
	return l
}

// domainOf names the domain that a node is in, "" for none. No value of a label has a comma.
func domainOf(node *corev1.Node, labels []string) string {
	if len(labels) == 1 { // without an allocation: it is asked of every node
		return node.Labels[labels[0]]
	}
	values := make([]string, len(labels))
	for i, l := range labels {
		if values[i] = node.Labels[l]; values[i] == "" {
			return ""
		}
	}
	return strings.Join(values, ", ")
}

// home is the domain in which most of the members are that were placed before, "" where there are none: their nodes may
// be gone, or have the labels no more.
func (sim *simulation) home(sites []gangcache.Site, labels []string) string {
	members := map[string]int{}
	for _, s := range sites {
		n, err := sim.fw.SnapshotSharedLister().NodeInfos().Get(s.Node)
		if err != nil {
			continue
		}
		if name := domainOf(n.Node(), labels); name != "" {
			members[name] += s.Members
		}
	}
	home := ""
	for name, n := range members {
		if c := cmp.Compare(n, members[home]); c > 0 || c == 0 && (home == "" || name < home) {
			home = name
		}
	}
	return home
}

// room is how many pods that ask for something a domain takes by its free resources, or by those that evictions would
// free, on the nodes that they select.
func (sim *simulation) room(
	d *domain, affinity nodeaffinity.RequiredNodeAffinity, ask *framework.Resource,
) (room int) {
	for _, i := range d.nodes {
		// An affinity that is malformed matches nothing here, and the filters say why.
		if ok, err := affinity.Match(sim.nodes[i].Node()); err == nil && ok {
			room += sim.places(sim.removal.withoutVictims(sim.nodes[i]), ask)
		}
	}
	return room
}

// same says whether two requests ask for the same.
func same(a, b *framework.Resource) bool {
	return a.MilliCPU == b.MilliCPU && a.Memory == b.Memory && a.EphemeralStorage == b.EphemeralStorage &&
		maps.Equal(a.ScalarResources, b.ScalarResources)
}

// rewind takes back the moves after the first few.
func (sim *simulation) rewind(ctx context.Context, first int) error {
	sim.unreserve(ctx, sim.moves[first:])
	for i := len(sim.moves) - 1; i >= first; i-- {
		m := sim.moves[i]
		m.taken = !m.taken
		if err := sim.carryOut(ctx, m); err != nil {
			return err
		}
	}
	sim.moves = sim.moves[:first]
	for _, c := range sim.classes {
		clear(c.evictions) // they were found beside others that were to go
	}
	return nil
}
