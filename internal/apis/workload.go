package apis

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Workload is a pod, or an object whose controller makes pods.
type Workload interface {
	metav1.Object
	// PodSets are the pods, a set for each template.
	PodSets() []PodSet
	// Services are those that the controller makes, all headless.
	Services() []ServiceSet
	// Excess is the first field with a number that makes more Jobs than PodSets lists; its path is "" if there is none.
	Excess() Excess
	// Suspended reports whether the controller makes no pods yet, or the scheduler leaves the pod alone.
	Suspended() bool
}

// WorkloadOf returns an object, typed or read as a map, as a workload; nil for an object of another kind. An object of
// Kubernetes itself has to be typed.
func WorkloadOf(obj runtime.Object) Workload {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		obj, _ = Decode(u.GroupVersionKind(), u.Object) // whose error the reference check reports
	}
	if w, ok := obj.(Workload); ok {
		return w
	}
	for _, k := range builtIn {
		if w := k.open(obj); w != nil {
			return w
		}
	}
	return nil
}

// IsBuiltIn reports whether Kubernetes itself has a workload of that kind.
func IsBuiltIn(kind string) bool {
	for _, k := range builtIn {
		if k.name == kind {
			return true
		}
	}
	return false
}

// PodSet is pods of one template.
type PodSet struct {
	Path     string // of the template in the object, such as spec.template; "" where the object is the pod
	Template *corev1.PodTemplateSpec
	Replicas int32 // at one time
	// Completions are the pods that run one after the other, where these are more.
	Completions int32
	// Uncounted reports that only the cluster knows how many pods there are, and when.
	Uncounted bool

	// Name starts the pods' names: "imagenet-worker"; "" where it is unknown beforehand.
	Name string
	// Numbered reports that a dash and a number, counted from First, follow in name and hostname.
	Numbered bool
	First    int32
	// Random counts the groups of random letters that follow in the name, not in the hostname.
	Random int
	// Host is the hostname of pods without numbers; "" where each has its own.
	Host string
	// Subdomain is the Service behind which the hostnames resolve; "" where each pod has a Service of its own name.
	Subdomain string

	// ByJobs reports that Jobs make the pods: the object itself, or those between it and the pods, which Jobs names.
	ByJobs bool
	Jobs   []string
	// JobEach reports that each pod has a Job named like the pod, less its random letters, in place of Jobs.
	JobEach bool
	// Labels and Annotations are what the controller puts on the pods beside the template's.
	Labels      []Label
	Annotations []string
	// Selector is what the API server compares with the template; nil where the controller makes its own.
	Selector *metav1.LabelSelector
	// Claims are templates of which each pod has a claim of its own, in place of the volume of that name.
	Claims []corev1.PersistentVolumeClaim
	// Foreign reports that the template is the controller's own, as far as it is known: it is not in the object.
	Foreign bool
	// Ports are those that the controller adds to the pods' one container of training.
	Ports []corev1.ContainerPort
	// Owner is Kind/name of the object that the pods come of, where that is not the one that has their template.
	Owner string
	// Dials are the addresses that the controller passes to the pods from fields of its own.
	Dials []Dial
}

// Label is a label that a controller puts on pods. Without value and number its value is unknown beforehand.
type Label struct {
	Key, Value string
	Numbered   bool // the value ends in the pod's number
}

// Dial is host:port in a field of a custom resource.
type Dial struct{ Path, Address string }

// Numbers is how many numbers the names of the pods have.
func (p *PodSet) Numbers() int32 {
	if !p.Numbered {
		return 0
	}
	return max(p.Replicas, p.Completions)
}

// HasNumber reports whether a pod has that number.
func (p *PodSet) HasNumber(n int) bool {
	return int(p.First) <= n && n < int(p.First)+int(p.Numbers())
}

// ServiceSet is one Service, or a Service for each pod of a set. Its numbers come from the input, so that nothing but
// Names lists them.
type ServiceSet struct {
	Name string
	// Numbered reports that a dash and a number follow in the name, for so many numbers counted from First.
	Numbered     bool
	First, Count int32
}

