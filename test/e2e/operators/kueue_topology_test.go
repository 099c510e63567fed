package operators

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/test/cluster"
)

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

// kueueTopologies are those of a target, with quota for eight.
func kueueTopologies(target string) topologies {
	return topologies{
		dialect: dialect{scheduler: "kueue", target: target, more: ", queue: team"},
		prepare: func(p *place, _ ...string) { p.topologyQueue() },
	}
}

// topologyQueue makes a queue whose flavor has racks.
func (p *place) topologyQueue() {
	p.Helper()
	_, rest, _ := strings.Cut(queueText, "---\n")
	p.apply(p.read("topology", fmt.Appendf(nil, topologyText, p.namespace))...)
	p.apply(p.read("queue", fmt.Appendf(nil, rest, p.namespace, 8, "", "team", p.namespace))...)
}

// kueueTopology: all workers are put into one rack, and a job for which no rack has room waits, though there is quota
// for it; the Workload says that no rack has room.
func kueueTopology(p *place) {
	p.racks(1, 2)
	p.topologyQueue()
	d := kueueTopologies("job").asked("")
	first := d.job(p, "first", 4)
	p.apply(first...)
	pods := p.running(4, p.namespace, workers)
	p.imported(first, p.the("Job", first))
	second := d.job(p, "second", 4)
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
	p.inRacks(all, map[string]int{"b": len(all)})
}

// kueueLaunched: the workers of an MPIJob are in one rack, and its launcher wherever there is room.
func kueueLaunched(p *place) {
	p.needs(mpiOperator)
	p.racks(1, 2)
	p.topologyQueue()
	t := kueueTopologies("mpijob")
	t.extra = fmt.Sprintf("  framework: horovod\n  roles: {launcher: {tolerations: [{key: %s, value: %s}]}}\n",
		reserved, p.namespace)
	p.apply(t.asked("").job(p, "launched", 4)...)
	p.inRacks(p.running(4, p.namespace, workers), map[string]int{"b": 4})
	p.running(1, p.namespace, "app.kubernetes.io/component=launcher")
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
