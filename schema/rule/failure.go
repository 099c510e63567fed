package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

var failureRules = []Rule{
	part.Of2(groupFailure, part.Groups, groupFailures),
	part.Of2(failureByRule, part.Failure, part.WorkersAndGroups),
	part.Of2(allInPlace, part.Failure, part.Groups),
	part.Of1(recreatedVolumes, part.Metadata),
	part.Of2(workloadHooks, part.GitOps, part.WorkloadAnnotations),
}

// groupFailures are what a failed pod of each group means.
var groupFailures = part.OfSpec("groups failure", func(s *job.Spec) (all []*job.Failure) {
	for _, name := range s.GroupNames() {
		all = append(all, s.FailureOf(name))
	}
	return all
})

// groupFailure refuses fields of a group's failure that contradict each other.
func groupFailure(p *Problems, groups []job.Group, failures []*job.Failure) {
	for i, f := range failures {
		if groups[i].Failure == nil {
			continue
		}
		for field, set := range map[string]bool{
			"fatalExitCodes": len(f.FatalExitCodes) > 0, "ignoreDisruptions": f.IgnoreDisruptions,
		} {
			if f.InPlace && set {
				p.fail(fmt.Sprintf("spec.groups[%d].failure.%s", i, field), "requires", "Kubernetes looks at pods "+
					"that have failed for it, and of group %s none does, since it is started again inPlace: leave "+
					"one of them out", groups[i].Name)
			}
		}
	}
}

// failureByRule refuses rules of failures that can have no effect: without restartAll, for groups that do not exist, or
// after a rule that decides the same failures.
func failureByRule(p *Problems, f *job.Failure, known []string) {
	if len(f.Rules) > 0 && f.RestartAll == nil {
		p.fail("spec.failure.rules", "requires", "rules need restartAll, which is not set: set restartAll to a "+
			"number, or to uncounted if only failures that do not count restart all pods; or leave rules out")
	}
	for i, rule := range f.Rules {
		at := fmt.Sprintf("spec.failure.rules[%d]", i)
		for n, name := range rule.Groups {
			if !slices.Contains(known, name) {
				p.fail(fmt.Sprintf("%s.groups[%d]", at, n), "unknown", "there is no group %s: one of %s", name,
					strings.Join(known, ", "))
			}
		}
		if before := slices.IndexFunc(f.Rules[:i], rule.Within); before >= 0 {
			p.fail(at, "order", "rules[%d] decides each failure that this one is about: put this one before it, or "+
				"leave it out", before)
		}
	}
}

// allInPlace refuses limits on failed pods that JobSet's webhook refuses (kubernetes-sigs/jobset v0.12.0,
// pkg/webhooks/jobset_webhook.go): JobSet recreates failed pods and counts only restarts of all, by restartAll.
func allInPlace(p *Problems, f *job.Failure, groups []job.Group) {
	if !f.RestartAllInPlace {
		return
	}
	if f.RestartAll == nil {
		p.fail("spec.failure.restartAllInPlace", "requires", "it says how all are started anew, and nothing says how "+
			"often: give restartAll, or leave it out")
	}
	const why = "with restartAllInPlace a pod that failed is made again without a limit of its own, and restartAll " +
		"counts the starts of all: leave one of them out"
	if p.IsSet("spec.failure.restarts") {
		p.fail("spec.failure.restarts", "requires", why)
	}
	if f.RestartsPerWorker != nil {
		p.fail("spec.failure.restartsPerWorker", "requires", why)
	}
	for i, g := range groups {
		if g.Failure != nil && g.Failure.Restarts != nil {
			p.fail(fmt.Sprintf("spec.groups[%d].failure.restarts", i), "requires", why)
		}
	}
}

// recreatedVolumes refuses labels and annotations of metadata that make Argo CD or Flux delete and recreate an object:
// all objects of the job get them, its claims and volumes too.
func recreatedVolumes(p *Problems, m *job.Metadata) {
	const loses = "%q has a reconciler delete and make anew the claims and volumes of the job too, and with them its " +
		"data: %s"
	for key, value := range m.Annotations {
		if names.Recreates(key, value) {
			remedy := "say it of the workload alone, in spec.workload.annotations"
			if names.IsHook(key, value) {
				remedy = "leave it out"
			}
			p.failKey("metadata.annotations", key, "data", loses, job.Said(key, value), remedy)
		}
	}
	for key, value := range m.Labels {
		if names.Recreates(key, value) {
			p.failKey("metadata.labels", key, "data", loses, value, "say it of the workload alone, in "+
				"spec.workload.labels")
		}
	}
}

// workloadHooks refuses annotations that make a hook of the workload, if a reconciler applies it.
func workloadHooks(p *Problems, gitops bool, annotations map[string]string) {
	for key, value := range annotations {
		refuseHook(p, gitops, "spec.workload.annotations", key, value)
	}
}

// podHooks is workloadHooks for bare pods. A controller makes those of other targets.
func podHooks(p *Problems, gitops bool, target string, patches []patch) {
	for _, patch := range patches {
		for key, value := range patch.Metadata.Annotations {
			if text, ok := value.(string); ok {
				refuseHook(p, gitops && target == job.TargetPods, patch.at+".metadata.annotations", key, text)
			}
		}
	}
}

func refuseHook(p *Problems, applied bool, mapping, key, value string) {
	if applied && names.IsHook(key, value) {
		p.failKey(mapping, key, "hook", "%q is a hook, which Argo CD deletes and makes anew with each sync, so that "+
			"the training runs again: leave it out", value)
	}
}
