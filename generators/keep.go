package generators

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// kept is the metadata of what outlives its job: no reconciler prunes it, nor is it among what the label of the job's
// objects selects.
func kept(j *job.Job, m metav1.ObjectMeta) metav1.ObjectMeta {
	return keptOf(j.Metadata.Name, m)
}

// keptOf is kept for what belongs to an owner of any kind.
func keptOf(owner string, m metav1.ObjectMeta) metav1.ObjectMeta {
	m.Labels = dataLabels(m.Labels, owner)
	// Delete is for the end of the Application, Prune for that of the object in git.
	options := withOptions(m.Annotations[names.ArgoSyncOptions], "Prune=false", "Delete=false")
	annotate(&m, names.ArgoSyncOptions, options)
	// What stays when the job has left git is no reason to call the Application out of sync.
	annotate(&m, names.ArgoCompareOptions, withOptions(m.Annotations[names.ArgoCompareOptions], "IgnoreExtraneous"))
	annotate(&m, names.FluxPrune, "disabled")
	return m
}

// dataLabels have the label of what stays in the place of that of what goes.
func dataLabels(labels map[string]string, owner string) map[string]string {
	delete(labels, names.LabelJob)
	labels[names.LabelData] = owner
	return labels
}

// withOptions adds options, name=value or a name alone, to a list of an author's for all objects, of which those of the
// same name give way.
func withOptions(list string, options ...string) string {
	var all []string
	for option := range strings.SplitSeq(list, ",") {
		option = strings.TrimSpace(option)
		name, _, _ := strings.Cut(option, "=")
		given := slices.ContainsFunc(options, func(o string) bool {
			return o == name || strings.HasPrefix(o, name+"=")
		})
		if option != "" && !given {
			all = append(all, option)
		}
	}
	return strings.Join(append(all, options...), ",")
}
