package importer

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// What a failure policy of a JobSet does.
const (
	actionFail      = "FailJobSet"
	actionRestart   = "RestartJobSet" // which the set does where no rule applies, too
	actionUncounted = "RestartJobSetAndIgnoreMaxRestarts"

	actionJobUncounted = "RestartJobAndIgnoreMaxRestarts"
)

// thenOf are a TrainingJob's words for them.
var thenOf = map[string]string{
	actionFail: job.ThenFail, actionRestart: job.ThenRestart, actionUncounted: job.ThenRestartUncounted,
	"RestartJob": job.ThenRestartGroup, actionJobUncounted: job.ThenRestartGroupUncounted,
}

// setRestarts reads how often all Jobs of a set start anew, and for which failures otherwise. A Job's own failed pods
// are counted from 0 each time; where it says nothing of them, Kubernetes replaces six.
func (d *draft) setRestarts(spec, child view) {
	policy, j, train := spec.at("failurePolicy"), child.at("template", "spec"), child.at("name").text()
	if !policy.isSet() {
		return
	}
	restarts, disrupted := policy.at("maxRestarts"), false
	n, _ := restarts.number()
	rules := policy.at("rules").items()
	for len(rules) > 0 && rules[len(rules)-1].at("action").text() == actionRestart {
		d.note(rules[len(rules)-1], Translated, "a set does so by itself where no rule applies")
		translatedRule(rules[len(rules)-1])
		rules = rules[:len(rules)-1]
	}
	own, next := len(rules), 4
	for own > 0 && slices.Contains([]int{1, 2, 3}[:next-1], derived(spec, rules[own-1])) {
		own--
		next = derived(spec, rules[own])
		disrupted = disrupted || rules[own].at("action").text() == actionUncounted
		rules[own].at("name").markTranslated()
	}
	if n == 0 && !disrupted && !slices.ContainsFunc(rules[:own], restartsUncounted) {
		d.withoutPolicy(policy, rules[:own])
		return
	}
	carried := true
	for _, rule := range rules[:own] {
		carried = d.failureRule(rule, train) && carried
	}
	if carried {
		policy.at("rules").markTranslated() // names of groups and of rules differ
	}
	if failsOnDisruption(j) && d.toldApart(spec, child, train) {
		d.set("spec.failure.ignoreDisruptions", true, j)
	}
	if n == 0 && !disrupted && !d.get("spec.failure.rules").isSet() { // as without a policy
		d.withoutPolicy(policy, nil)
		return
	}
	if n == 0 {
		d.set("spec.failure.restartAll", job.Uncounted, orElse(restarts, policy))
		if restarts.isSet() {
			d.note(restarts, Translated, "it is the default, which is not rendered")
			restarts.markTranslated()
		}
	} else {
		d.set("spec.failure.restartAll", n, orElse(restarts, policy))
	}
	if d.restartsInPlace() {
		d.set("spec.failure.restartAllInPlace", true, policy.at("restartStrategy"))
		return
	}
	if !j.at("backoffLimit").isSet() && !j.at("backoffLimitPerIndex").isSet() {
		d.set("spec.failure.restarts", int64(6), j)
	}
}

// withoutPolicy reads a policy with which every failure ends the set, whatever its rules distinguish.
func (d *draft) withoutPolicy(policy view, rules []view) {
	policy.at("rules").markTranslated()
	for _, rule := range rules {
		d.note(rule, Translated, "with maxRestarts 0, every failure ends the set with or without this rule")
		translatedRule(rule)
		rule.at("onJobFailureMessagePatterns").markTranslated()
	}
	if restarts := policy.at("maxRestarts"); restarts.isSet() {
		d.note(restarts, Translated, "a set that never starts anew is as one without a policy")
		restarts.markTranslated()
	}
}

// restartsUncounted reports whether a rule restarts something however often it applies.
func restartsUncounted(rule view) bool {
	action := rule.at("action").text()
	return action == actionUncounted || action == actionJobUncounted
}

// restartsInPlace says whether the Jobs of a set never fail, since its pods are restarted where they are.
func (d *draft) restartsInPlace() bool {
	return d.workload[0].view().at("spec", "failurePolicy", "restartStrategy").text() == "InPlaceRestart"
}

// failureRule carries a rule over. One that looks at messages stays where it is, and is reported as dropped.
func (d *draft) failureRule(rule view, train string) bool {
	then := thenOf[rule.at("action").text()]
	if then == "" || rule.at("onJobFailureMessagePatterns").isSet() {
		return false
	}
	own := tree{"then": then}
	var groups []any
	for _, name := range rule.at("targetReplicatedJobs").texts() {
		groups = append(groups, d.groupOf(name, train))
	}
	if groups != nil {
		own["groups"] = groups
	}
	if reasons := listOf(rule.at("onJobFailureReasons").value); len(reasons) > 0 {
		own["reasons"] = clone(reasons)
	}
	d.add("spec.failure.rules", own, rule)
	translatedRule(rule)
	return true
}

func translatedRule(rule view) {
	rule.markTranslated()
	for _, field := range []string{"action", "targetReplicatedJobs", "onJobFailureReasons", "name"} {
		rule.at(field).markTranslated()
	}
}

