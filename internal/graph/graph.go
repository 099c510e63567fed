// Package graph draws a job's objects and what refers to what among them, as DOT, Mermaid or SVG. The same objects give
// the same bytes, in whatever order they come.
package graph

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/refs"
)

// Graph is what is drawn.
type Graph struct {
	Title string
	Nodes []Node // sorted
	Edges []Edge // sorted, one at most from a node to another
}

// Node is an object.
type Node struct {
	Kind, Name string
	Outside    bool // not of the bundle: it exists already, or a controller makes it
}

// Edge is what the node at From has of the one at To: indexes of Nodes.
type Edge struct {
	From, To int
	How      refs.How // of several the first: what the line looks like
	Label    string   // of all, such as "dials :29400, named by"
}

// Of is the graph of the objects of one job.
func Of(title string, objects []runtime.Object) (*Graph, error) {
	type key struct{ namespace, kind, name string }
	inside := map[key]bool{}
	for _, o := range objects {
		gvk, err := manifest.GVK(o)
		if err != nil {
			return nil, err
		}
		if m, ok := o.(metav1.Object); ok {
			inside[key{m.GetNamespace(), gvk.Kind, m.GetName()}] = true
		}
	}
	links := refs.Links(objects)
	all := map[key]bool{}
	of := func(o refs.Object) key {
		kind, _, _ := strings.Cut(o.Kind, ".") // a custom resource's has its group
		return key{o.Namespace, kind, o.Name}
	}
	for k := range inside {
		all[k] = true
	}
	for _, l := range links {
		all[of(l.From)], all[of(l.To)] = true, true
	}
	keys := make([]key, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.namespace, b.namespace))
	})
	g := &Graph{Title: title}
	index := map[key]int{}
	for i, k := range keys {
		index[k] = i
		g.Nodes = append(g.Nodes, Node{Kind: k.kind, Name: k.name, Outside: !inside[k]})
	}
	for _, l := range links {
		g.join(index[of(l.From)], index[of(l.To)], l)
	}
	slices.SortFunc(g.Edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return g, nil
}

// join adds a link to the edge of its nodes. A node that refers to itself, as a policy of its own pods does, is left
// out.
func (g *Graph) join(from, to int, l refs.Link) {
	label := string(l.How)
	if l.Port != "" {
		label += " :" + l.Port
	}
	if from == to {
		return
	}
	for i := range g.Edges {
		if e := &g.Edges[i]; e.From == from && e.To == to {
			if !slices.Contains(strings.Split(e.Label, ", "), label) {
				e.Label += ", " + label
			}
			return
		}
	}
	g.Edges = append(g.Edges, Edge{From: from, To: to, How: l.How, Label: label})
}
