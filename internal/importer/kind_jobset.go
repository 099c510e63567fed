package importer

import (
	"cmp"
	"errors"

	"github.com/tegen-dev/tegen/schema"
)

// readJobSet reads a JobSet: the Job in it that trains. Any other is dropped.
func readJobSet(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	child, others := s.trainingItem(spec.at("replicatedJobs"))
	if !child.isSet() {
		return nil, errors.New("it has no spec.replicatedJobs")
	}
	d := newDraft(s, o, schema.FrameworkTorchelastic, schema.TargetJobSet, unhashed(o))
	d.unrenderedPods = others
	d.children(child)
	d.set("spec.suspend", spec.at("suspend").isTrue(), spec.at("suspend"))
	d.seconds("spec.failure.deadline", child.at("template", "spec", "activeDeadlineSeconds"))
	d.readTTL(spec)
	template := child.at("template", "spec", "template")
	c := d.worker(template)
	d.torch(template.at("spec"), c, nil)
	if n, ok := child.at("replicas").number(); !ok || n == 1 {
		d.readdress(addresses{
			o.name + "-" + child.at("name").text() + "-0-",
			cmp.Or(spec.at("network", "subdomain").text(), o.name), d.name() + "-worker-0-", d.name(),
			0,
		})
	}
	d.switchOffExtras()
	return d, nil
}

// children reads replicas of a JobSet's child Job: several Jobs of one pod become one Job of several pods.
func (d *draft) children(child view) {
	job := child.at("template", "spec")
	d.jobSpec(job)
	replicas, _ := child.at("replicas").number()
	pods, _ := d.get("spec.workers.replicas").number()
	if replicas <= 1 {
		return
	}
	d.set("spec.workers.replicas", replicas*pods, child.at("replicas"))
	d.note(child.at("replicas"), Changed,
		"a TrainingJob renders one Job: these %d, each with an index and a place of its own, become one of %d pods",
		replicas, replicas*pods)
	for _, v := range []view{job.at("parallelism"), job.at("completions")} {
		if v.isSet() {
			d.note(v, Translated, "they are among the %d pods of the one Job", replicas*pods)
		}
	}
	for _, v := range []view{
		child.at("replicas"), job.at("parallelism"), job.at("completions"),
		job.at("completionMode"),
	} {
		v.markTranslated()
	}
}
