package importer

import (
	"cmp"
	"slices"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// groupJobs are the Jobs of the groups beside a Job of workers: those that tegen rendered for one job, whose pods know
// each other's hosts. Nothing else says of two Jobs that they are one.
func (s *stream) groupJobs(worker *object) (all []*object) {
	own := worker.view().at("metadata", "labels", names.LabelJob).text()
	if own == "" || componentOf(worker) != job.RoleWorker || !toldHosts(worker) {
		return nil
	}
	for _, o := range s.objects {
		if o != worker && o.is("batch", "Job") && o.draft == nil && sameNamespace(o.namespace, worker.namespace) &&
			o.view().at("metadata", "labels", names.LabelJob).text() == own && toldHosts(o) &&
			groupName().MatchString(componentOf(o)) {
			all = append(all, o)
		}
	}
	return all
}

func componentOf(o *object) string {
	return o.view().at("metadata", "labels", names.LabelComponent).text()
}

// toldHosts says whether the pods of a Job are given the host of the workers, as those of a job with groups are.
func toldHosts(o *object) bool {
	c := trainingContainer(o.view().at("spec", "template", "spec"))
	return slices.ContainsFunc(c.at("env").items(), func(e view) bool {
		return e.at("name").text() == job.HostVariable(job.RoleWorker)
	})
}

// groupsOfJobs reads them into the draft.
func (d *draft) groupsOfJobs(all []*object) {
	for _, o := range all {
		spec := o.view().at("spec")
		n, _ := spec.at("parallelism").number()
		d.addWorkload(o)
		d.groupNamed(componentOf(o), cmp.Or(n, 1), spec, spec.at("template"))
	}
}
