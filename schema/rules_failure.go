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
		r.differentCodes(at, f.FatalExitCodes)
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

func (r *validation) differentCodes(at string, codes []int32) {
	for i, code := range codes {
		if slices.Contains(codes[:i], code) {
			r.fail(fmt.Sprintf("%s.fatalExitCodes[%d]", at, i), "duplicate", "%d is listed twice", code)
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
			switch at := fmt.Sprintf("%s.groups[%d]", at, n); {
			case !slices.Contains(known, name):
				r.fail(at, "unknown", "there is no group %s: one of %s", name, strings.Join(known, ", "))
			case slices.Contains(rule.Groups[:n], name):
				r.fail(at, "duplicate", "%s is listed twice", name)
			}
		}
		for n, reason := range rule.Reasons {
			if slices.Contains(rule.Reasons[:n], reason) {
				r.fail(fmt.Sprintf("%s.reasons[%d]", at, n), "duplicate", "%s is listed twice", reason)
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
	if r.isSet("spec.failure.restarts") {
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
