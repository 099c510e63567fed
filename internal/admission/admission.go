// Package admission turns policies into ValidatingAdmissionPolicies, so that an API server checks the same rules.
//
// Input: a policy and the namespaces where it holds.
// Output: Kubernetes objects, or every rule that the server cannot check, with its position; and warnings about rules
// for fields that the server sets.
// Invariant: no rule is left out. A test compares the verdicts of an API server with those of tegen.
package admission

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/spelling"
)

// Options are the settings of an export.
type Options struct {
	Name       string   // the names of all objects start with it
	Namespaces []string // where the policy holds
	Actions    []admissionv1.ValidationAction
	// Cluster allows rules for objects that are in no namespace. They hold in the whole cluster.
	Cluster bool
}

// ParseActions reads what happens to a violation: deny, warn and audit.
func ParseActions(names []string) (actions []admissionv1.ValidationAction, err error) {
	known := []string{"deny", "warn", "audit"}
	all := []admissionv1.ValidationAction{admissionv1.Deny, admissionv1.Warn, admissionv1.Audit}
	for _, name := range names {
		at := slices.Index(known, name)
		switch {
		case at < 0:
			return nil, fmt.Errorf("unknown action %q: it takes deny, warn and audit%s", name,
				spelling.Suggest(name, known))
		case slices.Contains(actions, all[at]):
			return nil, fmt.Errorf("%s is there twice", name)
		}
		actions = append(actions, all[at])
	}
	switch {
	case len(actions) == 0:
		return nil, errors.New("needs deny, warn or audit")
	case slices.Contains(actions, admissionv1.Deny) && slices.Contains(actions, admissionv1.Warn):
		return nil, errors.New("cannot be both deny and warn: an API server refuses such a binding")
	}
	return actions, nil
}

// Export returns a ValidatingAdmissionPolicy and its binding for the rules for pods, and for those of each kind of
// object. The error is a finding.List.
func Export(p *policy.Policy, o Options) ([]runtime.Object, error) {
	var objects []runtime.Object
	var mistakes finding.List
	if p.HasPodRules() {
		validations, err := p.PodCEL("p")
		mistakes = append(mistakes, finding.Of(err)...)
		spec := podPolicy(validations)
		mistakes = append(mistakes, tooLarge("pod", spec)...)
		objects = append(objects, o.objects("pods", spec, false)...)
	}
	for _, k := range constrained(p) {
		validations, err := k.validations(p)
		if err != nil {
			mistakes = append(mistakes, finding.Of(err)...)
			continue
		}
		cluster := apis.ClusterScoped(k.Kind.Kind)
		switch {
		case slices.Contains(unserved, k.Kind.Kind):
			mistakes = append(mistakes, k.mistake("an API server has no such objects to check: leave the rules out").
				At(validations[0].Rule))
		case cluster && !o.Cluster:
			mistakes = append(mistakes, k.mistake("these objects are in no namespace, so that the rules would hold in "+
				"the whole cluster: add --cluster-scoped, or keep them in a file of their own").At(validations[0].Rule))
		}
		spec := specOf([]schema.GroupVersionResource{resourceOf(k.GroupVersionKind)}, validations)
		mistakes = append(mistakes, tooLarge("object."+k.name, spec)...)
		objects = append(objects, o.objects(k.policyName(), spec, cluster)...)
	}
	if err := mistakes.Once().Err(); err != nil {
		return nil, err
	}
	return objects, nil
}

// maxPolicy leaves room for the annotation of 'kubectl apply' in the 1.5 MiB that etcd takes for an object.
const maxPolicy = 700_000

// tooLarge refuses a policy that a server could not store: its binding would stay without it, and nothing be checked.
func tooLarge(name string, spec admissionv1.ValidatingAdmissionPolicySpec) finding.List {
	size := 0
	for _, v := range spec.Validations {
		size += len(v.Expression) + len(v.Message)
	}
	if size <= maxPolicy {
		return nil
	}
	return finding.List{{Rule: "policy/cluster", Level: finding.Error, Message: fmt.Sprintf(
		"%s: the rules have %d bytes as one object of an API server, and the limit is %d: split them into several "+
			"policies and export each with its own --name", name, size, maxPolicy)}}
}

// unserved are kinds that clients send or receive and that no API server stores.
var unserved = []string{"Binding", "ComponentStatus", "Eviction", "PodStatusResult", "RangeAllocation"}

// objectKind is a kind that a policy has rules for.
type objectKind struct {
	render.Kind
	name string // by which a rule names it first
}

