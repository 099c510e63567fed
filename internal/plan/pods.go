package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
)

// Ends of names that controllers add: five random letters, and for Deployments the ReplicaSet's hash before them.
const (
	random      = "-*"
	twiceRandom = "-*-*"
)

// podSets are the pods that come of an object, a set for each template; none for objects of other kinds.
func podSets(obj runtime.Object, kind string) []*PodSet {
	meta, ok := obj.(metav1.Object)
	if !ok {
		return nil
	}
	from := source{owner: kind + "/" + meta.GetName(), namespace: meta.GetNamespace(), name: meta.GetName()}
	switch o := obj.(type) {
	case *corev1.Pod:
		template := &corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
		from.owner = kind // a set of bare pods has many
		from.suspended = len(o.Spec.SchedulingGates) > 0
		return []*PodSet{from.named(template, 1, o.Name, "")}
	case *batchv1.Job:
		from.suspended = o.Spec.Suspend != nil && *o.Spec.Suspend
		return []*PodSet{from.job(&o.Spec)}
	case *appsv1.StatefulSet:
		first := int32(0)
		if o.Spec.Ordinals != nil {
			first = o.Spec.Ordinals.Start
		}
		s := from.numbered(&o.Spec.Template, replicas(o.Spec.Replicas), o.Name+"-", first, "")
		s.pod.Spec.Subdomain = o.Spec.ServiceName
		return []*PodSet{s}
	case *appsv1.Deployment:
		return []*PodSet{from.named(&o.Spec.Template, replicas(o.Spec.Replicas), o.Name, twiceRandom)}
	}
	w := apis.WorkloadOf(obj)
	if w == nil {
		return nil
	}
	if kind == "Job" { // Volcano's, which is not the one that kubectl means
		from.owner = "Job." + obj.GetObjectKind().GroupVersionKind().Group + "/" + from.name
	}
	from.suspended = suspended(obj)
	var all []*PodSet
	for _, p := range w.PodSets() {
		suffix := ""
		if p.Random {
			suffix = random
		}
		s := from.numbered(p.Template, p.Replicas, p.Prefix, p.First, suffix)
		if p.Single {
			host := strings.TrimSuffix(p.Prefix, "-")
			s.Pods = []Pod{{Name: host + suffix, Address: host}}
		}
		s.pod.Spec.Subdomain = p.Subdomain
		s.Jobs = childJobs(&p)
		all = append(all, s)
	}
	return all
}

// childJobs are the names of the Jobs that a controller makes between its object and the pods.
func childJobs(p *apis.PodSet) (names []string) {
	switch {
	case !p.ByJobs:
		return nil
	case !p.JobEach:
		return []string{strings.TrimSuffix(p.Prefix, "-")}
	}
	for i := range p.Replicas {
		names = append(names, p.Prefix+strconv.Itoa(int(p.First+i)))
	}
	return names
}

// source is the object that pods come of.
type source struct {
	owner, namespace, name string
	suspended              bool
}

func (f source) job(spec *batchv1.JobSpec) *PodSet {
	n := replicas(spec.Parallelism)
	if spec.Completions != nil {
		n = min(n, *spec.Completions) // the pods at one time
	}
	var s *PodSet
	if mode := spec.CompletionMode; mode != nil && *mode == batchv1.IndexedCompletion {
		s = f.numbered(&spec.Template, n, f.name+"-", 0, random)
	} else {
		s = f.named(&spec.Template, n, f.name, random)
	}
	s.Finishes = s.Helper
	return s
}

func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// named are pods that are not told apart by a number.
func (f source) named(template *corev1.PodTemplateSpec, n int32, name, suffix string) *PodSet {
	s := f.set(template, n)
	for range n {
		s.Pods = append(s.Pods, Pod{Name: name + suffix, Address: s.pod.Spec.Hostname})
	}
	if suffix == "" && s.pod.Spec.Hostname == "" {
		s.Pods[0].Address = name
	}
	return s
}

// numbered are pods with a number in name and hostname.
func (f source) numbered(template *corev1.PodTemplateSpec, n int32, prefix string, first int32, suffix string) *PodSet {
	s := f.set(template, n)
	for i := range n {
		host := prefix + strconv.Itoa(int(first+i))
		s.Pods = append(s.Pods, Pod{Name: host + suffix, Address: host})
	}
	return s
}

