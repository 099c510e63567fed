package generators

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
)

// immutable lists what no API server changes in an object whose name may have a hash of it. Names that were given out
// stay valid only as long as this stays as it is.
func immutable(obj runtime.Object) []any {
	switch o := obj.(type) {
	case *batchv1.Job:
		return jobImmutable(o)
	case *apis.JobSet:
		return jobSetImmutable(o)
	case *apis.VCJob:
		return vcJobImmutable(o)
	case *apis.TrainJob:
		return []any{o.Spec.Trainer, o.Spec.ActiveDeadlineSeconds}
	case *apis.TrainingRuntime:
		return []any{o.Spec}
	case *corev1.ConfigMap:
		return []any{o.Data[schedulerConfigKey]}
	}
	return nil
}

// Changed returns the objects that are not what the hash in their names was made of: something changed them after they
// were rendered. Objects that share a hash come together, since it does not tell which of them changed. It leaves out
// objects of a cluster, whose defaults an API server has filled in. The order of objs makes no difference.
func Changed(objs []runtime.Object) (changed [][]runtime.Object) {
	type hashID struct{ namespace, job, hash string }
	of := map[hashID][]runtime.Object{}
	for _, obj := range objs {
		m, err := apimeta.Accessor(obj)
		if err != nil || m.GetUID() != "" || m.GetLabels()[names.LabelManagedBy] != names.ManagedBy {
			continue
		}
		if hash := m.GetAnnotations()[names.ContentHash]; hash != "" {
			job := names.JobOf(func(key string) string { return m.GetLabels()[key] })
			id := hashID{m.GetNamespace(), job, hash}
			of[id] = append(of[id], obj)
		}
	}
	var kinds map[string][]metav1.Object // made where it is needed: few objects have changed
	for id, all := range of {
		all = inOrder(all, id.job, id.hash)
		if hasHash(all, id.hash, nil) {
			continue
		}
		if kinds == nil {
			kinds = byKind(objs)
		}
		if !hasHash(all, id.hash, renames(all, id.job, id.hash, kinds)) {
			changed = append(changed, all)
		}
	}
	slices.SortFunc(changed, func(a, b []runtime.Object) int { return cmp.Compare(nameOf(a[0]), nameOf(b[0])) })
	return changed
}

func nameOf(obj runtime.Object) string {
	m, err := apimeta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetNamespace() + "/" + m.GetName()
}

// inOrder sorts the objects of one hash as they were rendered. Jobs of groups list each other's first pods in that
// order, the roles of ps-lite have it by name, and a TrainingRuntime comes before its TrainJob.
func inOrder(all []runtime.Object, job, hash string) []runtime.Object {
	if len(all) == 1 {
		return all
	}
	type ranked struct {
		obj       runtime.Object
		mention   int // where a text first has the name of its first pod
		component string
		last      int
	}
	list := make([]ranked, len(all))
	for i, obj := range all {
		list[i] = ranked{obj: obj, mention: math.MaxInt}
		if m, err := apimeta.Accessor(obj); err == nil {
			list[i].component = m.GetLabels()[names.LabelComponent]
		}
		if _, ok := typed(obj).(*apis.TrainJob); ok {
			list[i].last = 1
		}
	}
	for _, obj := range all {
		text := jsonOf(immutable(typed(obj)))
		for i := range list {
			firstPod := job + "-" + list[i].component + "-" + hash + "-0."
			if at := bytes.Index(text, []byte(firstPod)); at >= 0 {
				list[i].mention = min(list[i].mention, at)
			}
		}
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.mention, b.mention), cmp.Compare(a.component, b.component),
			cmp.Compare(a.last, b.last))
	})
	sorted := make([]runtime.Object, len(all))
	for i := range list {
		sorted[i] = list[i].obj
	}
	return sorted
}

// hasHash reports whether a hash is that of objects. It was made before the names had it, which other texts of the
// objects have too, and before kustomize renamed what they refer to.
func hasHash(all []runtime.Object, hash string, renamed *strings.Replacer) bool {
	is := func(parts ...any) bool {
		text := bytes.ReplaceAll(jsonOf(parts), []byte("-"+hash), nil)
		if renamed != nil {
			text = []byte(renamed.Replace(string(text)))
		}
		return hashOf(text) == hash
	}
	var parts []any
	for _, obj := range all {
		parts = append(parts, immutable(typed(obj))...)
	}
	if j, ok := all[0].(*batchv1.Job); ok && j.Labels[names.LabelComponent] == componentPrefetch {
		return slices.ContainsFunc(j.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
			return is(j.Spec.Template, v.Name) // the dataset's; others are those of the author's podTemplate
		})
	}
	return is(parts...)
}

// generated is a name with kustomize's hash of a ConfigMap's or Secret's content.
var generated = lazy.Regexp(`-[2456789bcdfghkmt]{10}$`)

// renames takes away what a prefix or suffix of a kustomization added to the names that objects refer to: it never
// changes by itself. A hash of content does. What it added to their own names it added to those of the job's other
// objects; what they expect from elsewhere is in their annotations.
func renames(all []runtime.Object, job, hash string, kinds map[string][]metav1.Object) *strings.Replacer {
	var pairs []string
	for _, obj := range all {
		m, err := apimeta.Accessor(obj)
		if err != nil {
			continue
		}
		if prefix, _, _ := strings.Cut(m.GetName(), job); prefix != "" {
			pairs = append(pairs, `"`+prefix+job, `"`+job)
		}
		if _, suffix, _ := strings.Cut(m.GetName(), "-"+hash); suffix != "" {
			pairs = append(pairs, suffix+`"`, `"`)
		}
		for expected := range strings.SplitSeq(m.GetAnnotations()[names.Expects], ",") {
			kind, name, _ := strings.Cut(strings.TrimSpace(expected), "/")
			for _, o := range kinds[kind] {
				if o.GetNamespace() == m.GetNamespace() && o.GetName() != name &&
					strings.Contains(o.GetName(), name) && !generated().MatchString(o.GetName()) {
					pairs = append(pairs, strconv.Quote(o.GetName()), strconv.Quote(name))
				}
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

func byKind(objs []runtime.Object) map[string][]metav1.Object {
	of := map[string][]metav1.Object{}
	for _, obj := range objs {
		gvk, err := manifest.GVK(obj)
		if m, notObject := apimeta.Accessor(obj); err == nil && notObject == nil {
			of[gvk.Kind] = append(of[gvk.Kind], m)
		}
	}
	return of
}

// typed is an object as the type that it was rendered from.
func typed(obj runtime.Object) runtime.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if t, _ := apis.Decode(u.GroupVersionKind(), u.Object); t != nil {
			return t
		}
	}
	return obj
}
