package operators

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// koordinatorTopologyText are the layers that Koordinator makes of labels; it reads the one of this name alone.
const koordinatorTopologyText = `
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: ClusterNetworkTopology
metadata: {name: default}
spec:
  networkTopologySpec:
  - {topologyLayer: e2eRack, labelKey: [` + rackLabel + `]}
  - {topologyLayer: NodeTopologyLayer, parentTopologyLayer: e2eRack}
`

// koordinatorTopology runs a scenario where Koordinator has topologies.
func koordinatorTopology(run func(topologies, *place)) func(*place) {
	return func(p *place) {
		p.needs(program{
			name:        "Koordinator",
			definitions: []string{"clusternetworktopologies.scheduling.koordinator.sh/v1alpha1"},
		})
		if koordinator16(p) {
			p.Skip("Koordinator 1.6 has no topologies")
		}
		run(topologies{
			dialect: koordinatorGang("Strict"), level: "e2eRack", late: true,
			prepare: (*place).koordinatorRacks,
		}, p)
	}
}

// koordinatorRacks waits until Koordinator knows the nodes of racks, which it reads every ten seconds. Gangs that come
// before are told that there is no topology, and wait for the queue's sweep after five.
func (p *place) koordinatorRacks(racks ...string) {
	p.Helper()
	topology := p.read("topology", fmt.Append(nil, koordinatorTopologyText))
	p.apply(topology...)
	p.eventually("Koordinator to know the racks", func() error {
		live, err := p.get(p.Context(), topology[0])
		if err != nil {
			return err
		}
		known := map[string]int64{}
		all, _, _ := unstructured.NestedSlice(live.Object, "status", "detailStatus")
		for _, entry := range all {
			status, _ := entry.(map[string]any)
			name, _, _ := unstructured.NestedString(status, "topologyInfo", "topologyName")
			known[name], _, _ = unstructured.NestedInt64(status, "nodeNum")
		}
		for _, rack := range racks {
			if want := len(p.rackNodes(rack)); known[rack] != int64(want) {
				return fmt.Errorf("rack %s has %d nodes, want %d", rack, known[rack], want)
			}
		}
		return nil
	})
}
