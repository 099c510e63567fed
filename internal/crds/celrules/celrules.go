// Package celrules adds the last step of an API server to package crds: the
// CEL rules of a definition (x-kubernetes-validations). Input is a
// definition and an object, output the findings of both. It stands apart
// because CEL and the part of k8s.io/apiserver around it are a third of what the
// command links; tests evaluate what is rendered with it, the command does without.
package celrules

import (
	"context"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/tegen-dev/tegen/internal/crds"
)

// Evaluator is a definition with its rules compiled, which takes far longer than
// asking them. It is not for concurrent use.
type Evaluator struct {
	*crds.Definition
	compiled map[string]*cel.Validator // by version
}

// New makes an evaluator of a definition.
func New(d *crds.Definition) *Evaluator {
	return &Evaluator{Definition: d, compiled: map[string]*cel.Validator{}}
}

// Check is the definition's own, and then its rules. They are not asked about
// an object that is refused already: they may read what is not there.
func (e *Evaluator) Check(ctx context.Context, u *unstructured.Unstructured) []crds.Finding {
	stored, findings := e.Admit(u)
	if stored == nil {
		return findings
	}
	version := u.GroupVersionKind().Version
	rules, ok := e.compiled[version]
	if !ok {
		rules = cel.NewValidator(e.Schema(version), true, celconfig.PerCallLimit)
		e.compiled[version] = rules
	}
	if rules == nil {
		return findings
	}
	errs, _ := rules.Validate(ctx, nil, e.Schema(version), stored, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range errs {
		findings = append(findings, e.Refuse(u, err))
	}
	slices.SortFunc(findings, crds.Compare)
	return findings
}
