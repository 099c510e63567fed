package importer

import (
	"errors"

	"github.com/tegen-dev/tegen/schema/job"
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
	d := newDraft(s, o, job.FrameworkMXNet, job.TargetMXJob, o.name)
	if !all.server.template.isSet() {
		d.note(spec.at("mxReplicaSpecs"), Changed,
			"it trained without servers: this target always has a Scheduler and a Server, which are rendered, and "+
				"the workers use them")
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
	d.allWorkers(spec.at("successPolicy"), o.gvk.Version)
	if o.gvk.Version != "v1" {
		d.note(o.view().at("apiVersion"), Translated, "only kubeflow.org/v1 is rendered")
		o.view().at("apiVersion").markTranslated()
	}
	return d, nil
}

// allWorkers reads the policy under which the workers decide that a job is complete, and not the scheduler. Only
// version v1beta1 of the API has it (kubeflow/mxnet-operator v1.1.0, pkg/apis/mxnet).
func (d *draft) allWorkers(policy view, version string) {
	switch {
	case policy.text() == "":
		return
	case version == "v1":
		d.note(policy, Dropped, "kubeflow.org/v1 has no such field, and no operator reads it there")
	default:
		d.note(policy, Dropped, "the operator of kubeflow.org/v1 takes a job for complete when its scheduler has "+
			"succeeded")
	}
	policy.markTranslated()
}