// set has no pods yet.
func (f source) set(template *corev1.PodTemplateSpec, n int32) *PodSet {
	pod := &corev1.Pod{}
	if template != nil { // a controller may have one of its own
		pod.ObjectMeta, pod.Spec = *template.ObjectMeta.DeepCopy(), *template.Spec.DeepCopy()
	}
	pod.Namespace = f.namespace
	complete(pod)
	role := pod.Labels["app.kubernetes.io/component"]
	s := &PodSet{
		Role: role, Owner: f.owner, Helper: generators.Helps(role), Suspended: f.suspended, Replicas: n,
		Pods: []Pod{}, Ports: []Port{}, Each: requests(pod), pod: pod,
	}
	if s.Role == "" {
		s.Role = "pod"
	}
	s.All = times(s.Each, n)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for _, p := range containers[i].Ports {
				s.Ports = append(s.Ports, Port{p.Name, p.ContainerPort, protocol(p.Protocol)})
			}
		}
	}
	return s
}

// suspended looks where custom resources have the field.
func suspended(obj runtime.Object) bool {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return false
	}
	for _, path := range [][]string{{"spec", "suspend"}, {"spec", "runPolicy", "suspend"}} {
		if on, _, err := unstructured.NestedBool(content, path...); err == nil && on {
			return true
		}
	}
	return false
}

// addPods makes one set of bare pods, or of an object's sets, that are alike.
func (j *Job) addPods(sets []*PodSet) {
	for _, s := range sets {
		if last := len(j.PodSets) - 1; last >= 0 && j.PodSets[last].takes(s) {
			j.PodSets[last].join(s)
			continue
		}
		j.PodSets = append(j.PodSets, s)
	}
}

func (s *PodSet) takes(other *PodSet) bool {
	return s.Owner == other.Owner && s.Role == other.Role && reflect.DeepEqual(s.pod.Spec, other.pod.Spec)
}

func (s *PodSet) join(other *PodSet) {
	s.Replicas += other.Replicas
	s.Pods, s.Jobs = append(s.Pods, other.Pods...), append(s.Jobs, other.Jobs...)
	s.All = times(s.Each, s.Replicas)
}

// address turns hostnames into full names: behind the pods' headless Service, or behind one of each pod's own.
func (s *PodSet) address(domain string, services map[string]bool) {
	for i := range s.Pods {
		host := s.Pods[i].Address
		switch subdomain := s.pod.Spec.Subdomain; {
		case host != "" && subdomain != "":
			s.Pods[i].Address = dns(domain, host, subdomain, s.pod.Namespace)
		case services[host]:
			s.Pods[i].Address = dns(domain, host, s.pod.Namespace)
		default:
			s.Pods[i].Address = ""
		}
	}
}

// note says what the numbers leave out.
func (j *Job) note() {
	for _, s := range j.PodSets {
		for _, what := range unseen(&s.pod.Spec) {
			if text := fmt.Sprintf("%s: %s", s.Role, what); !slices.Contains(j.Notes, text) {
				j.Notes = append(j.Notes, text)
			}
		}
	}
}

// unseen is what a scheduler heeds of a pod and this package does not.
func unseen(pod *corev1.PodSpec) (what []string) {
	if pod.RuntimeClassName != nil && pod.Overhead == nil {
		what = append(what, "the overhead of RuntimeClass "+*pod.RuntimeClassName+" is not counted")
	}
	if len(pod.ResourceClaims) > 0 {
		what = append(what, "resource claims are not looked at")
	}
	if a := pod.Affinity; a != nil {
		if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			what = append(what, "pod affinity is not looked at")
		}
		if a.PodAntiAffinity != nil {
			for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				if t.TopologyKey != corev1.LabelHostname {
					what = append(what, "pod anti-affinity by "+t.TopologyKey+" is not looked at")
				}
			}
		}
	}
	for _, t := range pod.TopologySpreadConstraints {
		if t.WhenUnsatisfiable == corev1.DoNotSchedule {
			what = append(what, "the topology spread by "+strings.TrimSpace(t.TopologyKey)+" is not looked at")
		}
	}
	return what
}
