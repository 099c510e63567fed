// Package plan predicts what a cluster will hold once a job's objects are applied: the pods with their names,
// addresses, ports and requests, and whether the gang of them fits into the nodes of an inventory. It looks at the
// objects, never at how they came to be, so that it holds for every target; it asks no cluster, opens no file, and
// never fails over a job that was rendered.
package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// Plan is what 'tegen plan -o json' prints; docs/plan.md describes each field.
type Plan struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Inventory  *Cluster `json:"inventory,omitempty"`
	Jobs       []*Job   `json:"jobs"`
}

// Cluster is what an inventory lists.
type Cluster struct {
	Pods  int    `json:"pods"`
	Nodes []Node `json:"nodes"`
}

// Node is a node with what is free on it.
type Node struct {
	Name string              `json:"name"`
	Free corev1.ResourceList `json:"free"`
}

// Job is the plan of one job.
type Job struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	Framework string    `json:"framework"`
	Target    string    `json:"target"`
	GitOps    bool      `json:"gitops"`
	Suspended bool      `json:"suspended"`
	Queue     string    `json:"queue,omitempty"`
	Selector  string    `json:"selector"`
	Gang      Gang      `json:"gang"`
	Objects   []Object  `json:"objects"`
	PodSets   []*PodSet `json:"podSets"`
	Services  []Service `json:"services"`
	Requests  Totals    `json:"requests"`
	Expects   []string  `json:"expects"`
	Needs     []string  `json:"needs"`

	Controllers []Controller `json:"controllers"`
	Notes       []string     `json:"notes"`
	Fit         *Fit         `json:"fit,omitempty"`

	templates map[string]*resourcev1.ResourceClaimSpec // of claims, that the job renders
}

// Gang is the pods without which training does not start.
type Gang struct {
	Scheduler string `json:"scheduler,omitempty"`
	Pods      int32  `json:"pods"`

	Topology *Topology `json:"topology,omitempty"`
}

