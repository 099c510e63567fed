package importer

import (
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
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
	dropControllerFields(o)
	switch framework := frameworkOf(o, spec.at("template")); framework {
	case schema.FrameworkTorchelastic:
	case schema.FrameworkHorovod, schema.FrameworkByteScheduler:
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
	d := newDraft(s, o, schema.FrameworkTorchelastic, schema.TargetJob, strings.TrimSuffix(unhashed(o), "-worker"))
	d.jobSpec(spec)
	d.set("spec.suspend", spec.at("suspend").isTrue(), spec.at("suspend"))
	d.readEnding(spec)
	c := d.worker(spec.at("template"))
	d.torch(spec.at("template", "spec"), c, nil)
	d.readdress(addresses{o.name + "-", spec.at("template", "spec", "subdomain").text(), d.name() + "-worker-", d.name() + "-worker", 0})
	d.switchOffExtras()
	return d
}

// readPlainJob reads a Job whose pods have no numbers: as an Indexed one, whose first pods are given numbers that nobody
// asks for. Where fewer run at a time than there are in all, the job is another.
func readPlainJob(s *stream, o *object) *draft {
	dropControllerFields(o)
	d := readTorchJob(s, o)
	spec := o.view().at("spec")
	at, all := spec.at("parallelism"), spec.at("completions")
	n, _ := at.number()
	if !at.isSet() {
		n = 1
	}
	switch m, ok := all.number(); {
	case ok && m != n:
		d.note(all, Changed, "of %d pods in all, %d run at a time: a TrainingJob starts all of its workers at once, and has %d", m, n, n)
		all.markTranslated()
	case !ok && n > 1:
		d.note(at, Changed, "the first pod that ends well ends this Job: a TrainingJob waits for all of its workers")
		at.markTranslated()
	}
	spec.at("completionMode").markTranslated()
	return d
}

// trains says whether the pods of a template start a launcher or ask for accelerators.
func trains(template view) bool {
	c := trainingContainer(template.at("spec"))
	return newProgram(c).launcher != "" || gpuOf(c) != ""
}

// frameworkOf is what the pods of a template train with: tegen's own label says it, or what the program is told.
func frameworkOf(o *object, template view) string {
	labels := o.view().at("metadata", "labels")
	own := labels.at("app.kubernetes.io/name").text()
	switch {
	case labels.at("app.kubernetes.io/managed-by").text() == names.ManagedBy && own != "":
		return own
	case trainingContainer(template.at("spec")).at("env").item("name", "DMLC_ROLE").isSet():
		return schema.FrameworkMXNet
	}
	return schema.FrameworkTorchelastic
}

// unhashed is a name without the hash that tegen puts behind it where hashedNames asks for it.
func unhashed(o *object) string {
	if hash := o.view().at("metadata", "annotations", names.ContentHash).text(); hash != "" {
		return strings.TrimSuffix(o.name, "-"+hash)
	}
	return o.name
}

// dropControllerFields drops what the Job controller writes into a Job when it is created.
func dropControllerFields(o *object) {
	labels := o.view().at("spec", "template", "metadata", "labels").mapping()
	for _, key := range []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"} {
		delete(labels, key)
	}
	if !o.view().at("spec", "manualSelector").isTrue() {
		delete(o.view().at("spec").mapping(), "selector")
	}
}

// jobSpec reads the fields of a Job that another object may be made of.
func (d *draft) jobSpec(spec view) {
	if !d.setNumber("spec.workers.replicas", spec.at("parallelism")) {
		d.set("spec.workers.replicas", int64(1), spec)
	}
	if n, ok := spec.at("backoffLimitPerIndex").number(); ok {
		d.set("spec.failure.restartsPerWorker", n, spec.at("backoffLimitPerIndex"))
	} else {
		d.readBackoff(spec)
	}
	d.set("spec.failure.ignoreDisruptions", false, spec)
	for _, rule := range spec.at("podFailurePolicy", "rules").items() {
		codes := rule.at("onExitCodes")
		switch {
		case rule.at("action").text() == "Ignore" && rule.at("onPodConditions").isSet():
			d.set("spec.failure.ignoreDisruptions", true, rule)
		case rule.at("action").text() == "FailJob" && codes.at("operator").text() == "In":
			d.set("spec.failure.fatalExitCodes", codes.at("values").value, codes)
		}
	}
}

// readEnding reads for how long a job may run, and how long it is kept.
func (d *draft) readEnding(spec view) {
	d.seconds("spec.failure.deadline", spec.at("activeDeadlineSeconds"))
	d.readTTL(spec)
}

// readTTL reads how long a finished job is kept: for ever, where nobody says.
func (d *draft) readTTL(spec view) {
	if ttl := spec.at("ttlSecondsAfterFinished"); ttl.isSet() {
		d.seconds("spec.ttlAfterFinished", ttl)
	} else {
		d.set("spec.ttlAfterFinished", schema.None, spec)
	}
}

// switchOffExtras leaves out what tegen would render beside the workers and the stream has not.
func (d *draft) switchOffExtras() {
	worker := d.name() + "-worker"
	at := d.workload[0].view()
	if d.stream.find("networking.k8s.io", "NetworkPolicy", d.namespace(), worker) == nil {
		d.set("spec.network.policy", false, at)
	}
	if d.stream.find("policy", "PodDisruptionBudget", d.namespace(), worker) == nil {
		d.set("spec.disruption.budget", false, at)
	}
	if d.namespace() != "" && d.stream.find("", "Namespace", "", d.namespace()) != nil {
		d.set("spec.createNamespace", true, at)
	}
}
