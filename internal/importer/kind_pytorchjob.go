package importer

import (
	"errors"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// readPyTorchJob reads a job of Kubeflow's training operator. Where torchrun starts the processes, the master becomes
// one more worker, since its rendezvous needs none. The master stays where the program reads the variables that the
// operator sets for it, other than in options of torchrun that are read.
func readPyTorchJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	roles := spec.at("pytorchReplicaSpecs")
	worker, master := roles.at("Worker"), roles.at("Master")
	keepMaster := master.isSet() && !spec.at("elasticPolicy").isSet() && needMaster(master, worker)
	if !worker.isSet() && master.isSet() && !keepMaster {
		all := roles.mapping()
		all["Worker"] = all["Master"]
		delete(all, "Master")
		s.notes = append(s.notes, roles.note(Translated, "the only master becomes the only worker"))
		worker, master = roles.at("Worker"), view{}
	}
	if !worker.isSet() && !keepMaster {
		return nil, errors.New("it has neither a Worker nor a Master in spec.pytorchReplicaSpecs")
	}
	d := newDraft(s, o, job.FrameworkTorchelastic, job.TargetPyTorchJob, o.name)
	d.roleReplicas(worker)
	switch {
	case keepMaster:
		worker = d.countMaster(master, worker)
	case master.isSet():
		d.convertMaster(master, worker)
	}
	policy := spec.at("runPolicy")
	d.set("spec.suspend", policy.at("suspend").isTrue(), policy.at("suspend"))
	d.managedBy(policy)
	d.readUnboundedBackoff(policy)
	d.readCleanPods(policy)
	d.readEnding(policy)
	c := d.worker(worker.at("template"))
	d.torch(worker.at("template", "spec"), c, d.elasticPolicy(spec))
	switch {
	case keepMaster:
		delete(d.get("spec").mapping(), "rendezvous") // nobody reads it
	case master.isSet():
		d.reportUnsetVariables(programOf(c), "an operator that has a Master")
		d.readdress(addresses{o.name + "-worker-", "", o.name + "-worker-", "", 1},
			addresses{o.name + "-master-", "", o.name + "-worker-", "", 0})
	}
	d.autoscale(spec.at("elasticPolicy", "metrics"), c)
	d.schedulingPolicy(policy.at("schedulingPolicy"), worker.at("template", "spec", "schedulerName").text())
	d.switchOffExtras()
	return d, nil
}

// countMaster counts a master that stays among the workers, and gives the role that is read as their template.
func (d *draft) countMaster(master, worker view) view {
	d.set("spec.workers.master", true, master)
	d.set("spec.launcher", job.LauncherEntrypoint, master)
	if p := newProgram(trainingContainer(master.at("template", "spec"))); p.launcher == "torchrun" && worker.isSet() {
		d.advise(master, "torchrun's ranks are the pods' numbers, as before, and no pod that is lost is taken "+
			"back: leave out workers.master, launcher: entrypoint and torchrun's own options for a rendezvous that "+
			"takes it back")
	}
	if !worker.isSet() {
		d.set("spec.workers.replicas", int64(1), master)
		return master
	}
	if n, ok := d.get("spec.workers.replicas").number(); ok {
		d.set("spec.workers.replicas", n+1, worker.at("replicas"))
	}
	return worker
}

// convertMaster counts the master as a worker, and reports where it differs from the workers.
func (d *draft) convertMaster(master, worker view) {
	if n, ok := d.get("spec.workers.replicas").number(); ok {
		d.set("spec.workers.replicas", n+1, worker.at("replicas"))
	}
	d.note(master, Translated, "the master becomes one more worker: torchrun's rendezvous needs none, and its "+
		"ranks do not follow the pods' numbers")
	if n, ok := d.get("spec.workers.replicas").number(); ok && worker.at("replicas").isSet() {
		d.note(worker.at("replicas"), Translated, "with the master there are %d", n)
	}
	have, want := pair(master.mapping(), worker.mapping())
	for _, g := range diff(have, want, nil) {
		if steps := g.steps(); steps[0] != "replicas" {
			v := view{master.object, append(master.path[:len(master.path):len(master.path)], steps...), g.have}
			d.notes = append(d.notes, v.note(Dropped, "the master becomes a worker, and the workers lack it"))
		}
	}
	master.markTranslated()
	worker.at("replicas").markTranslated()
}

