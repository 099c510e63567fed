package importer

import (
	"fmt"
	"slices"

	"github.com/tegen-dev/tegen/schema/job"
)

// readTrainJob reads a TrainJob of Kubeflow Trainer and the runtime that it runs on, of the namespace or of the
// cluster, which has its pods' template.
func readTrainJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	name, kind := spec.at("runtimeRef", "name").text(), spec.at("runtimeRef", "kind").text()
	namespace := o.namespace
	if kind == "" {
		kind = "ClusterTrainingRuntime" // the API's default
	}
	if kind == "ClusterTrainingRuntime" {
		namespace = ""
	}
	shared := s.find(o.gvk.Group, kind, namespace, name)
	var runtime *object
	if shared != nil {
		runtime = shared.copy() // several may run on it, each with words of its own
	} else {
		runtime = s.runtimeNotGiven(o, kind, name)
		shared = runtime
	}
	items := runtime.view().at("spec", "template", "spec", "replicatedJobs").items()
	if len(items) == 0 {
		return nil, fmt.Errorf("the %s %s that it runs on has no spec.template.spec.replicatedJobs", kind, name)
	}
	if !s.runtimeKept(o, runtime) {
		o.reported, shared.reported, s.invalid = true, true, true
		return nil, errNotTraining
	}
	child := items[trainingIndex(items)]
	name = o.name
	if runtime.name == o.name { // as tegen renders them: the hash stands on the runtime
		name = unhashed(runtime)
	}
	template, policy := child.at("template", "spec", "template"), runtime.view().at("spec", "mlPolicy")
	framework := job.FrameworkTorchelastic
	if policy.at("jax").isSet() || !policy.at("torch").isSet() {
		framework = meetingFramework(runtime, template)
	}
	if policy.at("jax").isSet() {
		framework = job.FrameworkJAX
	}
	d := newDraft(s, runtime, framework, job.TargetTrainJob, name)
	d.addWorkload(o)
	shared.draft = d
	d.policy(policy)
	d.set("metadata.namespace", o.namespace, o.view().at("metadata", "namespace"))
	for _, field := range []string{"labels", "annotations"} {
		d.keys(o.view().at("metadata", field), "metadata."+field)
	}
	d.patches(spec, child)
	d.jobSpec(child.at("template", "spec"))
	d.nodesOf(spec, policy, o)
	d.set("spec.suspend", spec.at("suspend").isTrue(), spec.at("suspend"))
	d.managedBy(spec)
	d.seconds("spec.failure.deadline", spec.at("activeDeadlineSeconds"))
	d.podGroupPolicy(runtime.view().at("spec"))
	d.override(template, spec.at("trainer"))
	c := d.worker(template)
	d.trainer(template.at("spec"), c)
	d.switchOffExtras()
	return d, nil
}

// nodesOf reads how many nodes train, and how many processes on each; without a number Trainer counts accelerators.
func (d *draft) nodesOf(spec, policy view, o *object) {
	for _, v := range []view{policy.at("numNodes"), spec.at("trainer", "numNodes")} {
		d.setNumber("spec.workers.replicas", v)
	}
	if own, shared := spec.at("trainer", "numNodes"), policy.at("numNodes"); own.isSet() && shared.isSet() &&
		own.text() != shared.text() {
		d.note(shared, Translated, "the TrainJob's own number, %s, stands for it", own.text())
		shared.markTranslated()
	}
	if d.get("spec.framework").text() == job.FrameworkTorchelastic {
		d.processesOf(spec.at("trainer", "numProcPerNode"), policy.at("torch", "numProcPerNode"))
	}
	if runtime := d.workload[0].view(); d.workload[0].name != o.name || d.workload[0].gvk.Kind != "TrainingRuntime" {
		d.note(spec.at("runtimeRef"), Translated, "the runtime becomes a TrainingRuntime of the job's own")
		spec.at("runtimeRef").markTranslated()
		d.keptAs(runtime.at("kind"), "the job has a TrainingRuntime of its own")
		d.keptAs(runtime.at("metadata", "name"), "the job has a TrainingRuntime of its own")
	}
}

