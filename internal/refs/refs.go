// Package refs checks that a set of Kubernetes objects hangs together, and
// that what kustomize made of it neither moved an installation nor lets a
// reconciler delete what outlives its job.
//
// Input is the final set: typed objects for the built-in kinds and
// *unstructured.Unstructured for the rest, which are known by kind and name
// only. Output is one Broken for every reference that does not resolve, in the
// set or among the objects an annotation (names.Expects) lists as existing.
// Invariant: the result depends on the objects and never on their order, and
// its cost grows with the number of objects, not with its square.
package refs

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/names"
)

// Broken is one reference that does not resolve.
type Broken struct {
	Rule  string // of those below
	From  string // "Job training/imagenet-worker"
	Field string // "spec.template.spec.containers[worker].env[PET_RDZV_ENDPOINT]"
	To    string // "Service training/etcd"
	Why   string // a sentence with the remedy
}

func (b Broken) String() string { return b.Finding().String() }

// Finding is the reference as what machines read too.
func (b Broken) Finding() finding.Finding {
	return finding.Finding{
		Rule: "reference/" + b.Rule, Level: finding.Error, Object: b.From, Field: b.Field,
		Message: b.To + ": " + b.Why,
	}
}

// Rules of package finding, without "reference/".
const (
	ruleMissing    = "missing"
	ruleMismatch   = "mismatch"
	ruleSelector   = "selector"
	ruleDuplicate  = "duplicate"
	ruleAnnotation = "annotation"
	ruleDelivery   = "delivery"
	ruleMoved      = "moved"
	ruleLimit      = "limit"
)

// Check returns the references of objs that do not resolve, sorted by object
// and field.
func Check(objs []runtime.Object) []Broken {
	c := &checker{index: newIndex(objs)}
	c.duplicateNames()
	for _, e := range c.excess {
		c.broken(ruleLimit, &object{id: e.id}, place{path: e.path}, e.what, e.why)
	}
	c.walk(objs)
	for _, obj := range objs {
		c.delivery(obj)
	}
	return c.result()
}

// walk follows every reference of objs, which are those of the index.
func (c *checker) walk(objs []runtime.Object) {
	for _, w := range c.workloads {
		c.workload(w)
	}
	for _, obj := range objs {
		c.object(obj)
	}
}

// checker collects what is broken while it walks the indexed set.
type checker struct {
	*index
	found  []found
	follow func(Link) // nil where only what is broken counts
}

// found is a Broken whose Why still lacks the nearest name. Names are
// compared last, after sorting, because only the first few are (see result).
type found struct {
	Broken
	missing id // the absent object, zero when nothing is absent
}

// place is a field. It is spelled out only when something there is broken,
// since nearly all references of a set resolve.
type place struct {
	path       string // "spec.template.spec"
	list, name string // "containers", "worker"
	part, item string // "env", "PET_RDZV_ENDPOINT"
}

func (p place) String() string {
	s := p.path
	for _, step := range [][2]string{{p.list, p.name}, {p.part, p.item}} {
		if step[0] != "" {
			s += "." + step[0]
		}
		if step[1] != "" {
			s += "[" + step[1] + "]"
		}
	}
	return s
}

// broken records a reference that no annotation can excuse.
func (c *checker) broken(rule string, from *object, at place, to, why string) {
	c.found = append(c.found, found{Broken: Broken{
		Rule: rule, From: from.String(), Field: at.String(), To: to, Why: why,
	}})
}

// refuse records that to, which is there, is not what from needs.
func (c *checker) refuse(from *object, at place, to id, why string) {
	if !from.expects(to) {
		c.broken(ruleMismatch, from, at, to.String(), why)
	}
}

// missing records that to is not in the set. The consequence, if any, goes
// between the fact and the remedy.
func (c *checker) missing(from *object, at place, to id, consequence string) {
	if from.expects(to) {
		return
	}
	why := "no object of that name is in the set"
	if consequence != "" {
		why += "; " + consequence
	}
	c.broken(ruleMissing, from, at, to.String(), why)
	c.found[len(c.found)-1].missing = to
}

