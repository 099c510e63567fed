package importer

import (
	"math"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// trains says whether the pods of a template start a launcher or ask for accelerators.
func trains(template view) bool {
	c := trainingContainer(template.at("spec"))
	return newProgram(c).launcher != "" || gpuOf(c) != ""
}

// frameworkOf is the framework of a template's pods, by tegen's own label or by the variables of the program.
func frameworkOf(o *object, template view) string {
	labels := o.view().at("metadata", "labels")
	own := labels.at("app.kubernetes.io/name").text()
	switch {
	case labels.at(names.LabelManagedBy).text() == names.ManagedBy && own != "":
		return own
	case trainingContainer(template.at("spec")).at("env").item("name", "DMLC_ROLE").isSet():
		return job.FrameworkMXNet
	case isJAX(trainingContainer(template.at("spec"))):
		return job.FrameworkJAX
	}
	return job.FrameworkTorchelastic
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
	for _, key := range []string{
		"controller-uid", "batch.kubernetes.io/controller-uid", "job-name",
		"batch.kubernetes.io/job-name",
	} {
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
	perIndex, indexes := spec.at("backoffLimitPerIndex"), spec.at("maxFailedIndexes")
	switch n, ok := perIndex.number(); {
	case ok && n == 0 && indexes.text() == "0":
		d.set("spec.failure.restarts", n, perIndex)
		for _, v := range []view{perIndex, indexes} {
			d.note(v, Translated, "no index may fail: the first pod that does ends the job, as with backoffLimit 0")
			v.markTranslated()
		}
	case ok:
		d.set("spec.failure.restartsPerWorker", n, perIndex)
	default:
		d.readBackoff(spec)
	}
	d.set("spec.failure.ignoreDisruptions", false, spec)
	d.inPlace(spec.at("template", "spec", "restartPolicy"))
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

// inPlace reads whether the kubelet starts a container again that failed. A Job that says neither is refused by the
// API; JobSet's webhook has it say OnFailure.
func (d *draft) inPlace(policy view) {
	if policy.text() == "OnFailure" || !policy.isSet() && d.workload[0].gvk.Group != "batch" {
		d.set("spec.failure.inPlace", true, policy)
		delete(d.get("spec.failure").mapping(), "ignoreDisruptions") // its default, which follows
	}
}

// readEnding reads for how long a job may run, and how long it is kept.
func (d *draft) readEnding(spec view) {
	d.seconds("spec.failure.deadline", spec.at("activeDeadlineSeconds"))
	d.readTTL(spec)
}

// readTTL reads how long a finished job is kept. The default is for ever.
func (d *draft) readTTL(spec view) {
	if ttl := spec.at("ttlSecondsAfterFinished"); ttl.isSet() {
		d.seconds("spec.ttlAfterFinished", ttl)
	} else {
		d.set("spec.ttlAfterFinished", job.None, spec)
	}
}

// switchOffExtras switches off what tegen would render beside the workers and the stream does not have.
func (d *draft) switchOffExtras() {
	worker := d.name() + "-worker"
	at := d.workload[0].view()
	if policy := d.stream.find("networking.k8s.io", "NetworkPolicy", d.namespace(), worker); policy == nil {
		d.set("spec.network.policy", false, at)
	} else {
		d.peers(policy)
	}
	d.metrics()
	if d.stream.find("policy", "PodDisruptionBudget", d.namespace(), worker) == nil {
		d.set("spec.disruption.budget", false, at)
	}
	if d.namespace() != "" && d.stream.find("", "Namespace", "", d.namespace()) != nil {
		d.set("spec.createNamespace", true, at)
	}
}

// roleReplicas reads how many pods a role has. The default is one.
func (d *draft) roleReplicas(role view) {
	d.set("spec.workers.replicas", int64(1), role)
	d.setNumber("spec.workers.replicas", role.at("replicas"))
}

func (d *draft) readBackoff(policy view) {
	limit := policy.at("backoffLimit")
	n, ok := limit.number()
	if n == math.MaxInt32 && d.restartsInPlace() {
		return
	}
	if n > mostRestarts {
		d.note(limit, Changed, "spec.failure.restarts ends at %d", mostRestarts)
		limit.markTranslated()
		n = mostRestarts
	}
	if ok {
		d.set("spec.failure.restarts", n, limit)
	}
}

// readUnboundedBackoff reads the limit of operators that count failures only where there is one.
func (d *draft) readUnboundedBackoff(policy view) {
	if d.readBackoff(policy); !policy.at("backoffLimit").isSet() {
		d.set("spec.failure.restarts", job.None, policy)
	}
}

// readCleanPods reads which pods an operator deletes when the job is over. The default is none.
func (d *draft) readCleanPods(policy view) {
	v := policy.at("cleanPodPolicy")
	switch word := v.text(); word {
	case "":
		d.set("spec.cleanPods", job.None, policy)
	case "None", "Running", "All":
		d.set("spec.cleanPods", strings.ToLower(word), v)
	}
}

// mostRestarts is the schema's own bound.
const mostRestarts = 100000
