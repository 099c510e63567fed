package importer

import (
	"reflect"
	"slices"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

func (d *draft) placement(pod view) {
	d.set("spec.placement.scheduler", pod.at("schedulerName").text(), pod.at("schedulerName"))
	for field, key := range map[string]string{
		"priorityClass":    "priorityClassName",
		"preemptionPolicy": "preemptionPolicy", "runtimeClass": "runtimeClassName",
	} {
		d.set("spec.placement."+field, pod.at(key).text(), pod.at(key))
	}
	spot := d.spot(pod)
	for _, key := range sortedKeys(pod.at("nodeSelector").mapping()) {
		v := pod.at("nodeSelector", key)
		if spot != nil && key == spot.Key {
			continue
		}
		d.put("spec.placement.nodeSelector", key, v.text(), v)
	}
	for _, t := range pod.at("tolerations").items() {
		if spot != nil && spot.Toleration() != nil && t.at("key").text() == spot.Key {
			continue
		}
		if d.onlyWorkersTolerate(t) {
			continue // those of placement are every pod's; podTemplate takes what is left
		}
		d.add("spec.placement.tolerations", tolerationOf(t), t)
	}
	if v := pod.at("hostNetwork"); v.isTrue() {
		d.set("spec.network.host", true, v)
	}
}

// spot reads a selection of spot nodes, with the toleration that they need, and returns whose nodes they are.
func (d *draft) spot(pod view) *job.Provisioner {
	for _, p := range job.Provisioners {
		label := pod.at("nodeSelector", p.Key)
		if label.text() != p.Value {
			continue
		}
		if t := p.Toleration(); t != nil && !slices.ContainsFunc(pod.at("tolerations").items(), func(v view) bool {
			return reflect.DeepEqual(tolerationOf(v), tree{
				"key": t.Key, "operator": t.Operator, "value": t.Value, "effect": t.Effect,
			})
		}) {
			continue
		}
		d.set("spec.placement.spot", true, label)
		d.set("spec.placement.provisioner", p.Name, label)
		return &p
	}
	return nil
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
