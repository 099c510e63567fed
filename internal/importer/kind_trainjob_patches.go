package importer

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patches puts what a TrainJob says beside its runtime into the pods' template, as Trainer does (kubeflow/trainer
// v2.3.0, pkg/runtime/core/trainingruntime.go: mergeRuntimePatches). The JobSet and the Job that Trainer makes have no
// labels of their own in a TrainingJob.
func (d *draft) patches(spec, child view) {
	for _, patch := range spec.at("runtimePatches").items() {
		d.note(patch.at("manager"), Translated, "what it patches becomes the job's own, and is nobody else's")
		set := patch.at("trainingRuntimeSpec", "template")
		d.withoutField(set.at("metadata"), "the JobSet")
		for _, item := range set.at("spec", "replicatedJobs").items() {
			d.withoutField(item.at("template", "metadata"), "the Job")
			d.patchTemplate(child.at("template", "spec", "template"), item.at("template", "spec", "template"))
		}
	}
	spec.at("runtimePatches").markTranslated()
}

// withoutField tells of labels and annotations that would stand on one object that Trainer makes.
func (d *draft) withoutField(metadata view, of string) {
	for _, list := range []string{"labels", "annotations"} {
		for _, key := range sortedKeys(metadata.at(list).mapping()) {
			d.note(metadata.at(list, key), Dropped,
				"a TrainingJob has none for %s alone: metadata.%s of the job are those of all its objects", of, list)
		}
	}
}

// patchTemplate merges a patch into the pods' template, whose lists have their keys from Kubernetes.
func (d *draft) patchTemplate(template, patch view) {
	original, ok := clone(template.value).(tree)
	change, isTree := clone(patch.value).(tree)
	if !ok || !isTree {
		return
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(original, change, corev1.PodTemplateSpec{})
	if err != nil {
		d.note(patch, Unread, "it cannot be merged into the runtime's template: %s", err)
		return
	}
	own := template.mapping()
	clear(own)
	for key, value := range merged {
		own[key] = value
	}
	d.note(patch, Translated, "the runtime becomes the job's own, and has this in its pods")
}