// need records a reference to an object that must be in the set.
func (c *checker) need(from *object, at place, to id) {
	c.link(from, to, Uses, "")
	if !c.has(to) {
		c.missing(from, at, to, "")
	}
}

// maxNearest bounds the search for near names: nobody reads further, and a
// prefix that breaks every reference of a large set must not make the check
// quadratic.
const maxNearest = 100

// result sorts the findings and completes their remedies.
func (c *checker) result() []Broken {
	slices.SortFunc(c.found, func(a, b found) int {
		return cmp.Or(
			strings.Compare(a.From, b.From),
			strings.Compare(a.Field, b.Field),
			strings.Compare(a.To, b.To),
			strings.Compare(a.Why, b.Why),
		)
	})
	// The two objects of a duplicate name are often broken in the same way.
	c.found = slices.Compact(c.found)

	var all []Broken
	var names map[id][]string
	searched := 0
	for _, f := range c.found {
		if f.missing != (id{}) {
			near := ""
			if searched++; searched <= maxNearest {
				if names == nil {
					names = c.names()
				}
				near = nearest(f.missing.name, names[id{kind: f.missing.kind, namespace: f.missing.namespace}])
			}
			f.Why += remedy(f.missing, near)
		}
		all = append(all, f.Broken)
	}
	return all
}

func remedy(missing id, near string) string {
	if near == "" {
		return "; add it, or list " + missing.kind + "/" + missing.name +
			" in the annotation " + names.Expects + " if the cluster has it"
	}
	missing.name = near
	return "; did a prefix or patch rename it? nearest: " + missing.String()
}

func (c *checker) duplicateNames() {
	for dup := range c.duplicates {
		c.broken(ruleDuplicate, &object{id: dup}, place{path: "metadata.name"}, dup.String(),
			"the set has more than one object of this kind, namespace and name, and the last "+
				"applied would win; rename or drop one")
	}
}

// object checks what refers to something without having pods of its own.
func (c *checker) object(obj runtime.Object) {
	switch o := obj.(type) {
	case *corev1.Service:
		from := c.plain(obj, &o.ObjectMeta)
		c.service(&from, o)
	case *policyv1.PodDisruptionBudget:
		from := c.plain(obj, &o.ObjectMeta)
		c.selection(&from, place{path: "spec.selector"}, o.Spec.Selector)
	case *networkingv1.NetworkPolicy:
		from := c.plain(obj, &o.ObjectMeta)
		c.networkPolicy(&from, o)
	case *corev1.PersistentVolumeClaim:
		from := c.plain(obj, &o.ObjectMeta)
		c.claim(&from, o)
	case *corev1.PersistentVolume:
		from := c.plain(obj, &o.ObjectMeta)
		c.volume(&from, o)
	}
}

// plain names an object and reports the entries of its annotation that cannot
// be read.
func (c *checker) plain(obj runtime.Object, meta *metav1.ObjectMeta) object {
	from := object{id: idOf(obj, meta), notes: [3]map[string]string{meta.Annotations}}
	c.annotation(&from)
	return from
}

func (c *checker) service(from *object, s *corev1.Service) {
	if len(s.Spec.Selector) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	sel := &metav1.LabelSelector{MatchLabels: s.Spec.Selector}
	if !c.selection(from, place{path: "spec.selector"}, sel) {
		return
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		// A number needs no containerPort: that field only informs.
		if p.TargetPort.Type == intstr.String && !c.portNamed(from, sel, p.TargetPort.StrVal) {
			at := place{path: "spec", list: "ports", name: cmp.Or(p.Name, p.TargetPort.StrVal), part: "targetPort"}
			c.broken(ruleMismatch, from, at,
				"container port "+p.TargetPort.StrVal,
				"no container that the Service selects has a port of that name; name it in the "+
					"container's ports or give targetPort a number")
		}
	}
}