// HasNumber reports whether there is a Service with a number.
func (s *ServiceSet) HasNumber(n int) bool {
	return s.Numbered && int(s.First) <= n && n < int(s.First)+int(s.Count)
}

// Names lists the Services. Call it only for sets whose number of pods is bounded.
func (s *ServiceSet) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !s.Numbered {
			yield(s.Name)
			return
		}
		for i := range s.Count {
			if !yield(fmt.Sprintf("%s-%d", s.Name, int(s.First)+int(i))) {
				return
			}
		}
	}
}

// oneService is a Service of that name.
func oneService(name string) []ServiceSet { return []ServiceSet{{Name: name}} }

// numbered are the Services of pods that each have one of their own name.
func numbered(sets []PodSet) (all []ServiceSet) {
	for i := range sets {
		all = append(all, ServiceSet{sets[i].Name, true, sets[i].First, sets[i].Replicas})
	}
	return all
}

// Excess is a number of an object that is larger than the limit.
type Excess struct {
	Path         string // spec.replicatedJobs[0].replicas
	Count, Limit int
}

// jobLabels are what the controller of a Job puts on its pods; name is "" where several Jobs make them.
func jobLabels(name string) []Label {
	return []Label{
		{Key: legacyJobName, Value: name},
		{Key: batchv1.JobNameLabel, Value: name},
		{Key: legacyControllerUID},
		{Key: batchv1.ControllerUidLabel},
	}
}

// The Job controller still adds these beside the prefixed ones.
const (
	legacyJobName       = "job-name"
	legacyControllerUID = "controller-uid"
)

// indexLabel is on the pods of an Indexed Job, as an annotation too.
var indexLabel = Label{Key: batchv1.JobCompletionIndexAnnotation, Numbered: true}

// builtInKind is a kind of Kubernetes itself.
type builtInKind struct {
	name string
	open func(runtime.Object) Workload // nil for an object of another kind
}

// builtInOf is the kind of a Go type of Kubernetes, which is named like it. All have pods of one template.
func builtInOf[O metav1.Object](podSet func(O) PodSet, suspended func(O) bool) builtInKind {
	return builtInKind{reflect.TypeFor[O]().Elem().Name(), func(obj runtime.Object) Workload {
		o, ok := obj.(O)
		if !ok {
			return nil
		}
		return builtInWorkload[O]{o, o, podSet, suspended}
	}}
}

type builtInWorkload[O metav1.Object] struct {
	metav1.Object
	object    O
	podSet    func(O) PodSet
	suspended func(O) bool
}

func (w builtInWorkload[O]) PodSets() []PodSet      { return []PodSet{w.podSet(w.object)} }
func (w builtInWorkload[O]) Services() []ServiceSet { return nil }
func (w builtInWorkload[O]) Excess() Excess         { return Excess{} }
func (w builtInWorkload[O]) Suspended() bool        { return w.suspended != nil && w.suspended(w.object) }

// PodSets asks the spec for the pods that its controller makes.
func (c *Custom[S]) PodSets() []PodSet {
	if s, ok := any(&c.Spec).(podMaker); ok {
		return s.podSets(&c.ObjectMeta)
	}
	return nil
}

// Excess asks the spec, if its pods are listed by a number in it.
func (c *Custom[S]) Excess() Excess {
	if s, ok := any(&c.Spec).(interface{ excess() Excess }); ok {
		return s.excess()
	}
	return Excess{}
}

// Services asks the spec for the Services that its controller makes.
func (c *Custom[S]) Services() []ServiceSet {
	if s, ok := any(&c.Spec).(podMaker); ok {
		return s.services(&c.ObjectMeta)
	}
	return nil
}

// podMaker is the spec of a custom resource whose controller makes pods.
type podMaker interface {
	podSets(m *metav1.ObjectMeta) []PodSet
	services(m *metav1.ObjectMeta) []ServiceSet
}

// Suspended looks where custom resources have the field.
func (c *Custom[S]) Suspended() bool {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return false
	}
	for _, path := range []string{"spec.suspend", "spec.runPolicy.suspend"} {
		if on, _, err := unstructured.NestedBool(content, strings.Split(path, ".")...); err == nil && on {
			return true
		}
	}
	return false
}
