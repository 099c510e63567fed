package importer

import (
	"errors"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema"
)

// volcanoDefaultQueue is the queue that Volcano's webhook puts a job into that names none.
const volcanoDefaultQueue = "default"

// readVCJob reads Volcano's own Job: its task that trains. Any other is dropped.
func readVCJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	task, others := s.trainingItem(spec.at("tasks"))
	if !task.isSet() {
		return nil, errors.New("it has no spec.tasks")
	}
	d := newDraft(s, o, schema.FrameworkTorchelastic, schema.TargetVCJob, unhashed(o))
	d.unrenderedPods = others
	d.set("spec.workers.replicas", int64(1), task)
	d.setNumber("spec.workers.replicas", task.at("replicas"))
	d.vcFailure(spec, task)
	d.readTTL(spec)
	c := d.worker(task.at("template"))
	d.torch(task.at("template", "spec"), c, nil)
	if plugin := spec.at("plugins", "pytorch"); plugin.isSet() {
		d.reportUnsetVariables(programOf(c), "the plugin pytorch")
	}
	d.readdress(addresses{o.name + "-" + task.at("name").text() + "-", o.name, d.name() + "-worker-", d.name(), 0})
	d.vcGang(spec, task.at("template", "spec", "schedulerName"))
	d.switchOffExtras()
	return d, nil
}

// vcFailure reads how often pods are replaced: the job fails with maxRetry failures, 3 by default. Without a policy
// that restarts pods, Volcano leaves failed pods as they are, and the others go on.
func (d *draft) vcFailure(spec, task view) {
	all := slices.Concat(task.at("policies").items(), spec.at("policies").items())
	retries, ok := spec.at("maxRetry").number()
	if !ok || retries == 0 {
		retries = 3
	}
	pod := task.at("template", "spec")
	inPlace := pod.at("restartPolicy").text() != "Never" // by the kubelet: to make them again is the nearest
	if !inPlace {
		task.at("maxRetry").markTranslated() // of containers that the kubelet starts again, which are none
	}
	if !pod.at("restartPolicy").isSet() {
		d.note(pod, Changed, "without a restartPolicy the kubelet starts what ended again, for ever: a TrainingJob's "+
			"pods that failed are made again, and counted")
	}
	switch restarts := slices.ContainsFunc(all, restartsPods); {
	case restarts || inPlace:
		d.set("spec.failure.restarts", max(retries-1, 0), spec.at("maxRetry"))
	default:
		d.set("spec.failure.restartsPerWorker", int64(0), spec)
		if !slices.ContainsFunc(all, func(policy view) bool {
			return strings.HasPrefix(policy.at("action").text(),
				"Restart")
		}) {
			spec.at("maxRetry").markTranslated() // which counts nothing then
		}
	}
	var codes []any
	for _, policy := range spec.at("policies").items() {
		if code := policy.at("exitCode"); code.isSet() && policy.at("action").text() == "TerminateJob" {
			codes = append(codes, code.value)
		}
	}
	if len(codes) > 0 {
		d.set("spec.failure.fatalExitCodes", codes, spec.at("policies"))
	}
}

// restartsPods says whether a policy has pods that failed made again.
func restartsPods(policy view) bool {
	events := append(policy.at("events").texts(), policy.at("event").text())
	failed := slices.Contains(events, "PodFailed") || slices.Contains(events, "*") || policy.at("exitCode").isSet()
	return failed && strings.HasPrefix(policy.at("action").text(), "Restart")
}

// vcGang reads the gang that Volcano makes of every Job. Its minimum is all pods by default. A gang of the fewest
// workers that train, in no queue, is what every Job renders.
func (d *draft) vcGang(spec, scheduler view) {
	if name := spec.at("schedulerName"); name.text() != "volcano" {
		d.set("spec.placement.scheduler", name.text(), name)
	}
	if class := spec.at("priorityClassName"); class.isSet() {
		d.set("spec.placement.priorityClass", class.text(), class)
	}
	least, ok := spec.at("minAvailable").number()
	share := ok && d.unrenderedPods > 0 // it counts the pods of all tasks
	if share {
		least = max(least-d.unrenderedPods, 1)
		spec.at("minAvailable").markTranslated()
	}
	if !ok {
		least, _ = d.get("spec.workers.replicas").number()
	}
	fewest := d.get("spec.workers.min")
	if !fewest.isSet() {
		fewest = d.get("spec.workers.replicas")
	}
	// A launcher that waits for more is the source's own mistake, which the schema finds.
	if n, _ := fewest.number(); least < n && (d.unrenderedPods > 0 ||
		d.get("spec.launcher").text() == schema.LauncherEntrypoint) {
		without := ""
		if share {
			without = "without the pods of other tasks "
		}
		d.note(spec.at("minAvailable"), Changed,
			"%s%d of %d workers are not enough for a TrainingJob that is not elastic: all are placed together", without,
			least, n)
		spec.at("minAvailable").markTranslated()
		least = n
	} else if share {
		d.note(spec.at("minAvailable"), Translated,
			"it counts the pods of all tasks: without the others %d of the workers are left of it", least)
	}
	queue := spec.at("queue")
	if queue.text() == volcanoDefaultQueue {
		queue.markTranslated()
		queue = view{}
	}
	if n, _ := fewest.number(); n == least && !queue.isSet() && !scheduler.isSet() {
		return
	}
	d.set("spec.gang.scheduler", schema.GangVolcano, spec)
	if queue.isSet() {
		d.set("spec.gang.queue", queue.text(), queue)
	}
	d.set("spec.gang.minAvailable", least, spec.at("minAvailable"))
}
