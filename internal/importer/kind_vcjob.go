package importer

import (
	"errors"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// volcanoDefaultQueue is the queue that Volcano's webhook puts a job into that names none.
const volcanoDefaultQueue = "default"

// readVCJob reads Volcano's own Job: its task that trains is the workers, and each other a group beside them.
func readVCJob(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	task, groups, dropped := s.groupItems(spec.at("tasks"))
	if !task.isSet() {
		return nil, errors.New("it has no spec.tasks")
	}
	d := newDraft(s, o, job.FrameworkTorchelastic, job.TargetVCJob, unhashed(o))
	d.unrenderedPods = dropped
	for _, item := range groups {
		d.group(item, item.at("template"))
	}
	d.set("spec.workers.replicas", int64(1), task)
	d.setNumber("spec.workers.replicas", task.at("replicas"))
	d.vcFailure(spec, task)
	d.readTTL(spec)
	c := d.worker(task.at("template"))
	d.torch(task.at("template", "spec"), c, nil)
	d.vcOrder(spec, task)
	d.readdress(addresses{o.name + "-" + task.at("name").text() + "-", o.name, d.name() + "-worker-", d.name(), 0})
	for _, item := range groups {
		name := item.at("name").text()
		d.readdress(addresses{o.name + "-" + name + "-", o.name, d.name() + "-" + groupNameOf(name) + "-", d.name(), 0})
		d.alwaysRestarts(item.at("template", "spec"))
	}
	d.vcHosts(task, groups)
	d.vcPlugins(spec.at("plugins"), task, groups, programOf(c))
	d.vcGang(spec, task, task.at("template", "spec", "schedulerName"))
	d.vcTopology(spec, task)
	d.switchOffExtras()
	d.vcIsolation(spec.at("plugins", "svc"))
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
	never, inPlace := pod.at("restartPolicy").text() == "Never", pod.at("restartPolicy").text() == "OnFailure"
	if inPlace {
		d.set("spec.failure.inPlace", true, pod.at("restartPolicy"))
	}
	if never {
		d.unusedRetry(task.at("maxRetry"), "it counts containers that the kubelet starts again, which are none")
	}
	d.alwaysRestarts(pod)
	switch restarts := slices.ContainsFunc(all, restartsPods); {
	case retries > 1 && slices.ContainsFunc(spec.at("policies").items(), restartsAll):
		d.set("spec.failure.restartAll", retries-1, spec.at("maxRetry"))
	case restarts || !never && !inPlace: // to make them again is the nearest
		d.set("spec.failure.restarts", max(retries-1, 0), spec.at("maxRetry"))
	case retries > 1 && slices.ContainsFunc(spec.at("policies").items(), restartsLost) && (never || inPlace):
		d.set("spec.failure.restartAll", retries-1, spec.at("maxRetry"))
		d.set("spec.failure.restartAllOn", job.OnEviction, spec.at("policies"))
	case slices.ContainsFunc(spec.at("tasks").items(), func(t view) bool { return t.at("dependsOn").isSet() }) &&
		!slices.ContainsFunc(spec.at("tasks").items(), completes):
		d.set("spec.failure.restarts", int64(0), spec)
		d.note(spec, Changed, "without a policy the others go on when a pod has failed: a TrainingJob with an order "+
			"fails, since Volcano would take it for complete")
	default:
		d.set("spec.failure.restartsPerWorker", int64(0), spec)
		if !slices.ContainsFunc(all, func(policy view) bool {
			return strings.HasPrefix(policy.at("action").text(),
				"Restart")
		}) {
			d.unusedRetry(spec.at("maxRetry"), "without a policy that restarts pods it counts nothing")
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

// unusedRetry says why a maxRetry has no effect, where it is not the one that Volcano's webhook sets.
func (d *draft) unusedRetry(v view, why string) {
	if v.text() == "3" {
		why = ""
	}
	d.keptAs(v, why)
}

// alwaysRestarts tells of pods that never end by themselves.
func (d *draft) alwaysRestarts(pod view) {
	if !pod.at("restartPolicy").isSet() {
		d.note(pod.at("restartPolicy"), Changed,
			"without a restartPolicy the kubelet starts what ended again, for ever: a TrainingJob's pods that failed "+
				"are made again, and counted")
	}
}

// restartsLost says whether a policy has all pods made anew when one was evicted or deleted.
func restartsLost(policy view) bool {
	events := append(policy.at("events").texts(), policy.at("event").text())
	return policy.at("action").text() == "RestartJob" && slices.Contains(events, "PodEvicted")
}

// completes says whether a task completes the job when it has ended well.
func completes(task view) bool {
	return slices.ContainsFunc(task.at("policies").items(), completesJob)
}

func completesJob(policy view) bool {
	return policy.at("event").text() == "TaskCompleted" && policy.at("action").text() == "CompleteJob"
}

// restartsAll says whether a policy has all pods made anew when one has failed.
func restartsAll(policy view) bool {
	return policy.at("action").text() == "RestartJob" && restartsPods(policy)
}

// vcOrder reads which tasks wait for others, and which complete the job when they have ended well.
func (d *draft) vcOrder(spec, train view) {
	complete := 0
	for _, task := range spec.at("tasks").items() {
		on := task.at("dependsOn", "name")
		d.after(task, train.at("name").text(), on.items(), job.WhenReady)
		if i := slices.Index(on.texts(), train.at("name").text()); i >= 0 && on.texts()[i] != job.RoleWorker {
			d.note(on.items()[i], Translated, "these pods are those of group worker")
		}
		on.markTranslated()
		for _, policy := range task.at("policies").items() {
			if completesJob(policy) {
				d.add("spec.success.groups", d.groupOf(task.at("name").text(), train.at("name").text()), policy)
				complete++
			}
		}
	}
	if complete > 1 {
		d.set("spec.success.when", job.WhenAny, spec.at("tasks"))
	}
}

// restartsPods says whether a policy has pods that failed made again.
func restartsPods(policy view) bool {
	events := append(policy.at("events").texts(), policy.at("event").text())
	failed := slices.Contains(events, "PodFailed") || slices.Contains(events, "*") || policy.at("exitCode").isSet()
	return failed && strings.HasPrefix(policy.at("action").text(), "Restart")
}

// vcIsolation reads whether Volcano's plugin for Services shuts out other pods, as a NetworkPolicy of tegen's does in
// its place.
func (d *draft) vcIsolation(svc view) {
	if svc.isSet() && !slices.Contains(svc.texts(), "--disable-network-policy=true") {
		delete(d.get("spec.network").mapping(), "policy")
	}
}

// vcGang reads the gang that Volcano makes of every Job. Its minimum is all pods by default. A gang of the fewest
// workers that train, in no queue, is what every Job renders.
func (d *draft) vcGang(spec, task, scheduler view) {
	if name := spec.at("schedulerName"); name.text() != "volcano" {
		d.set("spec.placement.scheduler", name.text(), name)
	}
	if class := spec.at("priorityClassName"); class.isSet() {
		d.set("spec.placement.priorityClass", class.text(), class)
	}
	least := d.vcLeast(spec, task)
	fewest := d.vcFewest()
	queue := spec.at("queue")
	if queue.text() == volcanoDefaultQueue {
		queue.markTranslated()
		queue = view{}
	}
	if fewest == least && !queue.isSet() && !scheduler.isSet() {
		return
	}
	d.set("spec.gang.scheduler", job.GangVolcano, spec)
	if queue.isSet() {
		d.set("spec.gang.queue", queue.text(), queue)
	}
	d.set("spec.gang.minAvailable", least, spec.at("minAvailable"))
}
