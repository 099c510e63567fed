// Package crds predicts what an API server does with custom resources, by the
// CustomResourceDefinitions that it has: which fields it drops silently, and
// what it refuses.
//
// Input is the text of definitions (apiextensions v1, and v1beta1 of old
// controllers) and objects of any origin. Output is one Finding for every field
// at fault. The steps are those of an API server, in its order: fill in the
// schema's defaults, prune, validate; package celrules evaluates rules in CEL,
// which link far more.
// Invariant: each definition is evaluated alone, so where two files define one
// kind, as two releases of a controller do, both verdicts are reported; and no
// input object is changed.
package crds

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/finding"
)

// Verdict is what becomes of a field.
type Verdict int

// The verdicts of an API server.
const (
	Dropped Verdict = iota // the object is accepted, the field is lost
	Refused                // the object is not accepted
)

// Finding is one field that an API server would not keep as it is written.
type Finding struct {
	Object  string // "ElasticJob.elastic.pytorch.org training/bert"
	Field   string // "spec.replicaSpecs.Worker.replicas"
	File    string // of the definition with that rule
	Verdict Verdict
	Why     string // the rule, and the remedy
}

func (f Finding) String() string {
	return inOneLine.Replace(f.Object + ": " + f.Field + ": " + f.File + ": " + f.Why)
}

// Finding is the field as what machines read too.
func (f Finding) Finding() finding.Finding {
	rule := "crd/dropped"
	if f.Verdict == Refused {
		rule = "crd/refused"
	}
	return finding.Finding{
		Rule: rule, Level: finding.Error, Object: f.Object, Field: inOneLine.Replace(f.Field),
		Message: inOneLine.Replace(f.File + ": " + f.Why), Text: f.String(),
	}
}

// inOneLine writes out what would break a message in two: the name of a key may
// hold a line end.
var inOneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// Undefined is the custom resources of one kind that has no definition.
type Undefined struct {
	Kind    schema.GroupKind
	Objects []string // "training/bert", in the order of the input
}

// Check evaluates every custom resource among the objects against every
// definition of its kind, and names those that have none. Findings are sorted by object,
// field and file.
func Check(definitions []*Definition, objects []runtime.Object) ([]Finding, []Undefined) {
	byKind := map[schema.GroupKind][]*Definition{}
	for _, d := range definitions {
		byKind[d.Kind] = append(byKind[d.Kind], d)
	}
	var findings []Finding
	var undefined []Undefined
	for _, obj := range objects {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue // a type of Kubernetes itself
		}
		kind := u.GroupVersionKind().GroupKind()
		for _, d := range byKind[kind] {
			findings = append(findings, d.Check(u)...)
		}
		if byKind[kind] == nil && Custom(u) {
			undefined = note(undefined, kind, u)
		}
	}
	slices.SortFunc(findings, Compare)
	return findings, undefined
}

func note(all []Undefined, kind schema.GroupKind, u *unstructured.Unstructured) []Undefined {
	i := slices.IndexFunc(all, func(have Undefined) bool { return have.Kind == kind })
	if i < 0 {
		i = len(all)
		all = append(all, Undefined{Kind: kind})
	}
	all[i].Objects = append(all[i].Objects, inOneLine.Replace(fullName(u)))
	return all
}

// builtIn are the API groups with a dot that an API server has without a CRD.
// The suffix .k8s.io alone does not tell: approved CRDs have it too.
var builtIn = []string{
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
	"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io",
	"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}

// Custom reports whether only a CRD defines the object's kind in an API server.
// Files that are never applied do not count: those of kustomize, and what is
// marked as local.
func Custom(u *unstructured.Unstructured) bool {
	group := u.GroupVersionKind().Group
	return strings.Contains(group, ".") && !slices.Contains(builtIn, group) && group != "kustomize.config.k8s.io" &&
		u.GetAnnotations()["config.kubernetes.io/local-config"] != "true"
}

// Compare is the order of findings: by object, field and file.
func Compare(a, b Finding) int {
	return cmp.Or(
		strings.Compare(a.Object, b.Object),
		strings.Compare(a.Field, b.Field),
		strings.Compare(a.File, b.File),
		strings.Compare(a.Why, b.Why),
	)
}

// object names a custom resource as the check of references does: with its
// group, since kinds of several groups share their names, and with the
// namespace that it would get.
func object(u *unstructured.Unstructured, namespaced bool) string {
	name := fullName(u)
	if namespaced && u.GetNamespace() == "" {
		name = metav1.NamespaceDefault + "/" + name
	}
	return u.GroupVersionKind().GroupKind().String() + " " + name
}

func fullName(u *unstructured.Unstructured) string {
	name := cmp.Or(u.GetName(), u.GetGenerateName(), "(without a name)")
	if u.GetNamespace() == "" {
		return name
	}
	return u.GetNamespace() + "/" + name
}
