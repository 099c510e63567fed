package intake

import (
	"errors"
	"strings"

	"github.com/tegen-dev/tegen/schema"
)

// readPyTorchJob reads a job of Kubeflow's training operator. A master becomes one more worker: with torchrun's
// rendezvous none is special.
func readPyTorchJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	roles := spec.at("pytorchReplicaSpecs")
	if !roles.at("Worker").given() && roles.at("Master").given() {
		d := roles.mapping()
		d["Worker"] = d["Master"]
		delete(d, "Master")
		s.notes = append(s.notes, roles.note(Moved, "the only master becomes the only worker"))
	}
	worker := roles.at("Worker")
	if !worker.given() {
		return nil, errors.New("it has neither a Worker nor a Master in spec.pytorchReplicaSpecs")
	}
	d := newDraft(s, o, schema.FrameworkTorchelastic, schema.TargetPyTorchJob, o.name)
	d.roleReplicas(worker)
	if master := roles.at("Master"); master.given() {
		d.master(master, worker)
	}
	policy := spec.at("runPolicy")
	d.set("spec.suspend", policy.at("suspend").isTrue(), policy.at("suspend"))
	d.backoff(policy)
	d.ending(policy)
	c := d.worker(worker.at("template"))
	d.torch(worker.at("template", "spec"), c, d.elasticPolicy(spec))
	d.schedulingPolicy(policy.at("schedulingPolicy"), worker.at("template", "spec", "schedulerName").text())
	d.surroundings()
	return d, nil
}

// master counts the master as a worker, and tells what in it is not like the workers.
func (d *draft) master(master, worker view) {
	n, _ := d.get("spec.workers.replicas").number()
	d.set("spec.workers.replicas", n+1, worker.at("replicas"))
	d.note(master, Moved, "the master becomes one more worker: torchrun's rendezvous needs none")
	have, want := pair(master.mapping(), worker.mapping())
	for _, g := range diff(have, want, nil) {
		if steps := g.steps(); steps[0] != "replicas" {
			v := view{master.object, append(master.path[:len(master.path):len(master.path)], steps...), g.have}
			d.notes = append(d.notes, v.note(NotKept, "the master becomes a worker, and the workers have it not"))
		}
	}
	master.moved()
	worker.at("replicas").moved()
}

// elasticPolicy is what the operator makes variables of, by the names of torchrun's options.
func (d *draft) elasticPolicy(spec view) map[string]setting {
	told := map[string]setting{"nproc-per-node": {"auto", spec}}
	tell := func(option, text string, from view) {
		if text != "" {
			told[option] = setting{text, from}
		}
	}
	policy := spec.at("elasticPolicy")
	for _, key := range []view{policy.at("nProcPerNode"), spec.at("nprocPerNode")} {
		tell("nproc-per-node", key.text(), key)
	}
	low, high := policy.at("minReplicas"), policy.at("maxReplicas")
	if low.given() || high.given() {
		least, most := low.text(), high.text()
		if least == "" {
			least = most
		} else if most == "" {
			most = least
		}
		tell("nnodes", least+":"+most, policy)
	}
	tell("rdzv-backend", policy.at("rdzvBackend").text(), policy.at("rdzvBackend"))
	tell("rdzv-id", policy.at("rdzvId").text(), policy.at("rdzvId"))
	tell("max-restarts", policy.at("maxRestarts").text(), policy.at("maxRestarts"))
	if host := policy.at("rdzvHost"); host.given() {
		endpoint := host.text()
		if port := policy.at("rdzvPort"); port.given() {
			endpoint += ":" + port.text()
		}
		tell("rdzv-endpoint", endpoint, host)
	}
	var pairs []string
	for _, p := range policy.at("rdzvConf").items() {
		pairs = append(pairs, p.at("key").text()+"="+p.at("value").text())
	}
	tell("rdzv-conf", strings.Join(pairs, ","), policy.at("rdzvConf"))
	return told
}

// schedulingPolicy reads the gang of which an operator that was started with a gang scheduler's name makes a PodGroup.
func (d *draft) schedulingPolicy(policy view, scheduler string) {
	if !policy.given() {
		return
	}
	kind := schema.GangVolcano
	if policy.at("scheduleTimeoutSeconds").given() || strings.HasPrefix(scheduler, "scheduler-plugins") {
		kind = schema.GangCoscheduling
	}
	d.set("spec.gang.scheduler", kind, policy)
	if n, ok := policy.at("minAvailable").number(); ok {
		d.least(n-d.others, policy.at("minAvailable"))
	} else {
		d.set("spec.gang.minAvailable", d.get("spec.workers.replicas").value, policy)
	}
	d.set("spec.gang.queue", policy.at("queue").text(), policy.at("queue"))
	d.set("spec.gang.priority", policy.at("priorityClass").text(), policy.at("priorityClass"))
	d.seconds("spec.gang.waitTimeout", policy.at("scheduleTimeoutSeconds"))
}
