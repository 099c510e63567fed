package importer

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema"
)

// readJobSet reads a JobSet: the Job in it that trains. Any other is not kept.
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
			o.name + "-" + child.at("name").text() + "-0-", cmp.Or(spec.at("network", "subdomain").text(), o.name), d.name() + "-worker-0-", d.name(), 0,
		})
	}
	d.switchOffExtras()
	return d, nil
}

// trainingNames are what the item that trains is called, alone or at the end of its name.
var trainingNames = []string{"worker", "workers", "node", "nodes", "trainer", "trainers"}

// trainingIndex is the item of a list of pods' templates that trains: by its name, by its launcher, by the most
// accelerators in all of its pods, or the first.
func trainingIndex(items []view) int {
	for _, ends := range []bool{false, true} {
		for _, name := range trainingNames {
			is := func(item view) bool {
				own := strings.ToLower(item.at("name").text())
				return own == name || ends && strings.HasSuffix(own, name)
			}
			if i := slices.IndexFunc(items, is); i >= 0 {
				return i
			}
		}
	}
	launches := func(item view) bool { return newProgram(trainingContainer(podOf(item))).launcher != "" }
	if i := slices.IndexFunc(items, launches); i >= 0 {
		return i
	}
	most := 0
	for i, item := range items {
		if accelerators(item) > accelerators(items[most]) {
			most = i
		}
	}
	return most
}

// podOf is the pod of an item: of a task, or of a Job in it.
func podOf(item view) view {
	if job := item.at("template", "spec", "template"); job.isSet() {
		return job.at("spec")
	}
	return item.at("template", "spec")
}

// accelerators are those of all pods of an item.
func accelerators(item view) int64 {
	c := trainingContainer(podOf(item))
	all, _ := c.at("resources", "limits", gpuOf(c)).number()
	return all * podsOf(item)
}

// trainingItem is the item of a list that trains, with a note for each other, and how many pods those have.
func (s *stream) trainingItem(list view) (item view, others int64) {
	items := list.items()
	if len(items) == 0 {
		return view{object: list.object}, 0
	}
	item = items[trainingIndex(items)]
	for i, other := range items {
		if i != trainingIndex(items) {
			others += podsOf(other)
			s.notes = append(s.notes, other.at("name").note(Changed, "a TrainingJob has one template of pods, which is that of %s: these pods are not rendered", summary(item.at("name").value)))
		}
	}
	return item, others
}

// podsOf is how many pods an item has.
func podsOf(item view) int64 {
	all := int64(1)
	for _, v := range []view{item.at("replicas"), item.at("template", "spec", "parallelism")} {
		if n, ok := v.number(); ok {
			all *= n
		}
	}
	return all
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
	d.note(child.at("replicas"), Changed, "a TrainingJob renders one Job: these %d, each with an index and a place of its own, become one of %d pods", replicas, replicas*pods)
	for _, v := range []view{job.at("parallelism"), job.at("completions")} {
		if v.isSet() {
			d.note(v, Translated, "they are among the %d pods of the one Job", replicas*pods)
		}
	}
	for _, v := range []view{child.at("replicas"), job.at("parallelism"), job.at("completions"), job.at("completionMode")} {
		v.markTranslated()
	}
}
