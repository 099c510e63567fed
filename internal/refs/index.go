package refs

import (
	"reflect"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
)

// id names an object as messages do. The kind of a custom resource carries its
// group, so that a Knative Service never stands in for a Service.
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
// namespace, so a look-up never walks the objects.
type index struct {
	// objects has nil for an object known by name only: a custom resource, or
	// a duplicate name, where either of the two could win.
	objects    map[id]runtime.Object
	duplicates map[id]bool
	namespaces map[string]bool // those the set has objects in
	workloads  []*workload
	pods       map[label][]*workload
	hostnames  map[hostname]bool
	// sets has the pods of custom resources under their names without number,
	// and made the Services that controllers of custom resources make.
	sets map[[2]string][]numbers
	made map[id]bool
	// claims has the StatefulSets that make claims named <key>-<ordinal>.
	claims map[id][]id
}

func newIndex(objs []runtime.Object) *index {
	x := &index{
		objects:    make(map[id]runtime.Object, len(objs)),
		duplicates: map[id]bool{},
		namespaces: map[string]bool{},
		pods:       map[label][]*workload{},
		hostnames:  map[hostname]bool{},
		sets:       map[[2]string][]numbers{},
		made:       map[id]bool{},
		claims:     map[id][]id{},
	}
	for _, obj := range objs {
		meta, ok := obj.(metav1.Object)
		if !ok {
			continue // a List or Status, which has no name to refer to
		}
		x.add(obj, meta)
	}
	return x
}

func (x *index) add(obj runtime.Object, meta metav1.Object) {
	key := idOf(obj, meta)
	foreign, custom := customResource(obj)
	// A custom resource without a namespace may be cluster-scoped.
	if key.namespace != "" && (!custom || meta.GetNamespace() != "") {
		x.namespaces[key.namespace] = true
	}
	if meta.GetName() != "" {
		if _, twice := x.objects[key]; twice {
			x.duplicates[key] = true
			custom = true
		}
		if custom {
			x.objects[key] = nil
		} else {
			x.objects[key] = obj
		}
	}
	if foreign != nil {
		x.addCustom(foreign, key)
	} else if w := workloadOf(obj, key); w != nil {
		x.addPods(w)
	}
}

// customResource says whether an object is a custom resource, and returns it
// as one that makes pods, if it is known to.
func customResource(obj runtime.Object) (apis.Workload, bool) {
	w := apis.WorkloadOf(obj)
	_, foreign := obj.(*unstructured.Unstructured)
	return w, foreign || w != nil
}

// addCustom enters the pods and Services that a controller makes of a custom
// resource.
func (x *index) addCustom(obj apis.Workload, key id) {
	for _, name := range obj.Services() {
		x.made[id{"Service", key.namespace, name}] = true
	}
	for _, set := range obj.PodSets() {
		base := strings.TrimSuffix(set.Prefix, "-")
		n := numbers{on: true, base: base, first: int(set.First), count: int(set.Replicas), subdomain: set.Subdomain}
		x.sets[[2]string{key.namespace, base}] = append(x.sets[[2]string{key.namespace, base}], n)
		x.addPods(&workload{
			object: object{id: key, notes: [3]map[string]string{obj.GetAnnotations(), set.Template.Annotations}},
			path:   set.Path + ".spec", pod: &set.Template.ObjectMeta, spec: &set.Template.Spec,
			numbers: n, byJobs: set.ByJobs, given: set.Annotations, dials: set.Dials,
		})
	}
}

// addPods enters the pods that w makes under all they can be found by.
func (x *index) addPods(w *workload) {
	x.workloads = append(x.workloads, w)
	post := func(key, value string) {
		l := label{w.namespace, key, value}
		x.pods[l] = append(x.pods[l], w)
	}
	post("", "")
	for k, v := range w.pod.Labels {
		post(k, v)
	}
	switch w.kind {
	case "Job":
		post(legacyJobName, w.name)
		post(batchv1.JobNameLabel, w.name)
	case "StatefulSet":
		post(appsv1.StatefulSetPodNameLabel, w.name) // for all ordinals, see posted
	}
	if w.spec.Hostname != "" && !w.numbers.on {
		x.hostnames[hostname{w.namespace, w.numbers.subdomain, w.spec.Hostname}] = true
		x.hostnames[hostname{w.namespace, "", w.spec.Hostname}] = true
	}
	for i := range w.claims {
		key := id{"PersistentVolumeClaim", w.namespace, w.claims[i].Name + "-" + w.name}
		x.claims[key] = append(x.claims[key], w.id)
	}
}