// constrained are the kinds of objects that a policy has rules for. A kind can be named with and without its group.
func constrained(p *policy.Policy) (all []objectKind) {
	kinds, seen := render.Kinds(), map[schema.GroupVersionKind]bool{}
	for _, name := range p.ObjectKinds() {
		for _, k := range kinds[name] {
			if !seen[k.GroupVersionKind] {
				seen[k.GroupVersionKind] = true
				all = append(all, objectKind{k, name})
			}
		}
	}
	return all
}

func (k objectKind) mistake(message string) finding.Finding {
	return finding.Finding{Rule: "policy/cluster", Level: finding.Error, Message: "object." + k.name + ": " + message}
}

// policyName has the version too, since a kind can have several.
func (k objectKind) policyName() string {
	name := strings.ToLower(k.Kind.Kind)
	if k.Group != "" {
		name += "-" + strings.ReplaceAll(k.Group, ".", "-") + "-" + k.Version
	}
	return "object-" + name
}

func resourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	return gvk.GroupVersion().WithResource(apis.Plural(gvk.Kind))
}

// objects are a policy and its binding.
func (o Options) objects(name string, spec admissionv1.ValidatingAdmissionPolicySpec, cluster bool) []runtime.Object {
	fail := admissionv1.Fail
	spec.FailurePolicy = &fail
	name = o.Name + "-" + name
	labels := map[string]string{"app.kubernetes.io/managed-by": "tegen"}
	binding := admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: o.Actions}
	if !cluster { // a server compares the selector with a Namespace's own labels
		binding.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: o.Namespaces,
			}},
		}}
	}
	version := admissionv1.SchemeGroupVersion.String()
	return []runtime.Object{
		&admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: spec,
		},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: binding,
		},
	}
}

// podPolicy matches every kind of object that has pods.
func podPolicy(validations []policy.Validation) admissionv1.ValidatingAdmissionPolicySpec {
	for i := range validations {
		v := &validations[i]
		now, before := "variables.pods.all(p, "+v.Expression+")", "variables.before.all(p, "+v.Expression+")"
		v.Expression = unlessViolatedBefore(now, before)
	}
	spec := specOf(podKinds(), validations)
	spec.Variables = []admissionv1.Variable{
		{Name: "pods", Expression: podsOf("object")},
		{Name: "before", Expression: podsOf("oldObject")},
	}
	return spec
}

// validations are the rules for one kind of object.
func (k objectKind) validations(p *policy.Policy) ([]policy.Validation, error) {
	now, err := p.ObjectCEL(k.Kind.Kind, k.Group, "object")
	if err != nil {
		return nil, err
	}
	before, err := p.ObjectCEL(k.Kind.Kind, k.Group, "oldObject")
	for i := range before {
		now[i].Expression = unlessViolatedBefore("("+now[i].Expression+")", "("+before[i].Expression+")")
	}
	return now, err
}

// unlessViolatedBefore admits a change of what violated the rule before. Otherwise the finalizers of an object that is
// older than the policy could not be removed, and a pod with a node, which the scheduler has set, could not be changed.
func unlessViolatedBefore(now, before string) string {
	return now + " || request.operation == 'UPDATE' && !" + before
}

func specOf(resources []schema.GroupVersionResource, validations []policy.Validation,
) admissionv1.ValidatingAdmissionPolicySpec {
	spec := admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: matching(resources)},
	}
	for _, v := range validations {
		spec.Validations = append(spec.Validations, admissionv1.Validation{
			Expression: v.Expression, Message: message(v),
		})
	}
	return spec
}

// message is that of tegen's own findings. The server refuses line breaks in it.
func message(v policy.Validation) string {
	path := strings.NewReplacer(`["[]"]`, "[]", `["[*]"]`, "[*]").Replace(v.Path.String())
	return strings.Join(strings.Fields(fmt.Sprintf("%s: %s (%s)", path, v.Message, v.Rule)), " ")
}

// matching has one rule for each group and version.
func matching(resources []schema.GroupVersionResource) (rules []admissionv1.NamedRuleWithOperations) {
	named := map[schema.GroupVersion][]string{}
	for _, r := range resources {
		gv := r.GroupVersion()
		named[gv] = append(named[gv], r.Resource)
		if r.Resource == "pods" { // both change the containers of a pod
			named[gv] = append(named[gv], "pods/ephemeralcontainers", "pods/resize")
		}
	}
	for _, gv := range slices.SortedFunc(maps.Keys(named), func(a, b schema.GroupVersion) int {
		return strings.Compare(a.String(), b.String())
	}) {
		slices.Sort(named[gv])
		rules = append(rules, admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{
				APIGroups: []string{gv.Group}, APIVersions: []string{gv.Version}, Resources: named[gv],
			},
		}})
	}
	return rules
}
