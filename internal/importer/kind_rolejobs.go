package importer

import (
	"errors"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// readRoleJobs reads Jobs that are the roles of one job.
func readRoleJobs(s *stream, first *object, framework string) (*draft, error) {
	if framework != job.FrameworkMXNet && framework != job.FrameworkByteScheduler {
		return nil, errors.New("Jobs of framework " + framework + " are not read")
	}
	jobs := map[string]*object{}
	root := rootOf(first)
	for _, o := range s.objects {
		if o.is("batch", "Job") && o.draft == nil && sameNamespace(o.namespace, first.namespace) && rootOf(o) == root &&
			(root != "" || o == first) {
			jobs[variable(o, "DMLC_ROLE")] = o
		}
	}
	worker := jobs["worker"]
	if root == "" {
		worker = first
	}
	if worker == nil {
		return nil, errors.New("it is a role of ps-lite, and the workers are not in the input")
	}
	roleOf := func(o *object) role {
		if o == nil {
			return role{}
		}
		spec := o.view().at("spec")
		return role{spec.at("template"), spec.at("parallelism")}
	}
	all := roles{roleOf(jobs["scheduler"]), roleOf(jobs["server"]), roleOf(worker)}
	var order []*object
	for _, o := range []*object{jobs["scheduler"], jobs["server"], worker} { // as they are rendered
		if o != nil {
			order = append(order, o)
		}
	}
	d := newDraft(s, order[0], framework, job.TargetJob, strings.TrimSuffix(unhashed(worker), "-worker"))
	for _, o := range order[1:] {
		d.addWorkload(o)
	}
	spec := worker.view().at("spec")
	if len(order) == 1 {
		d.set("spec.mxnet.mode", job.MXNetLocal, spec)
		d.jobSpec(spec)
	}
	d.set("spec.suspend", spec.at("suspend").isTrue(), spec.at("suspend"))
	d.managedBy(spec)
	d.readEnding(spec)
	d.parameterServers(all)
	if framework == job.FrameworkByteScheduler {
		d.set("spec.bytescheduler.mode", job.ModeBytePS, spec)
	}
	d.switchOffExtras()
	return d, nil
}

// rootOf is the name of the scheduler that a Job's pods dial, by which those of one job are known.
func rootOf(o *object) string { return variable(o, "DMLC_PS_ROOT_URI") }

func variable(o *object, name string) string {
	return trainingContainer(o.view().at("spec", "template", "spec")).at("env").item("name", name).at("value").text()
}
