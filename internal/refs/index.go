package refs

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
)

// id names an object as messages do. The kind of a custom resource carries its
// group, so that a Knative Service is never taken for a Service.
type id struct{ kind, namespace, name string }

func (i id) String() string {
	if i.namespace == "" {
		return i.kind + " " + i.name
	}
	return i.kind + " " + i.namespace + "/" + i.name
}

// object is where references start.
type object struct {
	id
	notes [3]map[string]string // annotations of the object and its templates
}

// label is a label in a namespace; without key and value it stands for all the
// pods of the namespace.
type label struct{ namespace, key, value string }

// hostname is a pod's own name in DNS; without subdomain, behind any Service.
type hostname struct{ namespace, subdomain, host string }

// index holds the set by what references name. Every map is keyed by
// namespace, so a look-up never walks the objects. Most sets are a job's, with
// few objects: a map is made when something goes into it.
type index struct {
	// objects has nil for an object known by name only: a custom resource, or
	// a duplicate name, where either of the two could win.
	objects    map[id]runtime.Object
	duplicates map[id]bool
	namespaces map[string]bool // those the set has objects in
	workloads  []*workload
	pods       map[label][]*workload // nil where the workloads are few enough to look at each
	hostnames  map[hostname]bool
	// numbered has the workloads whose pods are named <key>-<number>, and opaque
	// the names of objects known by name only whose pods may be.
	numbered map[[2]string][]*workload
	opaque   map[[2]string]bool
	// made has the Services that controllers of custom resources make, and madeNumbered those named <key>-<number>.
	made         map[id]bool
	madeNumbered map[[2]string][]apis.ServiceSet
	// excess has the objects that the limits leave out, and manyJobs counts the child Jobs of all JobSets.
	excess   []excess
	manyJobs int
	// claims has the workloads that make claims named <key>-<number>.
	claims map[id][]*workload
}

// fewWorkloads are compared with a selector sooner than they are entered under their labels.
const fewWorkloads = 4

func newIndex(objs []runtime.Object) *index {
	x := &index{objects: make(map[id]runtime.Object, len(objs))}
	for _, obj := range objs {
		meta, ok := obj.(metav1.Object)
		if !ok {
			continue // a List or Status, which has no name to refer to
		}
		x.add(obj, meta)
	}
	if len(x.workloads) > fewWorkloads {
		for _, w := range x.workloads {
			x.post(w)
		}
	}
	return x
}

func (x *index) add(obj runtime.Object, meta metav1.Object) {
	key := idOf(obj, meta)
	typed := obj
	if u, ok := obj.(*unstructured.Unstructured); ok {
		decoded, wrong := apis.Decode(u.GroupVersionKind(), u.Object)
		if wrong != nil {
			x.excess = append(x.excess, excess{key, wrong.At.String(), wrong.What, wrong.Why})
		}
		typed = decoded
	}
	made := apis.WorkloadOf(typed)
	custom := isCustom(obj)
	// A custom resource without a namespace may be cluster-scoped.
	if key.namespace != "" && (!custom || meta.GetNamespace() != "") {
		put(&x.namespaces, key.namespace, true)
	}
	if meta.GetName() != "" {
		if _, twice := x.objects[key]; twice {
			put(&x.duplicates, key, true)
			custom = true
		}
		if custom {
			x.objects[key] = nil
			if apis.IsBuiltIn(key.kind) {
				put(&x.opaque, [2]string{key.namespace, key.name}, true)
			}
		} else {
			x.objects[key] = obj
		}
	}
	if made == nil {
		return
	}
	for _, set := range made.Services() {
		if base := [2]string{key.namespace, set.Name}; set.Numbered {
			put(&x.madeNumbered, base, append(x.madeNumbered[base], set))
		} else {
			put(&x.made, id{"Service", key.namespace, set.Name}, true)
		}
	}
	if more := made.Excess(); more.Path != "" {
		x.excess = append(x.excess, excess{
			key, more.Path, strconv.Itoa(more.Count) + " child Jobs",
			fmt.Sprintf("more than the limit of %d; reduce the number", more.Limit),
		})
		return
	}
	sets := made.PodSets()
	if x.manyJobs += max(0, len(sets)-1); x.manyJobs > mostChildJobs {
		x.excess = append(x.excess, excess{
			key, "spec", strconv.Itoa(x.manyJobs) + " child Jobs of all JobSets",
			fmt.Sprintf("more than the limit of %d; check fewer JobSets at a time", mostChildJobs),
		})
		return
	}
	for i := range sets {
		x.addPods(newWorkload(obj, made, key, &sets[i]))
	}
}

// mostChildJobs are child Jobs of all JobSets of a set of objects.
const mostChildJobs = 100_000

// excess is an object with a value that is larger than its limit.
type excess struct {
	id
	path, what, why string
}

