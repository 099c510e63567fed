package refs

import (
	"iter"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The Job controller still adds these beside the prefixed ones.
const (
	legacyJobName       = "job-name"
	legacyControllerUID = "controller-uid"
)

// selected yields the workloads of the namespace with a pod that sel selects.
// It may yield one twice.
func (x *index) selected(namespace string, sel *metav1.LabelSelector) iter.Seq[*workload] {
	return func(yield func(*workload) bool) {
		for _, w := range x.rarest(namespace, sel) {
			if w.matches(sel) && !yield(w) {
				return
			}
		}
	}
}

// rarest returns the fewest workloads that one requirement of sel leaves, since
// a label such as app=tegen is on thousands and job=x on one.
func (x *index) rarest(namespace string, sel *metav1.LabelSelector) []*workload {
	best := x.pods[label{namespace, "", ""}]
	for k, v := range sel.MatchLabels {
		if list, ok := x.posted(namespace, k, v); ok && len(list) < len(best) {
			best = list
		}
	}
	for _, e := range sel.MatchExpressions {
		if e.Operator != metav1.LabelSelectorOpIn {
			continue
		}
		if union, ok := x.union(namespace, e.Key, e.Values, len(best)); ok {
			best = union
		}
	}
	return best
}

// union returns the workloads with one of the values, if they are known and
// fewer than limit.
func (x *index) union(namespace, key string, values []string, limit int) (all []*workload, ok bool) {
	for _, v := range values {
		list, known := x.posted(namespace, key, v)
		if !known || len(all)+len(list) >= limit {
			return nil, false
		}
		all = append(all, list...)
	}
	return all, true
}

// posted returns the workloads under key=value, and false for the labels that
// hold an ordinal, which are not indexed.
func (x *index) posted(namespace, key, value string) ([]*workload, bool) {
	switch key {
	case batchv1.JobCompletionIndexAnnotation, appsv1.PodIndexLabel:
		return nil, false
	case appsv1.StatefulSetPodNameLabel:
		value, _, _ = cutOrdinal(value)
	}
	return x.pods[label{namespace, key, value}], true
}

// matches reports whether some pod of w satisfies sel.
func (w *workload) matches(sel *metav1.LabelSelector) bool {
	for k, v := range sel.MatchLabels {
		if !w.labelled(k, v) {
			return false
		}
	}
	for _, e := range sel.MatchExpressions {
		if !w.satisfies(e) {
			return false
		}
	}
	return true
}

func (w *workload) satisfies(e metav1.LabelSelectorRequirement) bool {
	in := slices.ContainsFunc(e.Values, func(v string) bool { return w.labelled(e.Key, v) })
	switch e.Operator {
	case metav1.LabelSelectorOpIn:
		return in
	case metav1.LabelSelectorOpNotIn:
		return !in || w.ordinalLabel(e.Key) && w.numbers.count > len(e.Values)
	case metav1.LabelSelectorOpExists:
		return w.carries(e.Key)
	case metav1.LabelSelectorOpDoesNotExist:
		return !w.carries(e.Key)
	}
	return false
}

// labelled reports whether some pod of w carries key=value, from the template
// or from the controller.
func (w *workload) labelled(key, value string) bool {
	if v, ok := w.pod.Labels[key]; ok && v == value {
		return true
	}
	switch {
	case w.ordinalLabel(key):
		if key == appsv1.StatefulSetPodNameLabel {
			base, n, ok := cutOrdinal(value)
			return ok && base == w.name && w.numbers.has(n)
		}
		n, ok := parseOrdinal(value)
		return ok && w.numbers.has(n)
	case key == legacyJobName || key == batchv1.JobNameLabel:
		return w.kind == "Job" && value == w.name
	}
	return false
}

// carries reports whether every pod of w has the label key.
func (w *workload) carries(key string) bool {
	if _, ok := w.pod.Labels[key]; ok || w.ordinalLabel(key) {
		return true
	}
	switch key {
	case legacyJobName, legacyControllerUID, batchv1.JobNameLabel, batchv1.ControllerUidLabel:
		return w.kind == "Job" || w.kind == "CronJob" || w.byJobs
	case appsv1.DefaultDeploymentUniqueLabelKey:
		return w.kind == "Deployment"
	case appsv1.ControllerRevisionHashLabelKey:
		return w.kind == "StatefulSet" || w.kind == "DaemonSet"
	}
	return false
}

// ordinalLabel reports whether the controller gives each pod of w its own value
// of the label.
func (w *workload) ordinalLabel(key string) bool {
	switch key {
	case batchv1.JobCompletionIndexAnnotation:
		return w.kind != "StatefulSet" && w.numbers.on && (w.byJobs || w.kind == "Job" || w.kind == "CronJob")
	case appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel:
		return w.kind == "StatefulSet"
	}
	return false
}
