package plan

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kind "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/names"
)

// random stands for the letters that controllers add to names: five of them, and for Deployments the ReplicaSet's hash
// before them.
const random = "-*"

// podSets are the pods of a workload of some kind, a set for each template.
func podSets(w apis.Workload, of kind.GroupVersionKind) (all []*PodSet) {
	suspended := w.Suspended()
	for _, p := range w.PodSets() {
		if p.Uncounted {
			continue
		}
		s := podSet(&p, w.GetNamespace())
		s.Owner, s.Jobs = cmp.Or(p.Owner, owner(w, of)), p.Jobs
		if p.JobEach {
			for _, pod := range s.Pods {
				s.Jobs = append(s.Jobs, strings.TrimSuffix(pod.Name, random))
			}
		}
		s.Suspended, s.Finishes = suspended, s.Helper && p.ByJobs
		all = append(all, s)
	}
	return all
}

// owner is Kind/name of what makes pods, with the group where Kubernetes has a kind of that name too. A set of bare
// pods comes of many objects.
func owner(w apis.Workload, of kind.GroupVersionKind) string {
	switch {
	case of.Kind == "Pod":
		return of.Kind
	case apis.IsBuiltIn(of.Kind) && strings.Contains(of.Group, "."):
		return of.Kind + "." + of.Group + "/" + w.GetName()
	}
	return of.Kind + "/" + w.GetName()
}

// podSet is a set without what its object sets for all of them.
func podSet(p *apis.PodSet, namespace string) *PodSet {
	pod := &corev1.Pod{ObjectMeta: *p.Template.ObjectMeta.DeepCopy(), Spec: *p.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Spec.Subdomain = namespace, p.Subdomain
	complete(pod)
	role := pod.Labels[names.LabelComponent]
	s := &PodSet{
		Role: cmp.Or(role, "pod"), Helper: generators.Helps(role), Replicas: p.Replicas,
		Pods: podsOf(p), Ports: []Port{}, Each: requests(pod), pod: pod,
	}
	s.All = times(s.Each, s.Replicas)
	for c := range containers(pod) {
		for _, p := range c.Ports {
			s.Ports = append(s.Ports, Port{p.Name, p.ContainerPort, protocol(p.Protocol)})
		}
	}
	for _, added := range p.Ports {
		s.Ports = append(s.Ports, Port{added.Name, added.ContainerPort, protocol(added.Protocol)})
	}
	return s
}

// podsOf are the pods of a set with their hostnames in place of addresses. That of a bare pod is its name by default.
func podsOf(p *apis.PodSet) []Pod {
	pods := make([]Pod, p.Replicas)
	for i := range pods {
		name, host := p.Name, p.Host
		if p.Numbered {
			name += "-" + strconv.Itoa(int(p.First)+i)
			host = name
		} else if p.Random == 0 {
			host = cmp.Or(host, name)
		}
		pods[i] = Pod{Name: name + strings.Repeat(random, p.Random), Address: host}
	}
	return pods
}

// containers are all of a pod, the first ones first.
func containers(pod *corev1.Pod) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
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

// note lists what the numbers leave out.
func (j *Job) note() {
	for _, s := range j.PodSets {
		for _, what := range unseen(&s.pod.Spec) {
			if text := fmt.Sprintf("%s: %s", s.Role, what); !slices.Contains(j.Notes, text) {
				j.Notes = append(j.Notes, text)
			}
		}
	}
}

// claimsUnseen is so without an inventory that has devices.
const claimsUnseen = "resource claims are not looked at"

// noteClaims says of a set with claims which of them the numbers leave out.
func (j *Job) noteClaims(s *PodSet, unknown []string) {
	j.Notes = slices.DeleteFunc(j.Notes, func(note string) bool { return note == s.Role+": "+claimsUnseen })
	for _, why := range unknown {
		if text := s.Role + ": " + why; !slices.Contains(j.Notes, text) {
			j.Notes = append(j.Notes, text)
		}
	}
}

// unseen is what a scheduler reads of a pod and this package does not.
func unseen(pod *corev1.PodSpec) (what []string) {
	if pod.RuntimeClassName != nil && pod.Overhead == nil {
		what = append(what, "the overhead of RuntimeClass "+*pod.RuntimeClassName+" is not counted")
	}
	if len(pod.ResourceClaims) > 0 {
		what = append(what, claimsUnseen)
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

// Template is a pod of the set as a scheduler sees it, but for its name.
func (s *PodSet) Template() *corev1.Pod { return s.pod }

// Refuses explains why a node takes no pod of the set, whatever is free on it; "" where it would.
func (s *PodSet) Refuses(n *corev1.Node) string { return (&node{Node: n}).refuses(demandOf(s.pod)) }