// processesOf reads the processes of each node: from the TrainJob, or else from its runtime.
func (d *draft) processesOf(own, shared view) {
	v := orElse(own, shared)
	n, isNumber := v.number()
	switch word := v.text(); {
	case isNumber:
		d.set("spec.workers.processes", n, v)
	case word == "cpu" || word == "gpu":
		d.set("spec.workers.processes", word, v)
	default:
		d.set("spec.workers.processes", "auto", v)
	}
	if own.isSet() && shared.isSet() && own.text() != shared.text() {
		d.note(shared, Translated, "the TrainJob's own number, %s, stands for it", own.text())
	}
	shared.markTranslated()
}

// inRuntime is what becomes of a TrainJob's words about its pods.
const inRuntime = "the job's own runtime has it in its pods"

// override puts what a TrainJob says of its pods into the runtime's template, where tegen writes it.
func (d *draft) override(template, trainer view) {
	c := trainingContainer(template.at("spec"))
	if c.mapping() == nil {
		return
	}
	for _, field := range []string{"image", "command", "args", "resourcesPerNode"} {
		v := trainer.at(field)
		if !v.isSet() {
			continue
		}
		if field == "resourcesPerNode" {
			c.mapping()["resources"] = clone(v.value)
		} else {
			c.mapping()[field] = clone(v.value)
		}
		d.keptAs(v, inRuntime)
	}
	for _, e := range trainer.at("env").items() {
		d.overrideVariable(c, e)
	}
	d.keptAs(trainer.at("env"), inRuntime)
}

// overrideVariable puts a variable of the TrainJob in the place of the runtime's of that name, or behind all of those.
func (d *draft) overrideVariable(c, e view) {
	shared := c.at("env").item("name", e.at("name").text())
	list := listOf(c.mapping()["env"])
	i := slices.IndexFunc(list, func(item any) bool {
		return shared.isSet() && (view{value: item}).at("name").text() == e.at("name").text()
	})
	if i < 0 {
		c.mapping()["env"] = append(list, clone(e.value))
		return
	}
	if line(shared.value) != nil && string(line(shared.value)) != string(line(e.value)) {
		d.note(shared, Translated, "the TrainJob's own %s stands for it", e.at("name").text())
	}
	list[i] = clone(e.value)
}

// podGroupPolicy reads the gang that Trainer makes, of all nodes.
func (d *draft) podGroupPolicy(spec view) {
	policy := spec.at("podGroupPolicy")
	d.volcanoTopology(policy.at("volcano", "networkTopology"), 0)
	replicas := d.get("spec.workers.replicas").value
	if v := policy.at("coscheduling"); v.isSet() {
		d.set("spec.gang.scheduler", job.GangCoscheduling, v)
		d.set("spec.gang.minAvailable", replicas, v)
		seconds, ok := v.at("scheduleTimeoutSeconds").number()
		if !ok {
			seconds = 60 // the API's default
		}
		d.set("spec.gang.waitTimeout", durationText(seconds), v)
	}
	if v := policy.at("volcano"); v.isSet() {
		queue := spec.at("template", "metadata", "annotations", "scheduling.volcano.sh/queue-name")
		d.set("spec.gang.scheduler", job.GangVolcano, v)
		d.set("spec.gang.minAvailable", replicas, v)
		d.set("spec.gang.queue", queue.text(), queue)
	}
}

// policy reads the port of JAX's coordinator, which is Trainer's own.
func (d *draft) policy(policy view) {
	if jax := policy.at("jax"); jax.isSet() {
		d.set("spec.jax.port", int64(29500), jax)
		d.note(jax, Translated, "the runtime sets the same variables itself")
		jax.markTranslated()
	}
}