// portNamed reports whether a container of a selected pod names the port.
func (c *checker) portNamed(from *object, sel *metav1.LabelSelector, port string) bool {
	if from.expectsPods() {
		return true
	}
	for w := range c.selected(from.namespace, sel) {
		for _, list := range [][]corev1.Container{w.spec.Containers, w.spec.InitContainers} {
			for i := range list {
				for j := range list[i].Ports {
					if list[i].Ports[j].Name == port {
						return true
					}
				}
			}
		}
	}
	return false
}

func (c *checker) networkPolicy(from *object, p *networkingv1.NetworkPolicy) {
	c.selection(from, place{path: "spec.podSelector"}, &p.Spec.PodSelector)
	for i := range p.Spec.Ingress {
		c.peers(from, place{path: "spec", list: "ingress", name: itoa(i), part: "from"}, p.Spec.Ingress[i].From)
	}
	for i := range p.Spec.Egress {
		c.peers(from, place{path: "spec", list: "egress", name: itoa(i), part: "to"}, p.Spec.Egress[i].To)
	}
}

func (c *checker) peers(from *object, at place, peers []networkingv1.NetworkPolicyPeer) {
	for i := range peers {
		// With a namespaceSelector the pods may be another team's.
		if peers[i].NamespaceSelector == nil {
			at.item = itoa(i)
			c.selection(from, at, peers[i].PodSelector)
		}
	}
}

// selection reports whether a selector selects some pod of the namespace. An
// absent or empty one selects nothing or everything on purpose.
func (c *checker) selection(from *object, at place, sel *metav1.LabelSelector) bool {
	if sel == nil || len(sel.MatchLabels)+len(sel.MatchExpressions) == 0 || from.expectsPods() {
		return true
	}
	c.linkSelected(from, sel)
	for range c.selected(from.namespace, sel) {
		return true
	}
	c.broken(ruleSelector, from, at, "pods "+from.namespace+"/"+formatSelector(sel),
		"the selector matches the labels of no pod or pod template in the namespace; correct either, or list the "+
			"workload in the annotation "+
			names.Expects+" if the cluster has it")
	return false
}

func formatSelector(sel *metav1.LabelSelector) string {
	if len(sel.MatchExpressions) == 0 {
		return labels.Set(sel.MatchLabels).String()
	}
	return metav1.FormatLabelSelector(sel)
}

func (c *checker) claim(from *object, p *corev1.PersistentVolumeClaim) {
	if p.Spec.StorageClassName != nil { // most are the cluster's: nothing is wrong where there is none
		c.link(from, id{kind: "StorageClass", name: *p.Spec.StorageClassName}, Uses, "")
	}
	if p.Spec.VolumeName == "" {
		return
	}
	to := id{kind: "PersistentVolume", name: p.Spec.VolumeName}
	c.need(from, place{path: "spec.volumeName"}, to)
	pv, ok := c.objects[to].(*corev1.PersistentVolume)
	if !ok {
		return
	}
	class := ""
	if p.Spec.StorageClassName != nil {
		class = *p.Spec.StorageClassName
	}
	if class != pv.Spec.StorageClassName {
		c.refuse(from, place{path: "spec.storageClassName"}, to, "the claim's storageClassName is \""+class+
			"\" and the volume's is \""+pv.Spec.StorageClassName+"\", so they never bind; give both the same")
	}
}

func (c *checker) volume(from *object, p *corev1.PersistentVolume) {
	ref := p.Spec.ClaimRef
	// A volume of someone else may be bound to a claim of someone else.
	if ref == nil || p.Labels[names.LabelManagedBy] != names.ManagedBy {
		return
	}
	c.need(from, place{path: "spec.claimRef"}, id{"PersistentVolumeClaim", orDefault(ref.Namespace), ref.Name})
}
