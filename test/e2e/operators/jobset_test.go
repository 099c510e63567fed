package operators

import (
	"fmt"

	"github.com/tegen-dev/tegen/test/cluster"
)

var jobSet = program{
	name: "JobSet", kinds: []string{"JobSet"}, definitions: []string{"jobsets.jobset.x-k8s.io/v1alpha2"},
	log: "jobset", controller: "app.kubernetes.io/name=jobset",
	probe: func(p *place) {
		objects := p.golden("torchelastic-jobset-suspended")
		p.apply(objects...)
		p.condition(p.the("JobSet", objects), "Suspended")
	},
	scenarios: []scenario{
		{"suspended, resumed, done", jobSetLife},
		{"pods as foretold", func(p *place) {
			p.nodes(4, 8, "")
			p.eachForetold("torchelastic-jobset-minimal", "torchelastic-jobset-etcd", "companion-jobset")
		}},
	},
}

// jobSetLife: one field starts what is suspended, the pods have the names and the host names that the rendezvous needs,
// and their end is the set's.
func jobSetLife(p *place) {
	p.nodes(2, 8, "")
	objects := p.golden("torchelastic-jobset-suspended")
	p.apply(objects...)
	set := p.the("JobSet", objects)
	p.condition(set, "Suspended")
	p.remains("no worker", func() error {
		pods, err := p.pods(set.GetNamespace(), workers)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("there are %d pods of a suspended set", len(pods))
		}
		return err
	})
	p.set(set, false, "spec", "suspend")
	p.foretold("torchelastic-jobset-suspended")
	p.set(set, true, "spec", "suspend")
	p.running(0, set.GetNamespace(), workers)
	p.set(set, false, "spec", "suspend")
	p.end(cluster.OutcomeSucceeded, p.running(2, set.GetNamespace(), workers)...)
	p.condition(set, "Completed")
}
