package importer

import (
	"errors"
	"path"
	"slices"

	"github.com/tegen-dev/tegen/schema/job"
)

// readMPIJob reads a job of the MPI operator: its launcher's program, and its workers' pods, which only serve.
func readMPIJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	launcher, worker := spec.at("mpiReplicaSpecs", "Launcher"), spec.at("mpiReplicaSpecs", "Worker")
	if !launcher.isSet() || !worker.isSet() {
		return nil, errors.New("it has no Launcher and Worker in spec.mpiReplicaSpecs: where the launcher trains " +
			"alone, or one template serves for all, there is nothing to start by ssh")
	}
	framework, own := job.FrameworkMPI, tegenSSH(trainingContainer(worker.at("template", "spec")))
	if own {
		framework = mpiFramework(trainingContainer(launcher.at("template", "spec")))
	}
	d := newDraft(s, o, framework, job.TargetMPIJob, o.name)
	if d.byExec() {
		d.note(o.view().at("apiVersion"), Changed,
			"kubeflow.org/v2beta1 is rendered, which starts processes by ssh and not by kubectl exec: the image must "+
				"have sshd, and ssh that asks nobody about hosts, and processes have those variables that mpirun "+
				"hands on")
		o.view().at("apiVersion").markTranslated()
	}
	d.otherRolePods = 1
	d.roleReplicas(worker)
	policy := spec.at("runPolicy")
	d.set("spec.suspend", policy.at("suspend").isTrue(), policy.at("suspend"))
	d.managedBy(policy)
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
	implementation := spec.at("mpiImplementation")
	d.set("spec.mpi.implementation", mpiImplementations[implementation.text()], implementation)
	if own {
		d.tegenMPI(spec)
	} else {
		d.imageMPI(spec)
	}
	for _, service := range []string{o.name + "-worker", o.name} { // of mpi-operator 0.3, and since
		d.readdress(addresses{o.name + "-worker-", service, d.name() + "-worker-", d.name(), 0})
	}
	d.schedulingPolicy(policy.at("schedulingPolicy"), worker.at("template", "spec", "schedulerName").text())
	d.switchOffExtras()
	return d, nil
}

// tegenMPI reads the pods of an MPIJob whose ssh tegen has set up.
func (d *draft) tegenMPI(spec view) {
	launcher, worker := spec.at("mpiReplicaSpecs", "Launcher"), spec.at("mpiReplicaSpecs", "Worker")
	c := trainingContainer(launcher.at("template", "spec"))
	w := d.worker(worker.at("template"))
	d.grace(launcher.at("template", "spec")) // the workers' own podTemplate can say
	d.roleOf(job.RoleLauncher, launcher.at("template"), w)
	for _, v := range []view{c.at("command"), c.at("args"), w.at("command"), w.at("args")} {
		v.markTranslated() // ssh and the host file are tegen's to set up
	}
	words := append(w.at("command").texts(), w.at("args").texts()...)
	if !slices.Equal(words, []string{"sh", "/tegen/ssh/worker.sh"}) {
		d.note(programOf(w), Changed, "the workers run sshd and nothing else")
	}
	if d.get("spec.framework").text() == job.FrameworkMPI {
		d.portOfSSH(c, w)
		d.hydraDNS(worker.at("template", "spec"))
		d.mpi(c, launcher.at("template", "spec"))
	} else {
		d.horovodrun(c, launcher.at("template", "spec"))
		d.horovodEnv(c)
	}
}

// mpiFramework is the framework of a launcher: ByteScheduler's and Horovod's start horovodrun.
func mpiFramework(c view) string {
	words := launcherWords(c)
	switch {
	case c.at("env").item("name", "USE_BYTESCHEDULER").isSet():
		return job.FrameworkByteScheduler
	case len(words) > 0 && path.Base(words[0]) == "horovodrun":
		return job.FrameworkHorovod
	}
	return job.FrameworkMPI
}

// mpiImplementations are the API's words.
var mpiImplementations = map[string]string{"Intel": job.MPIIntel, "MPICH": job.MPICH}