// has reports whether the object exists: in the set, made by a StatefulSet of
// the set, or in every cluster.
func (x *index) has(i id) bool {
	if _, ok := x.objects[i]; ok || x.made[i] {
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
		for _, set := range x.claims[i] {
			if obj := x.objects[set]; obj == nil || numbersOf(obj).has(n) {
				return true
			}
		}
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

// numbers are the ordinals at the end of the pod names of a StatefulSet or an
// Indexed Job, and the subdomain of any pods.
type numbers struct {
	on           bool
	base         string // of the names, before the number
	first, count int
	subdomain    string
}

func (n numbers) has(ordinal int) bool {
	return n.on && n.first <= ordinal && ordinal < n.first+n.count
}

// numbersOf returns the numbering of an object that numbers its pods. The pods
// of a CronJob's Jobs have numbers too, but names that nobody knows beforehand.
func numbersOf(obj runtime.Object) numbers {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		n := numbers{on: true, count: 1, subdomain: o.Spec.ServiceName}
		if o.Spec.Replicas != nil {
			n.count = int(*o.Spec.Replicas)
		}
		if o.Spec.Ordinals != nil {
			n.first = int(o.Spec.Ordinals.Start)
		}
		return n
	case *batchv1.Job:
		return jobNumbers(&o.Spec)
	case *batchv1.CronJob:
		return jobNumbers(&o.Spec.JobTemplate.Spec)
	}
	return numbers{}
}

func jobNumbers(j *batchv1.JobSpec) numbers {
	n := numbers{subdomain: j.Template.Spec.Subdomain}
	if mode := j.CompletionMode; mode != nil && *mode == batchv1.IndexedCompletion && j.Completions != nil {
		n.on, n.count = true, int(*j.Completions)
	}
	return n
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

// workloadOf returns nil for an object without pods.
func workloadOf(obj runtime.Object, key id) *workload {
	w := &workload{object: object{id: key}, path: "spec.template.spec"}
	template := func(meta *metav1.ObjectMeta, t *corev1.PodTemplateSpec, sel *metav1.LabelSelector) {
		w.notes = [3]map[string]string{meta.Annotations, t.Annotations}
		w.pod, w.spec, w.selector = &t.ObjectMeta, &t.Spec, sel
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		w.path, w.pod, w.spec = "spec", &o.ObjectMeta, &o.Spec
		w.notes[0] = o.Annotations
	case *batchv1.Job:
		template(&o.ObjectMeta, &o.Spec.Template, nil)
		if o.Spec.ManualSelector != nil && *o.Spec.ManualSelector {
			w.selector = o.Spec.Selector
		}
	case *batchv1.CronJob:
		w.path = "spec.jobTemplate.spec.template.spec"
		template(&o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template, nil)
		w.notes[2] = o.Spec.JobTemplate.Annotations
	case *appsv1.StatefulSet:
		template(&o.ObjectMeta, &o.Spec.Template, o.Spec.Selector)
		w.claims = o.Spec.VolumeClaimTemplates
	case *appsv1.Deployment:
		template(&o.ObjectMeta, &o.Spec.Template, o.Spec.Selector)
	case *appsv1.ReplicaSet:
		template(&o.ObjectMeta, &o.Spec.Template, o.Spec.Selector)
	case *appsv1.DaemonSet:
		template(&o.ObjectMeta, &o.Spec.Template, o.Spec.Selector)
	default:
		return nil
	}
	w.numbers = numbersOf(obj)
	w.numbers.base = w.name
	if w.kind != "StatefulSet" { // whose controller overwrites the template's
		w.numbers.subdomain = w.spec.Subdomain
	}
	return w
}

// idOf trusts the Go type before the kind field, which typed objects straight
// from a generator leave empty.
func idOf(obj runtime.Object, meta metav1.Object) id {
	var kind string
	// What is no built-in type says itself what it is.
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		kind = gvk.Kind
		if strings.Contains(gvk.Group, ".") && (!strings.HasSuffix(gvk.Group, ".k8s.io") || strings.HasSuffix(gvk.Group, ".sigs.k8s.io")) {
			kind += "." + gvk.Group
		}
	} else {
		kind = reflect.TypeOf(obj).Elem().Name()
	}
	i := id{kind, orDefault(meta.GetNamespace()), meta.GetName()}
	if i.name == "" {
		i.name = meta.GetGenerateName() + "*"
	}
	if clusterScoped(kind) {
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

// clusterScoped lists the built-in kinds that bundles come with.
func clusterScoped(kind string) bool {
	switch kind {
	case "PersistentVolume", "StorageClass", "Namespace", "PriorityClass", "Node",
		"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
		"RuntimeClass", "IngressClass", "DeviceClass", "CSIDriver",
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return true
	}
	return false
}

func itoa(i int) string { return strconv.Itoa(i) }
