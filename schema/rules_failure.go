package schema

import (
	"fmt"
	"slices"
	"strings"
)

var failureRules = []rule{
	{(*validation).groupFailure, "groups failure"},
	{(*validation).failureByRule, "groups failure"},
	{(*validation).allInPlace, "groups failure"},
}

// groupFailure holds what a group says of its own failures together.
func (r *validation) groupFailure() {
	for i := range r.Spec.Groups {
		g := &r.Spec.Groups[i]
		if g.Failure == nil {
			continue
		}
		at, f := fmt.Sprintf("spec.groups[%d].failure", i), r.Spec.FailureOf(g.Name)
		for field, set := range map[string]bool{
			"fatalExitCodes": len(f.FatalExitCodes) > 0, "ignoreDisruptions": f.IgnoreDisruptions,
		} {
			if f.InPlace && set {
				r.fail(at+"."+field, "requires", "Kubernetes looks at pods that have failed for it, and of group %s "+
					"none does, since it is started again inPlace: leave one of them out", g.Name)
			}
		}
	}
}

// failureByRule holds rules against the groups that they name, and against the rules before them.
func (r *validation) failureByRule() {
	f, known := &r.Spec.Failure, append([]string{RoleWorker}, r.Spec.groupNames()...)
	if len(f.Rules) > 0 && f.RestartAll == nil {
		r.fail("spec.failure.rules", "requires", "rules need restartAll, which is not set: set restartAll to a "+
			"number, or to uncounted if only failures that do not count restart all pods; or leave rules out")
	}
	for i, rule := range f.Rules {
		at := fmt.Sprintf("spec.failure.rules[%d]", i)
		for n, name := range rule.Groups {
			if !slices.Contains(known, name) {
				r.fail(fmt.Sprintf("%s.groups[%d]", at, n), "unknown", "there is no group %s: one of %s", name,
					strings.Join(known, ", "))
			}
		}
		if before := slices.IndexFunc(f.Rules[:i], rule.within); before >= 0 {
			r.fail(at, "order", "rules[%d] decides each failure that this one is about: put this one before it, or "+
				"leave it out", before)
		}
	}
}

// within says whether an earlier rule decides all that a rule is about.
func (f FailureRule) within(earlier FailureRule) bool {
	covers := func(all, some []string) bool {
		return len(all) == 0 || len(some) > 0 && !slices.ContainsFunc(some, func(one string) bool {
			return !slices.Contains(all, one)
		})
	}
	return covers(earlier.Groups, f.Groups) && covers(earlier.Reasons, f.Reasons)
}

// allInPlace refuses limits on failed pods where JobSet's webhook wants none (kubernetes-sigs/jobset v0.12.0,
// pkg/webhooks/jobset_webhook.go): it makes pods that failed again, and counts the starts of all by restartAll.
func (r *validation) allInPlace() {
	f := &r.Spec.Failure
	if !f.RestartAllInPlace {
		return
	}
	if f.RestartAll == nil {
		r.fail("spec.failure.restartAllInPlace", "requires", "it says how all are started anew, and nothing says how "+
			"often: give restartAll, or leave it out")
	}
	const why = "with restartAllInPlace a pod that failed is made again without a limit of its own, and restartAll " +
		"counts the starts of all: leave one of them out"
	if r.IsSet("spec.failure.restarts") {
		r.fail("spec.failure.restarts", "requires", why)
	}
	if f.RestartsPerWorker != nil {
		r.fail("spec.failure.restartsPerWorker", "requires", why)
	}
	for i, g := range r.Spec.Groups {
		if g.Failure != nil && g.Failure.Restarts != nil {
			r.fail(fmt.Sprintf("spec.groups[%d].failure.restarts", i), "requires", why)
		}
	}
}
