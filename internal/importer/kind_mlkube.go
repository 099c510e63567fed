package importer

import (
	"errors"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

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
	d := newDraft(s, o, job.FrameworkMXNet, job.TargetMXJobMlkube, o.name)
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
