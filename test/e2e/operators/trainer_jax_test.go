package operators

import (
	"github.com/tegen-dev/tegen/test/cluster"
)

// trainJobJAX: one field starts it, each pod has the variables of its runtime and none of Trainer's behind them, the
// coordinator's name leads to pod 0, and all must succeed.
func trainJobJAX(p *place) {
	const fixture = "jax-trainjob-suspended"
	p.nodes(1, 0, "")
	objects := p.golden(fixture)
	p.apply(objects...)
	job := p.the("TrainJob", objects)
	p.condition(job, "Suspended")
	p.remains("no worker", func() error { return p.exist(job.GetNamespace(), 0) })
	p.set(job, false, "spec", "suspend")
	pods := p.foretold(fixture)
	for _, pod := range pods {
		p.have(pod, "node", map[string]string{
			"JAX_COORDINATOR_ADDRESS": "queued-jax-tj-node-0-0.queued-jax-tj.training.svc.cluster.local:6666",
			"JAX_NUM_PROCESSES":       "2", "JAX_LOCAL_DEVICE_IDS": "0", "PET_NNODES": "-", "PET_MASTER_ADDR": "-",
			"JAX_PROCESS_ID": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
		})
	}
	p.set(job, true, "spec", "suspend")
	p.gone(job.GetNamespace())
	p.set(job, false, "spec", "suspend")
	pods = p.running(2, job.GetNamespace(), workers)
	p.imported(objects, job)
	p.end(cluster.OutcomeSucceeded, pods[1])
	p.remains("the other", func() error { return p.selected(job.GetNamespace(), workers, 2) })
	p.end(cluster.OutcomeSucceeded, pods[0])
	p.condition(job, "Complete")
}
