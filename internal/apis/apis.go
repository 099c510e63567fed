// Package apis holds the custom resources that tegen renders and reads, as Go types with the fields that it uses and no
// others: the systems' own modules would bring their controllers' dependencies with them. Each file cites where its
// fields come from. The same types are printed by generators, walked by the reference check and planned from, and
// strictly decoded by import, which so learns what it cannot keep.
package apis

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Custom is a custom resource with a spec of its own type; status is the controllers' to write.
type Custom[S any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              S `json:"spec"`
}

// DeepCopyObject copies by way of JSON, which is all that these types are made for.
func (c *Custom[S]) DeepCopyObject() runtime.Object {
	out := new(Custom[S])
	text, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil { // every field has a JSON form
		panic(fmt.Errorf("copying %s %s: %w", c.Kind, c.Name, err))
	}
	return out
}

// PodSets asks the spec for the pods that its controller makes.
func (c *Custom[S]) PodSets() []PodSet {
	switch s := any(&c.Spec).(type) {
	case podSetter:
		return s.podSets(c.Name)
	case metaPodSetter:
		return s.podSetsOf(&c.ObjectMeta)
	}
	return nil
}

// Services asks the spec for the names of the Services that its controller makes, all headless.
func (c *Custom[S]) Services() []string {
	if s, ok := any(&c.Spec).(servicer); ok {
		return s.services(c.Name)
	}
	return nil
}

type podSetter interface{ podSets(name string) []PodSet }

// metaPodSetter is for a controller that gives pods the labels of the object itself.
type metaPodSetter interface {
	podSetsOf(m *metav1.ObjectMeta) []PodSet
}

type servicer interface{ services(name string) []string }

// Workload is a custom resource whose controller makes pods.
type Workload interface {
	runtime.Object
	metav1.Object
	PodSets() []PodSet
	Services() []string
}

// WorkloadOf returns an object, typed or read as a map, as a custom resource whose controller makes pods; nil for others.
func WorkloadOf(obj runtime.Object) Workload {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		obj = Decode(u.GroupVersionKind(), u.Object)
	}
	w, _ := obj.(Workload)
	return w
}

// PodSet is pods of one template.
type PodSet struct {
	Path     string // of the template in the object, such as spec.template
	Template *corev1.PodTemplateSpec
	Replicas int32
	// Prefix and a number, counted from First, are the pods' names and hostnames: "imagenet-worker-". A name may have
	// random letters after it.
	Prefix string
	First  int32
	// Single says that there is one pod, named without a number and the dash before it.
	Single bool
	// Random says that the controller puts random letters after the name, not the hostname.
	Random bool
	// ByJobs says that Jobs make the pods, and put their labels on them.
	ByJobs bool
	// JobEach says that each of those Jobs makes one pod, and is named as the pod is without letters; else one Job makes
	// them all, and is named as Prefix without its dash.
	JobEach bool
	// Annotations are keys that the controller puts on the pods, for the pods to read.
	Annotations []string
	// Subdomain is the Service behind which the hostnames resolve; "" where each pod has a Service of its own name.
	Subdomain string
	// Foreign says that the template is the controller's own, as far as it is known: nothing in the object says it.
	Foreign bool
	// Dials are the addresses that the controller tells the pods from fields of its own.
	Dials []Dial
}

// Dial is host:port in a field of a custom resource.
type Dial struct{ Path, Address string }

// Kind is a custom resource's group, version and kind with what makes an empty one.
type Kind struct {
	schema.GroupVersionKind
	make func() runtime.Object
}

// kind registers nothing: it only pairs a name with a type, for the list in kinds.go.
func kind[S any](gvk schema.GroupVersionKind) Kind {
	return Kind{gvk, func() runtime.Object { return new(Custom[S]) }}
}

// New is an object of a kind.
func New[S any](gvk schema.GroupVersionKind, meta metav1.ObjectMeta, spec S) *Custom[S] {
	c := &Custom[S]{ObjectMeta: meta, Spec: spec}
	c.APIVersion, c.Kind = gvk.ToAPIVersionAndKind()
	return c
}

// Decode makes a typed object of one read as a map, leaving out what the types do not have; nil for a kind that is not
// in Kinds, or that does not decode.
func Decode(gvk schema.GroupVersionKind, object map[string]any) runtime.Object {
	for _, k := range Kinds {
		if k.GroupVersionKind != gvk {
			continue
		}
		text, err := json.Marshal(object)
		if err != nil {
			return nil
		}
		obj := k.make()
		if json.Unmarshal(text, obj) != nil {
			return nil
		}
		return obj
	}
	return nil
}
