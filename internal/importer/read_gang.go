package importer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/schema/job"
)

// Keys by which pods join a gang, and jobs a queue.
const (
	koordinator  = "gang.scheduling.koordinator.sh/"
	coscheduling = "scheduling.x-k8s.io/pod-group"
	volcano      = "scheduling.k8s.io/group-name"
	kueue        = "kueue.x-k8s.io/"
)

// isGangKey says whether a label or annotation is a gang scheduler's.
func isGangKey(key string) bool {
	for _, prefix := range []string{
		koordinator, "pod-group.scheduling.sigs.k8s.io", coscheduling, volcano,
		"scheduling.volcano.sh/", "volcano.sh/task-spec", kueue + "queue-name",
		kueue + "priority-class", kueue + "managed", kueue + "pod-group-name",
		kueue + "pod-group-total-count", kueue + "retriable-in-group", kueue + "elastic-job", kueuePodIndex,
		jobSetExclusive,
	} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// gang reads what makes the pods of a template a gang, or holds them in a queue.
func (d *draft) gang(t view) {
	labels, annotations := t.at("metadata", "labels"), t.at("metadata", "annotations")
	group := t.at("spec", "schedulingGroup", "podGroupName")
	switch name := annotations.at(koordinator + "name"); {
	case name.isSet():
		d.koordinator(t, annotations, name)
	case labels.at(coscheduling).isSet():
		d.podGroup(job.GangCoscheduling, "scheduling.x-k8s.io", labels.at(coscheduling))
	case annotations.at(volcano).isSet():
		d.podGroup(job.GangVolcano, "scheduling.volcano.sh", annotations.at(volcano))
	case group.isSet():
		d.podGroup(job.GangKubernetes, "scheduling.k8s.io", group)
	default:
		d.queue(t)
	}
}

// koordinator reads the annotations of a gang of Koordinator's, which tegen's own scheduler reads too.
func (d *draft) koordinator(t, annotations, name view) {
	key := func(name string) view { return annotations.at(koordinator + name) }
	scheduler := t.at("spec", "schedulerName").text()
	if scheduler == "tegen-scheduler" {
		d.set("spec.gang.scheduler", job.GangTegen, name)
	} else {
		d.set("spec.gang.scheduler", job.GangKoordinator, name)
	}
	if scheduler == "" {
		d.note(name, Error, "the pods name no schedulerName, and the default scheduler reads no gangs: tegen names "+
			"koord-scheduler")
	}
	d.gangName(name)
	if n, err := strconv.ParseInt(key("min-available").text(), 10, 64); err == nil {
		d.gangMinimum(n, key("min-available"))
	}
	d.set("spec.gang.mode", key("mode").text(), key("mode"))
	d.set("spec.gang.matchPolicy", key("match-policy").text(), key("match-policy"))
	if wait, err := time.ParseDuration(key("waiting-time").text()); err == nil {
		d.set("spec.gang.waitTimeout", durationText(int64(wait.Seconds())), key("waiting-time"))
	}
	var groups []string
	if json.Unmarshal([]byte(key("groups").text()), &groups) == nil {
		d.set("spec.gang.groups", groups, key("groups"))
	}
	d.gatherTopology(annotations)
}

// gangMinimum sets the minimum of the gang. The default is the minimum of workers, whatever that is.
func (d *draft) gangMinimum(n int64, from view) { d.set("spec.gang.minAvailable", n, from) }

func (d *draft) gangName(name view) {
	text := name.text()
	if d.otherRolePods > 0 { // each role is a gang of its own
		text = strings.TrimSuffix(text, "-worker")
	}
	if text != d.name() {
		d.set("spec.gang.name", text, name)
	}
}

// podGroup reads the object that says how many pods of a gang are placed together.
func (d *draft) podGroup(scheduler, group string, name view) {
	d.set("spec.gang.scheduler", scheduler, name)
	d.gangName(name)
	o := d.stream.find(group, "PodGroup", d.namespace(), name.text())
	if o == nil {
		d.note(name, Dropped, "the PodGroup is not in the input: its minimum is taken for that of the workers")
		if scheduler == job.GangKubernetes {
			d.set("spec.kubernetesVersion", "1.36", name) // the first that has such groups
		}
		return
	}
	spec := o.view().at("spec")
	least := spec.at("minMember")
	if scheduler == job.GangKubernetes {
		least = spec.at("schedulingPolicy", "gang", "minCount")
		version := map[string]string{"v1alpha2": "1.36", "v1beta1": "1.37"}[o.gvk.Version]
		d.set("spec.kubernetesVersion", version, o.view().at("apiVersion"))
		for _, constraint := range spec.at("schedulingConstraints", "topology").items() {
			d.setTopology(constraint.at("key").text(), job.TopologyRequired, 0, constraint)
		}
	}
	d.volcanoTopology(spec.at("networkTopology"), 0)
	if n, ok := least.number(); ok {
		d.gangMinimum(n-d.otherRolePods, least)
	}
	d.seconds("spec.gang.waitTimeout", spec.at("scheduleTimeoutSeconds"))
	d.set("spec.gang.queue", spec.at("queue").text(), spec.at("queue"))
	if class := spec.at("priorityClassName"); class.isSet() && !d.get("spec.placement.priorityClass").isSet() {
		d.set("spec.gang.priority", class.text(), class)
	}
}

// queue reads Kueue's labels, of the workload, or of bare pods, which are a group of their own name.
func (d *draft) queue(t view) {
	labels := view{}
	for _, o := range d.workload {
		if l := o.view().at("metadata", "labels"); l.at(kueue + "queue-name").isSet() {
			labels = l
		}
	}
	queue := labels.at(kueue + "queue-name")
	if !queue.isSet() {
		return
	}
	d.set("spec.gang.scheduler", job.GangKueue, queue)
	d.set("spec.gang.queue", queue.text(), queue)
	d.set("spec.gang.priority", labels.at(kueue+"priority-class").text(), labels.at(kueue+"priority-class"))
	if name := t.at("metadata", "labels", kueue+"pod-group-name"); name.isSet() {
		d.gangName(name)
	}
	d.set("spec.gang.minAvailable", d.get("spec.workers.replicas").value, queue)
	delete(d.get("spec").mapping(), "suspend") // Kueue's own means
	d.origin["spec.suspend"].markTranslated()
	d.kueueTopology(t)
	d.dropQueueOfPods(d.workload[0].view().at("spec"), labels)
}

// ownControllers are what managedBy says where nobody takes the controller's place.
var ownControllers = []string{
	"kubernetes.io/job-controller", "jobset.sigs.k8s.io/jobset-controller", "trainer.kubeflow.org/trainjob-controller",
	"kubeflow.org/training-operator", "kubeflow.org/mpi-operator",
}

// managedBy reads who starts a job in place of its controller.
func (d *draft) managedBy(spec view) {
	if v := spec.at("managedBy"); !slices.Contains(ownControllers, v.text()) {
		d.set("spec.managedBy", v.text(), v)
	}
}
