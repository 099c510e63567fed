package importer

import (
	"slices"
	"strings"
)

// What Kueue (v0.19.2) writes into the pods' templates that it admits, and into pods.
var (
	admissionKeys = []string{
		kueue + "workload", kueue + "workload-slice-name", kueue + "cluster-queue-name", kueue + "local-queue-name",
		kueue + "podset", kueue + "role-hash", kueue + "managed",
	}
	admissionGates = []string{kueue + "admission", kueue + "elastic-job", kueue + "topology"}
)

// dropAdmission drops what Kueue writes for itself, wherever in an object pods are described. What a flavor gives them,
// such as a node selector, cannot be told from the author's own and stays.
func dropAdmission(value any) {
	switch x := value.(type) {
	case []any:
		for _, item := range x {
			dropAdmission(item)
		}
	case tree:
		v := view{value: x}
		for _, list := range []string{"labels", "annotations"} {
			for _, key := range admissionKeys {
				delete(v.at("metadata", list).mapping(), key)
			}
		}
		dropItems(v.at("metadata").mapping(), "finalizers", func(item view) bool {
			return item.text() == kueue+"managed"
		})
		dropItems(x, "schedulingGates", func(item view) bool {
			return slices.Contains(admissionGates, item.at("name").text())
		})
		dropItems(x, "runtimePatches", func(item view) bool { // of a TrainJob
			return item.at("manager").text() == kueue+"manager"
		})
		for key, child := range x {
			if key != "metadata" {
				dropAdmission(child)
			}
		}
	}
}

// dropItems drops items of a list, and the list with the last of them.
func dropItems(object tree, key string, drops func(view) bool) {
	list := listOf(object[key])
	left := slices.DeleteFunc(slices.Clone(list), func(item any) bool { return drops(view{value: item}) })
	switch {
	case len(left) == len(list):
	case len(left) == 0:
		delete(object, key)
	default:
		object[key] = left
	}
}

// isQueued says whether an object waits in a queue of Kueue, or is a pod of it.
func (o *object) isQueued() bool {
	for key := range o.view().at("metadata", "labels").mapping() {
		if strings.HasPrefix(key, kueue) {
			return true
		}
	}
	return false
}

// dropQueueOfPods drops the queue and the priority of an object from the pods that it makes: Kueue asks no pod whose
// owner has a queue for either (v0.19.2, pkg/controller/jobs/pod/pod_webhook.go: FindAncestorJobManagedByKueue).
func (d *draft) dropQueueOfPods(v, labels view) {
	own := v.at("metadata", "labels")
	for _, key := range []string{kueue + "queue-name", kueue + "priority-class"} {
		if said := own.at(key); said.isSet() && said.text() == labels.at(key).text() {
			d.note(said, Translated, "Kueue goes by this label of the %s, and passes over its pods",
				d.workload[0].gvk.Kind)
			delete(own.mapping(), key)
		}
	}
	for _, item := range v.items() {
		d.dropQueueOfPods(item, labels)
	}
	for _, key := range sortedKeys(v.mapping()) {
		d.dropQueueOfPods(v.at(key), labels)
	}
}
