package schema

import (
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
)

// Option changes what Load checks.
type Option func(*loading)

// loading is how documents are loaded.
type loading struct {
	git    bool // the value of gitops where neither a job nor the Environment sets it
	policy *policy.Policy

	objectsOnly bool // the policy's rules for jobs were checked before

	fence **policy.Policy // where the rules of the Environment go, if somebody wants them
}

// WithPolicy checks complete jobs against a platform's policy. The jobs keep it for the objects that they render to.
func WithPolicy(p *policy.Policy) Option { return func(o *loading) { o.policy = p } }

// FenceOf returns the rules of an Environment with a fence, to hold objects against them that were rendered before.
func FenceOf(name string, text []byte) (*policy.Policy, error) {
	var fence *policy.Policy
	source := Source{Name: name, Data: text, Environment: AnyEnvironment}
	_, err := Load([]Source{source}, func(o *loading) { o.fence = &fence })
	if err == nil && fence == nil {
		err = Errors{{File: name, Line: 1, Col: 1, Rule: "policy", Msg: "it has no rules: set spec.fence"}}
	}
	return fence, err
}

// WithoutJobRules leaves out the rules of policies for jobs, to see what else a job that violates them does.
func WithoutJobRules() Option { return func(o *loading) { o.objectsOnly = true } }

// PolicyOf returns the policy among options, nil if there is none.
func PolicyOf(opts []Option) *policy.Policy {
	var o loading
	for _, option := range opts {
		option(&o)
	}
	return o.policy
}

// judge checks a complete job, besides what was found before its Environment was merged into it. Mistakes are where the
// author, or the Environment, wrote the value.
func (o *loading) judge(j *job.Job, root *structural.Node, errs Errors) Errors {
	if o.objectsOnly {
		return nil
	}
	violations, err := j.Policy().Job(j)
	if err != nil {
		return Errors{root.Errorf("", "policy", "%v", err)}
	}
	for _, v := range violations {
		errs = append(errs, root.Errorf(v.Path.String(), "policy", "%s", v))
	}
	return errs
}
