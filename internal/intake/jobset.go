package intake

import (
	"slices"

	"github.com/tegen-dev/tegen/schema"
)

// readJobSet reads a JobSet: the Job in it that trains. Any other is not kept.
func readJobSet(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	child := trainingItem(spec.at("replicatedJobs"))
	if !child.given() {
		return nil, errNotTraining
	}
	d := newDraft(s, o, schema.FrameworkTorchelastic, schema.TargetJobSet, unhashed(o))
	d.children(child)
	d.set("spec.suspend", spec.at("suspend").isTrue(), spec.at("suspend"))
	d.seconds("spec.failure.deadline", child.at("template", "spec", "activeDeadlineSeconds"))
	d.keptFor(spec)
	template := child.at("template", "spec", "template")
	c := d.worker(template)
	d.torch(template.at("spec"), c, nil)
	d.surroundings()
	return d, nil
}

// trainingItem is the item of a list of pods' templates that trains: by its name, or the first.
func trainingItem(list view) view {
	items := list.items()
	for _, item := range items {
		if slices.Contains([]string{"worker", "node"}, item.at("name").text()) {
			return item
		}
	}
	if len(items) > 0 {
		return items[0]
	}
	return view{object: list.object}
}

// children reads a Job that stands for several: many Jobs of one pod become one Job of many.
func (d *draft) children(child view) {
	job := child.at("template", "spec")
	d.jobSpec(job)
	replicas, _ := child.at("replicas").number()
	pods, _ := d.get("spec.workers.replicas").number()
	if replicas <= 1 {
		return
	}
	d.set("spec.workers.replicas", replicas*pods, child.at("replicas"))
	d.note(child.at("replicas"), Moved, "%d Jobs become one of %d pods, which have other names", replicas, replicas*pods)
	for _, v := range []view{child.at("replicas"), job.at("parallelism"), job.at("completions"), job.at("completionMode")} {
		v.moved()
	}
}
