package refs

import (
	"iter"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/apis"
)

// selected yields the workloads of the namespace with a pod that sel selects.
// It may yield one twice.
func (x *index) selected(namespace string, sel *metav1.LabelSelector) iter.Seq[*workload] {
	return func(yield func(*workload) bool) {
		for _, w := range x.rarest(namespace, sel) {
			if w.namespace == namespace && w.matches(sel) && !yield(w) {
				return
			}
		}
	}
}

// rarest returns the fewest workloads that one requirement of sel leaves, since
// a label such as app=tegen is on thousands and job=x on one. Of a small set it
// returns all.
func (x *index) rarest(namespace string, sel *metav1.LabelSelector) []*workload {
	if x.pods == nil {
		return x.workloads
	}
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
		return !in || w.numbersLabel(e.Key) && int(w.set.Numbers()) > len(e.Values)
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
	l := w.added(key)
	if l == nil || !l.Numbered {
		return l != nil && l.Value != "" && l.Value == value
	}
	number, ours := strings.CutPrefix(value, l.Value)
	n, ok := parseOrdinal(number)
	return ours && ok && w.set.HasNumber(n)
}

// carries reports whether every pod of w has the label key.
func (w *workload) carries(key string) bool {
	_, ok := w.pod.Labels[key]
	return ok || w.added(key) != nil
}

// numbersLabel reports whether the controller puts a label on the pods of w in
// which each has its own number.
func (w *workload) numbersLabel(key string) bool {
	l := w.added(key)
	return l != nil && l.Numbered
}

// added is the label that the controller puts on the pods of w, nil for none.
func (w *workload) added(key string) *apis.Label {
	for i := range w.set.Labels {
		if w.set.Labels[i].Key == key {
			return &w.set.Labels[i]
		}
	}
	return nil
}