// makes reports whether a controller of a custom resource makes the Service.
func (x *index) makes(i id) bool {
	if i.kind != "Service" {
		return false
	}
	if x.made[i] {
		return true
	}
	base, n, ok := cutOrdinal(i.name)
	return ok && slices.ContainsFunc(x.madeNumbered[[2]string{i.namespace, base}], func(s apis.ServiceSet) bool {
		return s.HasNumber(n)
	})
}

// isCustom reports whether an object is known by kind and name only.
func isCustom(obj runtime.Object) bool {
	_, foreign := obj.(*unstructured.Unstructured)
	_, custom := obj.(apis.Workload)
	return foreign || custom
}

// put is m[key] = value of a map that may not be there yet.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// post enters the pods that w makes under their labels.
func (x *index) post(w *workload) {
	enter := func(key, value string) {
		l := label{w.namespace, key, value}
		put(&x.pods, l, append(x.pods[l], w))
	}
	enter("", "")
	for k, v := range w.pod.Labels {
		enter(k, v)
	}
	for _, l := range w.set.Labels {
		if l.Value != "" {
			enter(l.Key, strings.TrimSuffix(l.Value, "-")) // for all numbers, see posted
		}
	}
}

// addPods enters the pods that w makes under all else they can be found by.
func (x *index) addPods(w *workload) {
	x.workloads = append(x.workloads, w)
	if set := w.set; set.Numbered && set.Name != "" {
		base := [2]string{w.namespace, set.Name}
		put(&x.numbered, base, append(x.numbered[base], w))
	} else if !set.Numbered && set.Host != "" {
		put(&x.hostnames, hostname{w.namespace, set.Subdomain, set.Host}, true)
		put(&x.hostnames, hostname{w.namespace, "", set.Host}, true)
	}
	for i := range w.set.Claims {
		key := id{"PersistentVolumeClaim", w.namespace, w.set.Claims[i].Name + "-" + w.name}
		put(&x.claims, key, append(x.claims[key], w))
	}
}

// has reports whether the object exists: in the set, made by a StatefulSet of
// the set, or in every cluster.
func (x *index) has(i id) bool {
	if _, ok := x.objects[i]; ok || x.makes(i) {
		return true
	}
	switch i.kind {
	case "ServiceAccount":
		return i.name == "" || i.name == "default"
	case "ConfigMap":
		return i.name == "kube-root-ca.crt"
	case "Service":
		return i.namespace == "default" && i.name == "kubernetes"
	case "PersistentVolumeClaim":
		base, n, ok := cutOrdinal(i.name)
		if !ok {
			return false
		}
		i.name = base
		return slices.ContainsFunc(x.claims[i], func(w *workload) bool { return w.set.HasNumber(n) })
	}
	return false
}

// names lists the names of every kind and namespace, keyed by an id without
// name.
func (x *index) names() map[id][]string {
	names := map[id][]string{}
	for i := range x.objects {
		key := id{kind: i.kind, namespace: i.namespace}
		names[key] = append(names[key], i.name)
	}
	return names
}

// cutOrdinal splits etcd-2 into etcd and 2.
func cutOrdinal(name string) (base string, ordinal int, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return "", 0, false
	}
	ordinal, ok = parseOrdinal(name[i+1:])
	return name[:i], ordinal, ok
}

// parseOrdinal accepts the one spelling that controllers write: 7, not 07 or +7.
func parseOrdinal(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == s
}

// newWorkload is the pods of one template of an object.
func newWorkload(obj runtime.Object, of apis.Workload, key id, set *apis.PodSet) *workload {
	w := &workload{
		object: object{id: key}, path: "spec", pod: &set.Template.ObjectMeta, spec: &set.Template.Spec,
		set: set,
	}
	w.notes = [3]map[string]string{of.GetAnnotations(), set.Template.Annotations}
	if set.Path != "" {
		w.path = set.Path + ".spec"
	}
	if c, ok := obj.(*batchv1.CronJob); ok { // which has a template of Jobs around that of pods
		w.notes[2] = c.Spec.JobTemplate.Annotations
	}
	return w
}

// idOf trusts the Go type before the kind field, which typed objects straight
// from a generator leave empty.
func idOf(obj runtime.Object, meta metav1.Object) id {
	var kind string
	// Other types name their kind themselves.
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		kind = gvk.Kind
		if strings.Contains(gvk.Group, ".") && (!strings.HasSuffix(gvk.Group, ".k8s.io") ||
			strings.HasSuffix(gvk.Group, ".sigs.k8s.io")) {
			kind += "." + gvk.Group
		}
	} else {
		kind = reflect.TypeOf(obj).Elem().Name()
	}
	i := id{kind, orDefault(meta.GetNamespace()), meta.GetName()}
	if i.name == "" {
		i.name = meta.GetGenerateName() + "*"
	}
	if apis.ClusterScoped(kind) {
		i.namespace = ""
	}
	return i
}

func orDefault(namespace string) string {
	if namespace == "" {
		return "default"
	}
	return namespace
}

func itoa(i int) string { return strconv.Itoa(i) }