// derived says which of the rules that follow from what the Jobs of a set say one is, in the order in which they are
// rendered, 0 where it is none: disruptions that do not count, exit codes that are fatal, a time that is up.
func derived(spec, rule view) int {
	reasons := rule.at("onJobFailureReasons").texts()
	if rule.at("targetReplicatedJobs").isSet() || len(reasons) != 1 {
		return 0
	}
	fatal, disrupted, late := false, false, false
	for _, item := range spec.at("replicatedJobs").items() {
		job := item.at("template", "spec")
		fatal, disrupted = fatal || len(fatalCodes(job)) > 0, disrupted || failsOnDisruption(job)
		late = late || job.at("activeDeadlineSeconds").isSet()
	}
	byMessage := rule.at("onJobFailureMessagePatterns").isSet()
	action, reason := rule.at("action").text(), reasons[0]
	switch {
	case action == actionUncounted && reason == batchv1.JobReasonPodFailurePolicy && disrupted && fatal == byMessage:
		return 1
	case action == actionFail && reason == batchv1.JobReasonPodFailurePolicy && fatal && !byMessage:
		return 2
	case action == actionFail && reason == batchv1.JobReasonDeadlineExceeded && late && !byMessage:
		return 3
	}
	return 0
}

// toldApart says whether a disruption of a Job, which fails it by its podFailurePolicy, is decided by a rule that the
// draft has, or starts the set anew without being counted, which is rendered of ignoreDisruptions.
func (d *draft) toldApart(spec, item view, train string) bool {
	name := item.at("name").text()
	if uncounted(spec, name) {
		return true
	}
	has := func(list view, one string) bool { return !list.isSet() || slices.Contains(list.texts(), one) }
	return slices.ContainsFunc(d.get("spec.failure.rules").items(), func(rule view) bool {
		return has(rule.at("groups"), d.groupOf(name, train)) &&
			has(rule.at("reasons"), batchv1.JobReasonPodFailurePolicy)
	})
}

// uncounted says whether a set starts anew without counting it when a Job has failed by its podFailurePolicy.
func uncounted(spec view, name string) bool {
	for _, rule := range spec.at("failurePolicy", "rules").items() {
		targets, reasons := rule.at("targetReplicatedJobs").texts(), rule.at("onJobFailureReasons").texts()
		if (len(targets) == 0 || slices.Contains(targets, name)) &&
			(len(reasons) == 0 || slices.Contains(reasons, batchv1.JobReasonPodFailurePolicy)) {
			return rule.at("action").text() == actionUncounted
		}
	}
	return false
}

// failsOnDisruption says whether a disruption fails a Job at once, so that its set can tell it from other failures.
func failsOnDisruption(job view) bool { return onDisruption(job, "FailJob") }

func onDisruption(job view, action string) bool {
	return slices.ContainsFunc(job.at("podFailurePolicy", "rules").items(), func(rule view) bool {
		return rule.at("action").text() == action && slices.ContainsFunc(rule.at("onPodConditions").items(),
			func(condition view) bool { return condition.at("type").text() == string(corev1.DisruptionTarget) })
	})
}

// fatalCodes are the exit codes that fail a Job at once.
func fatalCodes(job view) []any {
	for _, rule := range job.at("podFailurePolicy", "rules").items() {
		if codes := rule.at("onExitCodes"); rule.at("action").text() == "FailJob" &&
			codes.at("operator").text() == "In" {
			return listOf(codes.at("values").value)
		}
	}
	return nil
}

// groupFailure reads what the Job of a group says of its failures, where it differs from what the workers' says.
func (d *draft) groupFailure(i int, job view, uncounted bool) {
	at := fmt.Sprintf("spec.groups[%d].failure.", i)
	workers, policy := d.get("spec.failure"), job.at("template", "spec", "restartPolicy")
	inPlace := policy.text() == "OnFailure" || !policy.isSet() && d.workload[0].gvk.Group != "batch"
	ignores := workers.at("ignoreDisruptions").isTrue()
	if inPlace != workers.at("inPlace").isTrue() {
		d.set(at+"inPlace", inPlace, orElse(policy, job))
		ignores = ignores && !inPlace
	}
	if own := onDisruption(job, "Ignore") || failsOnDisruption(job) && uncounted; own != ignores && !inPlace {
		d.set(at+"ignoreDisruptions", own, orElse(job.at("podFailurePolicy"), job))
	}
	if codes := fatalCodes(job); len(codes) > 0 {
		d.set(at+"fatalExitCodes", clone(codes), job.at("podFailurePolicy"))
	}
	limit := job.at("backoffLimit")
	if d.restartsInPlace() || job.at("backoffLimitPerIndex").isSet() {
		return
	}
	most, said := workers.at("restarts").number()
	if !said && !workers.at("restartAll").isSet() {
		most = 6
	}
	if n, ok := limit.number(); ok && n <= mostRestarts && (n != most || workers.at("restartsPerWorker").isSet()) {
		d.set(at+"restarts", n, limit)
	} else if !ok && most != 6 {
		d.set(at+"restarts", int64(6), job)
	}
}
