package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// recreated refuses labels and annotations of metadata by which Argo CD or Flux delete an object and make it anew: they
// are for all objects of a job, its claims and volumes among them.
func (r *validation) recreated() {
	for key, value := range r.Metadata.Annotations {
		if names.Recreates(key, value) {
			remedy := "say it of the workload alone, in spec.workload.annotations"
			if names.IsHook(key, value) {
				remedy = "leave it out"
			}
			r.failKey("metadata.annotations", key, "data", "%q has a reconciler delete and make anew the claims and "+
				"volumes of the job too, and with them its data: %s", said(key, value), remedy)
		}
	}
	for key, value := range r.Metadata.Labels {
		if names.Recreates(key, value) {
			r.failKey("metadata.labels", key, "data", "%q has a reconciler delete and make anew the claims and "+
				"volumes of the job too, and with them its data: say it of the workload alone, in "+
				"spec.workload.labels", value)
		}
	}
}

// hooks refuses to make a hook of what trains, where a reconciler applies it.
func (r *validation) hooks() {
	if !r.Spec.GitOps {
		return
	}
	refuse := func(mapping, key, value string) {
		if names.IsHook(key, value) {
			r.failKey(mapping, key, "hook", "%q is a hook, which Argo CD deletes and makes anew with each sync, so "+
				"that the training runs again: leave it out", value)
		}
	}
	for key, value := range r.Spec.Workload.Annotations {
		refuse("spec.workload.annotations", key, value)
	}
	if r.Spec.Target != TargetPods { // a controller makes those of the others
		return
	}
	for _, p := range r.patches() {
		for key, value := range p.Metadata.Annotations {
			if text, ok := value.(string); ok {
				refuse(p.at+".metadata.annotations", key, text)
			}
		}
	}
}

// recreatedNotes tell what becomes of a run where a reconciler was told to make its workload anew.
func (j *Job) recreatedNotes() (notes []string) {
	if !j.Spec.GitOps {
		return nil
	}
	w := &j.Spec.Workload
	for field, all := range map[string]map[string]string{"annotations": w.Annotations, "labels": w.Labels} {
		for key, value := range all {
			if names.Recreates(key, value) && !names.IsHook(key, value) {
				notes = append(notes, fmt.Sprintf("spec.workload.%s[%s]: %s has a reconciler delete the workload "+
					"where the API server refuses a change, or with each sync: a run ends there, and starts anew",
					field, key, said(key, value)))
			}
		}
	}
	slices.Sort(notes)
	return notes
}

// said is the part of an annotation that recreates objects.
func said(key, value string) string {
	var options []string
	for option := range strings.SplitSeq(value, ",") {
		if option = strings.TrimSpace(option); names.Recreates(key, option) {
			options = append(options, option)
		}
	}
	return strings.Join(slices.Compact(options), ",")
}
