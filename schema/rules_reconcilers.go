package schema

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// recreated refuses labels and annotations of metadata by which Argo CD or Flux delete an object and make it anew: they
// are for all objects of a job, its claims and volumes among them.
func (r *validation) recreated() {
	for key, value := range r.Metadata.Annotations {
		if names.Recreates(key, value) {
			r.failKey("metadata.annotations", key, "data", "%q has a reconciler delete and make anew the claims and "+
				"volumes of the job too, and with them its data: say it of the workload alone, in "+
				"spec.workload.annotations", said(key, value))
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
