package importer

import (
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// readJob reads a Job of batch/v1. One that is not Indexed mostly fetches and prepares things.
func readJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	if isPrefetch(o) {
		return nil, errNotTraining
	}
	if spec.at("completionMode").text() != "Indexed" {
		if trains(spec.at("template")) {
			return readPlainJob(s, o), nil
		}
		return nil, errNotTraining
	}
	switch framework := frameworkOf(o, spec.at("template")); framework {
	case job.FrameworkTorchelastic, job.FrameworkJAX:
	case job.FrameworkHorovod, job.FrameworkByteScheduler, job.FrameworkMPI:
		if variable(o, "DMLC_ROLE") == "" {
			return readHorovodJob(s, o, framework)
		}
		fallthrough
	default:
		return readRoleJobs(s, o, framework)
	}
	return readTorchJob(s, o), nil
}

func readTorchJob(s *stream, o *object) *draft {
	spec := o.view().at("spec")
	d := newDraft(s, o, meetingFramework(o, spec.at("template")), job.TargetJob,
		strings.TrimSuffix(unhashed(o), "-worker"))
	groups := s.groupJobs(o)
	d.groupsOfJobs(groups)
	d.jobSpec(spec)
	for i, group := range groups {
		d.groupFailure(i, group.view().at("spec"), false)
	}
	d.set("spec.suspend", spec.at("suspend").isTrue(), spec.at("suspend"))
	d.managedBy(spec)
	d.readEnding(spec)
	c := d.worker(spec.at("template"))
	d.trainer(spec.at("template", "spec"), c)
	d.readdress(addresses{
		o.name + "-", spec.at("template", "spec", "subdomain").text(), d.name() + "-worker-",
		d.name() + "-worker", 0,
	})
	d.switchOffExtras()
	return d
}

// readPlainJob reads a Job whose pods have no index, as an Indexed one. Where fewer pods run at a time than there are
// in all, the job changes.
func readPlainJob(s *stream, o *object) *draft {
	d := readTorchJob(s, o)
	spec := o.view().at("spec")
	at, all := spec.at("parallelism"), spec.at("completions")
	n, known := at.number()
	if !at.isSet() {
		n = 1
	}
	switch m, ok := all.number(); {
	case !known && at.isSet(): // and it is reported
	case ok && m != n:
		d.note(all, Changed, "of %d pods in all, %d run at a time: a TrainingJob starts all of its workers at once, "+
			"and has %d", m, n, n)
		all.markTranslated()
	case !ok && n > 1:
		d.note(at, Changed, "the first pod that ends well ends this Job: a TrainingJob waits for all of its workers")
		at.markTranslated()
	}
	spec.at("completionMode").markTranslated()
	return d
}
