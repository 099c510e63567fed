package meaning

import (
	"cmp"
	"slices"
	"strings"
)

// podFailureFacts say what a Job does with failed pods: the first rule that applies decides, a condition's status is
// True by default, and a container that is not named is any (Kubernetes, staging/src/k8s.io/api/batch/v1/types.go).
func podFailureFacts(f facts, job node) {
	var all []string
	rules := job.at("podFailurePolicy", "rules")
	for _, rule := range rules.items() {
		var on []string
		for _, condition := range rule.at("onPodConditions").items() {
			on = append(on, condition.at("type").text()+" is "+cmp.Or(condition.at("status").text(), "True"))
		}
		if codes := rule.at("onExitCodes"); codes.isSet() {
			container := codes.at("containerName").text()
			if first := job.at("template", "spec", "containers").items(); len(first) > 0 &&
				container == first[0].at("name").text() {
				container = "its first container"
			}
			on = append(on, container+" exits "+codes.at("operator").text()+" "+codes.at("values").json())
		}
		all = append(all, rule.at("action").text()+" when "+strings.Join(on, " or "))
	}
	if all != nil {
		f.set("podFailurePolicy.rules", strings.Join(all, ", else "), rules)
	}
}

// failureFacts say, for each reason for which a Job of a set may fail, what the JobSet does: the action of the first
// rule that applies, and else RestartJobSet. What a rule is called is read by people alone, as the reason of a
// condition (kubernetes-sigs/jobset v0.12.0, pkg/controllers/failure_policy.go).
func failureFacts(f facts, rules node, name string, job node) {
	for _, reason := range reasonsOf(job) {
		if action := actionOn(rules.items(), name, reason); action != "RestartJobSet" {
			f.set("when it fails by "+reason, action, rules)
		}
	}
}

// byExitCode marks the reason PodFailurePolicy where it is not a disruption.
const byExitCode = " by exit code"

func actionOn(rules []node, name, reason string) (action string) {
	plain, coded := strings.CutSuffix(reason, byExitCode)
	for _, rule := range rules {
		targets, reasons := rule.at("targetReplicatedJobs").texts(), rule.at("onJobFailureReasons").texts()
		if len(targets) > 0 && !slices.Contains(targets, name) || len(reasons) > 0 && !slices.Contains(reasons, plain) {
			continue
		}
		switch patterns := strings.Join(rule.at("onJobFailureMessagePatterns").texts(), " or "); {
		case patterns == "condition DisruptionTarget" && coded:
			continue
		case patterns != "" && patterns != "condition DisruptionTarget":
			action += "with " + patterns + " " + rule.at("action").text() + ", else "
			continue
		}
		return action + rule.at("action").text()
	}
	return action + "RestartJobSet"
}

// reasonsOf are the reasons for which a Job can fail (Kubernetes, pkg/controller/job/job_controller.go).
func reasonsOf(job node) []string {
	all := []string{"BackoffLimitExceeded"}
	if job.at("backoffLimitPerIndex").isSet() {
		all = []string{"FailedIndexes", "MaxFailedIndexesExceeded"}
	}
	if job.at("activeDeadlineSeconds").isSet() {
		all = append(all, "DeadlineExceeded")
	}
	for _, rule := range job.at("podFailurePolicy", "rules").items() {
		switch {
		case rule.at("action").text() != "FailJob":
		case rule.at("onExitCodes").isSet():
			all = append(all, "PodFailurePolicy"+byExitCode)
		default:
			all = append(all, "PodFailurePolicy")
		}
	}
	return all
}
