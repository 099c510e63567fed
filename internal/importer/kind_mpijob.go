package importer

import (
	"errors"
	"path"
	"slices"

	"github.com/tegen-dev/tegen/schema"
)

// readMPIJob reads a job of the MPI operator: its launcher's program, and its workers' pods, which only serve.
func readMPIJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	launcher, worker := spec.at("mpiReplicaSpecs", "Launcher"), spec.at("mpiReplicaSpecs", "Worker")
	if !launcher.isSet() || !worker.isSet() {
		return nil, errors.New("it has no Launcher and Worker in spec.mpiReplicaSpecs: where the launcher trains " +
			"alone, or one template serves for all, there is nothing to start by ssh")
	}
	c := trainingContainer(launcher.at("template", "spec"))
	framework := schema.FrameworkHorovod
	if c.at("env").item("name", "USE_BYTESCHEDULER").isSet() {
		framework = schema.FrameworkByteScheduler
	}
	d := newDraft(s, o, framework, schema.TargetMPIJob, o.name)
	if o.gvk.Version != "v2beta1" {
		d.note(o.view().at("apiVersion"), Changed,
			"kubeflow.org/v2beta1 is rendered, which starts processes by ssh and not by kubectl exec: the image must "+
				"have sshd")
		o.view().at("apiVersion").markTranslated()
	}
	d.otherRolePods = 1
	d.roleReplicas(worker)
	policy := spec.at("runPolicy")
	d.set("spec.suspend", policy.at("suspend").isTrue(), policy.at("suspend"))
	d.readBackoff(policy)
	if policy.at("cleanPodPolicy").isSet() {
		d.readCleanPods(policy)
	} else {
		d.readCleanPods(spec) // where the first operator has it
		spec.at("cleanPodPolicy").markTranslated()
	}
	d.readEnding(policy)
	slots := int64(1)
	if n, ok := spec.at("slotsPerWorker").number(); ok {
		slots = n
	}
	d.set("spec.workers.processes", slots, spec.at("slotsPerWorker"))
	w := d.worker(worker.at("template"))
	d.grace(launcher.at("template", "spec")) // the workers' own podTemplate can say
	d.roleOf(schema.RoleLauncher, launcher.at("template"), w)
	for _, v := range []view{c.at("command"), c.at("args"), w.at("command"), w.at("args")} {
		v.markTranslated() // ssh and the host file are tegen's to set up
	}
	d.mpiWorkers(w, launcher)
	d.horovodrun(c, launcher.at("template", "spec"))
	d.horovodEnv(c)
	d.schedulingPolicy(policy.at("schedulingPolicy"), worker.at("template", "spec", "schedulerName").text())
	d.switchOffExtras()
	return d, nil
}

// mpiWorkers reports what becomes of the workers' program: they run sshd, with a configuration of tegen's.
func (d *draft) mpiWorkers(w, launcher view) {
	own := []string{"sh", "/tegen/ssh/worker.sh"}
	switch words := append(w.at("command").texts(), w.at("args").texts()...); {
	case len(words) == 0 || slices.Equal(words, own):
	case path.Base(words[0]) == "sshd":
		for _, v := range []view{w.at("command"), w.at("args")} {
			if v.isSet() {
				d.note(v, Translated, "the workers run sshd with a configuration of tegen's")
			}
		}
	default:
		d.note(programOf(w), Changed, "the workers run sshd and nothing else")
	}
	if !w.at("env").item("name", "TEGEN_SSH_DIR").isSet() {
		d.note(launcher, Translated,
			"the launcher becomes horovodrun with its ssh set up by tegen, and the workers serve for it")
	}
}
