package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

var failureRules = []oldRule{
	{(*Validation).groupFailure, "groups failure"},
	{(*Validation).failureByRule, "groups failure"},
	{(*Validation).allInPlace, "groups failure"},
}

// groupFailure holds what a group says of its own failures together.
func (r *Validation) groupFailure() {
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
func (r *Validation) failureByRule() {
	f, known := &r.Spec.Failure, append([]string{job.RoleWorker}, r.Spec.GroupNames()...)
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
		if before := slices.IndexFunc(f.Rules[:i], rule.Within); before >= 0 {
			r.fail(at, "order", "rules[%d] decides each failure that this one is about: put this one before it, or "+
				"leave it out", before)
		}
	}
}

// allInPlace refuses limits on failed pods where JobSet's webhook wants none (kubernetes-sigs/jobset v0.12.0,
// pkg/webhooks/jobset_webhook.go): it makes pods that failed again, and counts the starts of all by restartAll.
func (r *Validation) allInPlace() {
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

// recreated refuses labels and annotations of metadata by which Argo CD or Flux delete an object and make it anew: they
// are for all objects of a job, its claims and volumes among them.
func (r *Validation) recreated() {
	for key, value := range r.Metadata.Annotations {
		if names.Recreates(key, value) {
			remedy := "say it of the workload alone, in spec.workload.annotations"
			if names.IsHook(key, value) {
				remedy = "leave it out"
			}
			r.failKey("metadata.annotations", key, "data", "%q has a reconciler delete and make anew the claims and "+
				"volumes of the job too, and with them its data: %s", job.Said(key, value), remedy)
		}
	}
	for key, value := range r.Metadata.Labels {
		if names.Recreates(key, value) {
			r.failKey("metadata.labels", key, "data", "%q has a reconciler delete and make anew the claims and "+
				"volumes of the job too, and with them its data: say it of the workload alone, in "+
				"spec.workload.labels", value)
		}
	}
}

// hooks refuses to make a hook of what trains, where a reconciler applies it.
func (r *Validation) hooks() {
	if !r.Spec.GitOps {
		return
	}
	refuse := func(mapping, key, value string) {
		if names.IsHook(key, value) {
			r.failKey(mapping, key, "hook", "%q is a hook, which Argo CD deletes and makes anew with each sync, so "+
				"that the training runs again: leave it out", value)
		}
	}
	for key, value := range r.Spec.Workload.Annotations {
		refuse("spec.workload.annotations", key, value)
	}
	if r.Spec.Target != job.TargetPods { // a controller makes those of the others
		return
	}
	for _, p := range r.patches() {
		for key, value := range p.Metadata.Annotations {
			if text, ok := value.(string); ok {
				refuse(p.at+".metadata.annotations", key, text)
			}
		}
	}
}
