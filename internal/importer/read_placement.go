package importer

import (
	"reflect"
	"slices"

	"github.com/tegen-dev/tegen/internal/names"
)

func (d *draft) placement(pod view) {
	d.set("spec.placement.scheduler", pod.at("schedulerName").text(), pod.at("schedulerName"))
	for field, key := range map[string]string{
		"priorityClass":    "priorityClassName",
		"preemptionPolicy": "preemptionPolicy", "runtimeClass": "runtimeClassName",
	} {
		d.set("spec.placement."+field, pod.at(key).text(), pod.at(key))
	}
	for _, key := range sortedKeys(pod.at("nodeSelector").mapping()) {
		v := pod.at("nodeSelector", key)
		d.put("spec.placement.nodeSelector", key, v.text(), v)
	}
	for _, t := range pod.at("tolerations").items() {
		if d.onlyWorkersTolerate(t) {
			continue // those of placement are every pod's; podTemplate takes what is left
		}
		d.add("spec.placement.tolerations", tolerationOf(t), t)
	}
	if v := pod.at("hostNetwork"); v.isTrue() {
		d.set("spec.network.host", true, v)
	}
}

func tolerationOf(t view) tree {
	item := tree{}
	for field, key := range map[string]string{
		"key": "key", "operator": "operator", "value": "value",
		"effect": "effect", "seconds": "tolerationSeconds",
	} {
		if v := t.at(key); v.isSet() && v.value != "" {
			item[field] = v.value
		}
	}
	return item
}

// onlyWorkersTolerate says whether a store that tegen rendered for the job lacks a toleration of its workers.
func (d *draft) onlyWorkersTolerate(toleration view) bool {
	for _, o := range d.stream.objects {
		v := o.view()
		if !o.is("apps", "StatefulSet") || o.namespace != d.namespace() ||
			v.at("metadata", "labels", names.LabelJob).text() != d.name() {
			continue
		}
		if !slices.ContainsFunc(v.at("spec", "template", "spec", "tolerations").items(), func(t view) bool {
			return reflect.DeepEqual(t.value, toleration.value)
		}) {
			return true
		}
	}
	return false
}

// nodesFor reads on which nodes the pods of a role may be.
func (d *draft) nodesFor(at string, pod view) {
	for _, key := range sortedKeys(pod.at("nodeSelector").mapping()) {
		v := pod.at("nodeSelector", key)
		d.put(at+".nodeSelector", key, v.text(), v)
	}
	for _, t := range pod.at("tolerations").items() {
		d.add(at+".tolerations", tolerationOf(t), t)
	}
}
