package importer

import (
	"errors"
	"strings"

	"github.com/tegen-dev/tegen/schema"
)

// readMXJob reads a job of Kubeflow's operator for MXNet. Older versions have the fields of runPolicy in the spec.
func readMXJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	switch mode := spec.at("jobMode").text(); mode {
	case "MXTrain":
	case "":
		return nil, errors.New("spec.jobMode says nothing: only MXTrain, which trains, is read, and so put it there")
	default:
		return nil, errors.New("jobMode " + mode + " searches for kernels and does not train: only MXTrain is read")
	}
	roleOf := func(name string) role {
		r := spec.at("mxReplicaSpecs", name)
		return role{r.at("template"), r.at("replicas")}
	}
	all := roles{roleOf("Scheduler"), roleOf("Server"), roleOf("Worker")}
	if !all.worker.template.isSet() {
		return nil, errors.New("it has no role Worker")
	}
	d := newDraft(s, o, schema.FrameworkMXNet, schema.TargetMXJob, o.name)
	if !all.server.template.isSet() {
		d.note(spec.at("mxReplicaSpecs"), Changed, "it trained without servers: this target always has a Scheduler and a Server, which are rendered, and of which the workers are told")
	}
	policy := spec.at("runPolicy")
	if !policy.isSet() {
		policy = spec
		for _, key := range []string{"cleanPodPolicy", "activeDeadlineSeconds", "ttlSecondsAfterFinished"} {
			spec.at(key).markTranslated() // into runPolicy
		}
	}
	d.set("spec.suspend", policy.at("suspend").isTrue(), policy.at("suspend"))
	d.readCleanPods(policy)
	d.readEnding(policy)
	d.parameterServers(all)
	d.switchOffExtras()
	if o.gvk.Version != "v1" {
		d.note(o.view().at("apiVersion"), Translated, "only kubeflow.org/v1 is rendered")
		o.view().at("apiVersion").markTranslated()
	}
	return d, nil
}

// readMlkube reads a job of MXNet's first operator. Its RuntimeId is part of names.
func readMlkube(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	var all roles
	for _, r := range spec.at("replicaSpecs").items() {
		setMissing(r.mapping(), tree{"mxReplicaType": "WORKER"}) // the API's own
		found := role{r.at("template"), r.at("replicas")}
		switch strings.ToUpper(r.at("mxReplicaType").text()) {
		case "SCHEDULER":
			all.scheduler = found
		case "SERVER":
			all.server = found
		default:
			all.worker = found
		}
	}
	if !all.worker.template.isSet() {
		return nil, errors.New("it has no role WORKER")
	}
	d := newDraft(s, o, schema.FrameworkMXNet, schema.TargetMXJobMlkube, o.name)
	d.set("spec.mxnet.mode", spec.at("jobMode").text(), spec.at("jobMode"))
	d.set("spec.mxnet.group", o.gvk.Group, o.view().at("apiVersion"))
	d.set("spec.mxnet.runtimeID", spec.at("RuntimeId").text(), spec.at("RuntimeId"))
	d.parameterServers(all)
	if port := spec.at("replicaSpecs").item("mxReplicaType", "SCHEDULER").at("PsRootPort"); port.isSet() {
		d.set("spec.servers.port", port.value, port)
	}
	d.switchOffExtras()
	return d, nil
}
