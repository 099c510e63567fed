package intake

import "github.com/tegen-dev/tegen/schema"

// readVCJob reads Volcano's own Job: its task that trains. Any other is not kept.
func readVCJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	task := trainingItem(spec.at("tasks"))
	if !task.given() {
		return nil, notTraining
	}
	d := newDraft(s, o, schema.FrameworkTorchelastic, schema.TargetVCJob, unhashed(o))
	d.set("spec.workers.replicas", int64(1), task)
	if n, ok := task.at("replicas").number(); ok {
		d.set("spec.workers.replicas", n, task.at("replicas"))
	}
	d.vcFailure(spec)
	d.keptFor(spec)
	c := d.worker(task.at("template"))
	d.torch(task.at("template", "spec"), c)
	d.vcGang(spec)
	d.surroundings()
	return d, nil
}

// vcFailure reads how often pods are replaced: with maxRetry failures the job fails, 3 where nobody says otherwise.
func (d *draft) vcFailure(spec view) {
	retries, ok := spec.at("maxRetry").number()
	if !ok || retries == 0 {
		retries = 3
	}
	d.set("spec.failure.restarts", max(retries-1, 0), spec.at("maxRetry"))
	var codes []any
	for _, policy := range spec.at("policies").items() {
		if code := policy.at("exitCode"); code.given() && policy.at("action").text() == "TerminateJob" {
			codes = append(codes, code.value)
		}
	}
	if len(codes) > 0 {
		d.set("spec.failure.fatalExitCodes", codes, spec.at("policies"))
	}
}

// vcGang reads the gang that Volcano makes of every Job. Its scheduler is volcano where nobody says otherwise, and its
// minimum all pods.
func (d *draft) vcGang(spec view) {
	scheduler := spec.at("schedulerName").text()
	if scheduler != "" && scheduler != "volcano" {
		d.set("spec.placement.scheduler", scheduler, spec.at("schedulerName"))
	}
	d.set("spec.gang.scheduler", schema.GangVolcano, spec)
	d.set("spec.gang.queue", spec.at("queue").text(), spec.at("queue"))
	d.set("spec.gang.minAvailable", d.get("spec.workers.replicas").value, spec)
	if n, ok := spec.at("minAvailable").number(); ok {
		d.set("spec.gang.minAvailable", n, spec.at("minAvailable"))
	}
	if class := spec.at("priorityClassName"); class.given() {
		d.set("spec.placement.priorityClass", class.text(), class)
	}
	if v := d.get("spec.placement"); v.at("scheduler").text() == "volcano" {
		delete(v.mapping(), "scheduler")
	}
}
