package operators

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/test/cluster"
)

// rackLabel is on the nodes of a rack.
const rackLabel = "tegen.dev/e2e-rack"

// topologyText is what gives the nodes of a flavor their racks.
const topologyText = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: %[1]s}
spec:
  levels: [{nodeLabel: ` + rackLabel + `}, {nodeLabel: kubernetes.io/hostname}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: %[1]s}
spec:
  topologyName: %[1]s
  nodeLabels: {` + reserved + `: %[1]s}
`

// kueueTopology: by Kueue's own annotation in podTemplate all workers are put into one rack, and a job for which no
// rack has room waits, though there is quota for it.
func kueueTopology(p *place) {
	p.rack("a", 1)
	p.rack("b", 2)
	_, rest, _ := strings.Cut(queueText, "---\n")
	p.apply(p.read("topology", fmt.Appendf(nil, topologyText, p.namespace))...)
	p.apply(p.read("queue", fmt.Appendf(nil, rest, p.namespace, 8, "", "team", p.namespace))...)
	const together = `  gang: {scheduler: kueue, queue: team}
  podTemplate:
    metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: ` + rackLabel + `}}
`
	first := p.queued("first", "job", "{replicas: 4}", together)
	p.apply(first...)
	pods := p.running(4, p.namespace, workers)
	p.imported(first, p.the("Job", first))
	second := p.queued("second", "job", "{replicas: 4}", together)
	p.apply(second...)
	w := p.workload(p.the("Job", second))
	p.remains("the second waits", func() error {
		if !suspendedNow(p.live(p.the("Job", second))) {
			return errors.New("it was admitted")
		}
		return p.existing(p.namespace, 4)
	})
	if text := fmt.Sprint(p.live(w).Object["status"]); !strings.Contains(text, "allows to fit only 2 out of 4 pod") {
		p.Errorf("the Workload does not say that the racks are too small: %s", text)
	}
	p.end(cluster.OutcomeSucceeded, pods...)
	p.owned(4, p.the("Job", second))
	all, err := p.pods(p.namespace, workers)
	if err != nil {
		p.Fatal(err)
	}
	for _, pod := range all {
		node, err := p.client.CoreV1().Nodes().Get(p.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			p.Fatal(err)
		}
		if got := node.Labels[rackLabel]; got != "b" {
			p.Errorf("pod %s is in rack %q, want b, which alone has room for four", pod.Name, got)
		}
	}
}

// rack adds nodes of two accelerators each.
func (p *place) rack(name string, nodes int) {
	p.Helper()
	before := len(p.added)
	p.nodes(nodes, 2, p.namespace)
	for _, node := range p.added[before:] {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, rackLabel, name)
		if _, err := p.client.CoreV1().Nodes().Patch(p.Context(), node, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			p.Fatal(err)
		}
	}
}

// kueueUnqueued: where Kueue manages Jobs without a queue too, one that names none is suspended for good.
func kueueUnqueued(p *place) {
	p.nodes(1, 8, p.namespace)
	objects := p.queued("alone", "job", "{replicas: 2}", "")
	p.apply(objects...)
	job := p.the("Job", objects)
	if !suspendedNow(p.live(job)) {
		p.running(2, p.namespace, workers)
		p.Skip("Kueue leaves Jobs without a queue alone here: manageJobsWithoutQueueName is not set")
	}
	p.remains("suspended", func() error { return p.existing(p.namespace, 0) })
}