// elasticPolicy is what the operator makes variables of, by the names of torchrun's options.
func (d *draft) elasticPolicy(spec view) map[string]setting {
	fromController := map[string]setting{"nproc-per-node": {"auto", spec}}
	add := func(option, text string, from view) {
		if text != "" {
			fromController[option] = setting{text, from}
		}
	}
	policy := spec.at("elasticPolicy")
	for _, key := range []view{policy.at("nProcPerNode"), spec.at("nprocPerNode")} {
		add("nproc-per-node", key.text(), key)
	}
	low, high := policy.at("minReplicas"), policy.at("maxReplicas")
	if low.isSet() || high.isSet() {
		least, most := low.text(), high.text()
		if least == "" {
			least = most
		} else if most == "" {
			most = least
		}
		add("nnodes", least+":"+most, policy)
	}
	add("rdzv-backend", policy.at("rdzvBackend").text(), policy.at("rdzvBackend"))
	add("rdzv-id", policy.at("rdzvId").text(), policy.at("rdzvId"))
	add("max-restarts", policy.at("maxRestarts").text(), policy.at("maxRestarts"))
	if host := policy.at("rdzvHost"); host.isSet() {
		endpoint := host.text()
		if port := policy.at("rdzvPort"); port.isSet() {
			endpoint += ":" + port.text()
		}
		add("rdzv-endpoint", endpoint, host)
	}
	var pairs []string
	for _, p := range policy.at("rdzvConf").items() {
		pairs = append(pairs, p.at("key").text()+"="+p.at("value").text())
	}
	add("rdzv-conf", strings.Join(pairs, ","), policy.at("rdzvConf"))
	return fromController
}

// schedulingPolicy reads the gang of which an operator that was started with a gang scheduler's name makes a PodGroup.
func (d *draft) schedulingPolicy(policy view, scheduler string) {
	if !policy.isSet() {
		return
	}
	kind := job.GangVolcano
	if policy.at("scheduleTimeoutSeconds").isSet() || strings.HasPrefix(scheduler, "scheduler-plugins") {
		kind = job.GangCoscheduling
	}
	d.set("spec.gang.scheduler", kind, policy)
	if n, ok := policy.at("minAvailable").number(); ok {
		d.gangMinimum(n-d.otherRolePods, policy.at("minAvailable"))
	} else {
		d.set("spec.gang.minAvailable", d.get("spec.workers.replicas").value, policy)
	}
	d.set("spec.gang.queue", policy.at("queue").text(), policy.at("queue"))
	d.set("spec.gang.priority", policy.at("priorityClass").text(), policy.at("priorityClass"))
	d.seconds("spec.gang.waitTimeout", policy.at("scheduleTimeoutSeconds"))
}

// autoscale reads what an autoscaler looks at: the use of CPU alone, in percent of what workers request.
func (d *draft) autoscale(metrics, c view) {
	items := metrics.items()
	if len(items) != 1 {
		return
	}
	cpu := items[0].at("resource")
	if cpu.at("name").text() != "cpu" || cpu.at("target", "type").text() != "Utilization" {
		return
	}
	w := d.get("spec.workers")
	idle := ""
	switch {
	case c.at("resources", "requests", "cpu").text()+c.at("resources", "limits", "cpu").text() == "":
		idle = "workers request no CPU"
	case w.at("min").text() == w.at("max").text():
		idle = "as many workers train always"
	default:
		d.setNumber("spec.workers.autoscale.cpu", cpu.at("target", "averageUtilization"))
		return
	}
	d.note(metrics, Translated, "%s, so that this autoscaler never changes their number", idle)
	metrics.markTranslated()
}
