package operators

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// hyperNodes are what Volcano knows racks by; no tier is needed above them.
var hyperNodes = program{name: "Volcano", definitions: []string{"hypernodes.topology.volcano.sh/v1alpha1"}}

func volcanoTopologies(target string) topologies {
	return topologies{
		dialect: dialect{scheduler: "volcano", target: target},
		prepare: func(p *place, racks ...string) { p.hyperNodes(rackLabel, racks...) },
	}
}

// hyperNodes tells Volcano which nodes are of a rack, as its discovery by label does, with the name of their tier. Of
// other scenarios none is left.
func (p *place) hyperNodes(tier string, racks ...string) {
	p.Helper()
	p.needs(hyperNodes)
	for _, rack := range racks {
		var members []any
		for _, node := range p.rackNodes(rack) {
			members = append(members, map[string]any{
				"type": "Node", "selector": map[string]any{"exactMatch": map[string]any{"name": node}},
			})
		}
		o := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": strings.ToLower(p.namespace + "-" + rack)},
			"spec":     map[string]any{"tier": int64(1), "tierName": tier, "members": members},
		}}
		o.SetGroupVersionKind(schema.GroupVersionKind{
			Group: "topology.volcano.sh", Version: "v1alpha1", Kind: "HyperNode",
		})
		p.apply(o)
	}
}

// volcanoNoTier: where no HyperNode has the level's label for the name of its tier, Volcano places the workers as if
// they had no topology, without a word.
func volcanoNoTier(p *place) {
	p.racks(1, 1)
	p.hyperNodes("another", "a", "b")
	p.apply(volcanoTopologies("vcjob").asked("").job(p, "gang", 4)...)
	pods := p.running(4, p.namespace, workers)
	if got := fmt.Sprint(p.rackOf(pods[0])); got == "" {
		p.Error("pod 0 is in no rack")
	}
	p.inRacks(pods, map[string]int{"a": 2, "b": 2})
}
