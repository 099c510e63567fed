package importer

import (
	"strconv"

	"github.com/tegen-dev/tegen/internal/names"
)

// splitMetadata leaves in metadata the labels and annotations that all objects of the job are to have. Those that are
// on the workload alone are said of the workload alone: an option of a reconciler for it would not be one for its data.
func (d *draft) splitMetadata() {
	for field, elsewhere := range map[string]func(key, value string) (string, bool){
		"labels": d.labelOfPods, "annotations": d.annotationBeside,
	} {
		all := d.get("metadata." + field).mapping()
		for _, key := range sortedKeys(all) {
			value, _ := all[key].(string)
			others, shared := elsewhere(key, value)
			if shared && others == value {
				continue
			}
			d.put("spec.workload."+field, key, value, d.origin["metadata."+field+"["+strconv.Quote(key)+"]"])
			if delete(all, key); shared {
				all[key] = others
			}
		}
		if len(all) == 0 {
			delete(d.get("metadata").mapping(), field)
		}
	}
}

// labelOfPods is a label of the workers, where they have it of the job's.
func (d *draft) labelOfPods(key, value string) (string, bool) {
	label := d.template.at("metadata", "labels", key)
	return label.text(), label.text() == value || label.isSet() && d.isRendered(d.workload[0])
}

// annotationBeside is an annotation of an object beside the workload, where that has it of the job's. It is of another
// kind, since a workload may be several of one.
func (d *draft) annotationBeside(key, value string) (others string, shared bool) {
	for _, o := range d.stream.objects {
		annotation := o.view().at("metadata", "annotations", key)
		switch {
		case o.gvk.Kind == d.workload[0].gvk.Kind, !annotation.isSet():
		case annotation.text() == value && (o.namespace == "" || sameNamespace(o.namespace, d.namespace())):
			return value, true
		case d.isRendered(o):
			others, shared = annotation.text(), true
		}
	}
	return others, shared
}

// isRendered says whether tegen has rendered an object for the job, and without what keeps data.
func (d *draft) isRendered(o *object) bool {
	return sameNamespace(o.namespace, d.namespace()) &&
		o.view().at("metadata", "labels", names.LabelJob).text() == d.name()
}
