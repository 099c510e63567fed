package schema

import (
	"fmt"
	"slices"
)

// groupNotes tell what the numbers of a job with several groups, or with restarts of all, come to together.
func (s *Spec) groupNotes() (notes []string) {
	f := &s.Failure
	if all := f.RestartAll; all != nil && f.RestartsPerWorker == nil && f.Restarts.Limit > 0 {
		notes = append(notes, fmt.Sprintf("spec.failure.restarts: it counts anew each time all pods are started anew: "+
			"of a group, %d pods may fail before the job does", (int32(*all)+1)*(f.Restarts.Limit+1)))
	}
	switch {
	case f.Deadline == nil || s.Target != TargetJobSet:
	case f.RestartAll != nil && *f.RestartAll > 0 || f.RestartAll != nil && f.IgnoreDisruptions:
		notes = append(notes, "spec.failure.deadline: the clock of a JobSet's Jobs starts anew with each restart of "+
			"all pods, so that the job may take several times as long")
	case s.Ordered():
		notes = append(notes, "spec.failure.deadline: each group has a clock of its own, which starts when the groups "+
			"before it let it start")
	}
	if len(s.Groups) > 0 && s.Target == TargetJob {
		notes = append(notes, "spec.groups: each group is a Job of its own: where one fails the others go on, and "+
			"wait for it until failure.deadline or for ever; target jobset ends all together")
	}
	return notes
}

// restartNotes tell what restarts in place, and of single groups, need beside the job.
func (s *Spec) restartNotes() (notes []string) {
	f := &s.Failure
	if f.RestartAllInPlace {
		notes = append(notes, "spec.failure.restartAllInPlace: JobSet refuses it unless its feature gate "+
			"InPlaceRestart is on, which is off by default; each pod has to run its in-place-restart-agent, with a "+
			"service account that may get, list and watch JobSets and patch pods, and restartPolicyRules of "+
			"Kubernetes 1.35 or newer: put them into podTemplate, since without them nothing is restarted")
	}
	if slices.ContainsFunc(f.Rules, func(rule FailureRule) bool {
		return rule.Then == ThenRestartGroup || rule.Then == ThenRestartGroupUncounted
	}) {
		notes = append(notes, "spec.failure.rules: JobSet refuses the restart of single groups unless its feature "+
			"gate RestartJob is on, which is off by default")
	}
	return notes
}