// Object is one object of the bundle.
type Object struct {
	Concern    string `json:"concern,omitempty"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// PodSet is pods of one template.
type PodSet struct {
	Role      string              `json:"role"`
	Owner     string              `json:"owner"`
	Helper    bool                `json:"helper"`
	Suspended bool                `json:"suspended"`
	Finishes  bool                `json:"finishes"`
	Replicas  int32               `json:"replicas"`
	Required  int32               `json:"required"`
	Jobs      []string            `json:"jobs,omitempty"`
	Pods      []Pod               `json:"pods"`
	Ports     []Port              `json:"ports"`
	Each      corev1.ResourceList `json:"requestsEach"`
	All       corev1.ResourceList `json:"requestsAll"`

	pod *corev1.Pod // as a scheduler would see it, but for its name
}

// Pod is one pod to come. A * in its name stands for letters that are unknown beforehand.
type Pod struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
}

// Port is where a pod or a Service listens.
type Port struct {
	Name     string `json:"name,omitempty"`
	Port     int32  `json:"port"`
	Protocol string `json:"protocol"`
}

// Service is a Service with ports of its own.
type Service struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Ports   []Port `json:"ports"`
}

// Totals are the requests of all pods that run at one time.
type Totals struct {
	Training corev1.ResourceList `json:"training"`
	Helpers  corev1.ResourceList `json:"helpers"`
	Peak     corev1.ResourceList `json:"peak"`
	Steady   corev1.ResourceList `json:"steady"`
}

// New is the plan of jobs.
func New(jobs []*Job) *Plan {
	return &Plan{APIVersion: names.APIVersion, Kind: "Plan", Jobs: jobs}
}

// Of is the plan of a job that became these objects.
func Of(tj *job.Job, concerns []generators.Concern) *Job {
	j := &Job{
		Name: tj.Metadata.Name, Namespace: tj.Metadata.Namespace,
		Framework: tj.Spec.Framework, Target: tj.Spec.Target, GitOps: tj.Spec.GitOps,
		Selector: names.LabelJob + "=" + tj.Metadata.Name,
		Objects:  []Object{}, PodSets: []*PodSet{}, Services: []Service{}, Expects: []string{}, Notes: []string{},
		Needs:       []string{},
		Controllers: []Controller{}, templates: map[string]*resourcev1.ResourceClaimSpec{},
	}
	b := builder{Job: j, domain: tj.Spec.Network.ClusterDomain, services: map[string]bool{}}
	var objects []runtime.Object
	for _, c := range concerns {
		for _, obj := range c.Objects {
			b.add(c.Name, obj)
		}
		objects = append(objects, c.Objects...)
	}
	for _, s := range j.PodSets {
		s.address(b.domain, b.services)
		s.Suspended = s.Suspended || b.suspended && !s.Helper
	}
	j.require(tj, objects)
	j.need(tj, objects)
	slices.Sort(j.Expects)
	j.Expects = slices.Compact(j.Expects)
	j.gang(tj)
	j.total()
	j.note()
	return j
}

// builder collects what a job's objects are.
type builder struct {
	*Job
	domain    string
	services  map[string]bool
	suspended bool // an object without pods is, such as a TrainJob, whose runtime has them
}

// add enters an object of a concern, with its pods and what names them.
func (b *builder) add(concern string, obj runtime.Object) {
	meta, ok := obj.(metav1.Object)
	gvk, err := manifest.GVK(obj)
	if !ok || err != nil {
		return
	}
	version, kind := gvk.ToAPIVersionAndKind()
	b.Objects = append(b.Objects, Object{concern, version, kind, meta.GetNamespace(), meta.GetName()})
	if text := meta.GetAnnotations()[names.Expects]; text != "" {
		b.Expects = append(b.Expects, strings.Split(text, ",")...)
	}
	if q := meta.GetLabels()[queueLabel]; q != "" {
		b.Queue = q
	}
	if gvk.Group == resourcev1.GroupName && gvk.Kind == "ResourceClaimTemplate" {
		_ = addTemplate(b.templates, obj, gvk) // one that cannot be read is noted as unknown
	}
	if s, ok := obj.(*corev1.Service); ok {
		b.services[s.Name] = true
		b.addService(s, b.domain)
	}
	w := apis.WorkloadOf(obj)
	if w == nil {
		return
	}
	for _, set := range w.Services() {
		for name := range set.Names() { // of a job, whose workers are few
			b.services[name] = true
		}
	}
	sets := podSets(w, gvk)
	b.addPods(sets)
	b.suspended = b.suspended || len(sets) == 0 && w.Suspended()
}

// queueLabel marks what Kueue holds back until there is room in a queue.
const queueLabel = "kueue.x-k8s.io/queue-name"

func (j *Job) addService(s *corev1.Service, domain string) {
	if len(s.Spec.Ports) == 0 { // it only names pods, which have the name
		return
	}
	service := Service{Name: s.Name, Address: dns(domain, s.Name, s.Namespace)}
	for _, p := range s.Spec.Ports {
		service.Ports = append(service.Ports, Port{p.Name, p.Port, protocol(p.Protocol)})
	}
	j.Services = append(j.Services, service)
}

func protocol(p corev1.Protocol) string {
	if p == "" {
		return string(corev1.ProtocolTCP)
	}
	return string(p)
}

// dns is the full name of a Service, or of a host behind one.
func dns(domain string, parts ...string) string {
	return strings.Join(append(parts, "svc", domain), ".")
}

// gang counts the pods of each set that must run before training starts. The minimum of a role may be spread over
// several sets, a master before the workers: the first pods count.
func (j *Job) gang(tj *job.Job) {
	if g := tj.Spec.Gang; g != nil && g.Scheduler != job.GangNone {
		j.Gang.Scheduler = g.Scheduler
	}
	j.Gang.Topology = topologyOf(tj)
	least := generators.Least(tj)
	for _, s := range j.PodSets {
		s.Required = s.Replicas
		if n, ok := least[s.Role]; ok {
			s.Required = min(n, s.Replicas)
			least[s.Role] = n - s.Required
		}
		if s.Helper {
			continue
		}
		j.Suspended = j.Suspended || s.Suspended
		j.Gang.Pods += s.Required
	}
}

// total adds up what runs at one time: at first everything, since workers hold their places while datasets are fetched,
// and then what does not end before them.
func (j *Job) total() {
	j.Requests = Totals{corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}}
	for _, s := range j.PodSets {
		add(j.Requests.Peak, s.All)
		if s.Helper {
			add(j.Requests.Helpers, s.All)
		} else {
			add(j.Requests.Training, s.All)
		}
		if !s.Finishes {
			add(j.Requests.Steady, s.All)
		}
	}
}
