package diff

import "reflect"

const (
	// sinceElastic is the release in which an Indexed Job may change its size.
	sinceElastic = 27
	// sinceResources is that in which a suspended Job may change what its containers ask for, and one that ran before
	// how it is scheduled (gates MutablePodResourcesForSuspendedJobs, MutableSchedulingDirectivesForSuspendedJobs).
	sinceResources = 36
	// sinceGates is that in which a suspended Job may change its pods' scheduling gates.
	sinceGates = 27
)

const (
	immutableTemplate = "the pod template of a Job is immutable; a reconciler stops at it with everything else " +
		"that it " +
		"applies together"
	newName = "set hashedNames: true (gitops: true sets it), which makes a new Job of each change; or delete the " +
		"Job first"
)

// job is the rule of a Job (kubernetes 1.36, pkg/apis/batch/validation).
func (p *pair) job(f field) verdict {
	switch {
	case f.path.matches("spec.template"):
		return p.jobTemplate(f)
	case f.path.matches("spec.suspend"):
		return p.suspension(f)
	case f.path.matches("spec.completions"):
		return p.completions()
	case f.path.matches("spec.parallelism"):
		return verdict{InPlace, "the Job makes or deletes pods until it has as many", ""}
	case f.path.matches("spec.ttlSecondsAfterFinished"):
		if f.new != nil {
			return verdict{InPlace, "a Job that has finished deletes itself after that time, and a reconciler " +
				"that has it " +
				"in git runs it again", "leave it out where git holds the Job: gitops: true"}
		}
		return verdict{InPlace, "a Job that has finished stays", ""}
	case f.path.matches("spec.activeDeadlineSeconds"):
		return verdict{InPlace, "the time counts from the start of the Job, or from when it was resumed", ""}
	case f.path.in("spec.selector", "spec.completionMode", "spec.podFailurePolicy", "spec.backoffLimitPerIndex",
		"spec.managedBy", "spec.successPolicy"):
		return verdict{Refused, "the field of a Job is immutable; a reconciler stops at it", newName}
	}
	return verdict{Class: InPlace}
}

func (p *pair) completions() verdict {
	was, is := p.was.at("spec", "completions"), p.is.at("spec", "completions")
	elastic := text(p.is.at("spec", "completionMode")) == "Indexed" && is != nil && was != nil &&
		reflect.DeepEqual(is, p.is.at("spec", "parallelism"))
	switch {
	case elastic && p.Minor >= sinceElastic:
		return verdict{InPlace, "an Indexed Job is scaled where completions and parallelism stay equal", ""}
	case elastic:
		return verdict{Refused, "completions are immutable before Kubernetes " + version(sinceElastic), newName}
	}
	return verdict{
		Refused, "completions are immutable, but for an Indexed Job where parallelism is equal",
		"change parallelism to the same number, or delete the Job first",
	}
}

// jobTemplate is the rule of a pod template: a suspended Job may change how its pods are scheduled.
func (p *pair) jobTemplate(f field) verdict {
	scheduling := f.path.in("spec.template.metadata.labels", "spec.template.metadata.annotations",
		"spec.template.spec.nodeSelector", "spec.template.spec.tolerations",
		"spec.template.spec.affinity.nodeAffinity") ||
		f.path.matches("spec.template.spec.schedulingGates") && p.Minor >= sinceGates
	resources := f.path.in("spec.template.spec.containers[].resources", "spec.template.spec.initContainers[].resources")
	if !scheduling && !resources || !suspended(p.was) {
		return verdict{Refused, immutableTemplate, newName}
	}
	if resources && p.Minor < sinceResources {
		return verdict{Refused, "a suspended Job may change what its pods ask for since Kubernetes " +
			version(sinceResources), newName}
	}
	started := p.was.status["startTime"] != nil
	active := word(p.was.status["active"])
	switch {
	case started && p.Minor < sinceResources:
		return verdict{Refused, "a suspended Job that ran before may change its template since Kubernetes " +
			version(sinceResources), newName}
	case active != "null" && active != "0":
		return verdict{Refused, "the Job is suspended, and its pods have not ended yet", "wait until they have"}
	case p.Minor < sinceResources:
		return verdict{InPlace, "the Job is suspended: its pods are made with it; refused where it ran before", ""}
	}
	return verdict{InPlace, "the Job is suspended: its pods are made with it", ""}
}

// suspension is the rule of a field that suspends.
func (p *pair) suspension(f field) verdict {
	if p.was.finished() {
		return verdict{InPlace, "it has finished: it has no pods to delete, and none is made", ""}
	}
	if yes(f.new) {
		return verdict{
			Restart, "its pods are deleted, and made anew when it is resumed",
			"let the script write checkpoints, from which it goes on",
		}
	}
	if yes(f.old) {
		return verdict{InPlace, "its pods are made: the run begins, or goes on", ""}
	}
	return verdict{Class: InPlace}
}

// cronJob is the rule of a CronJob.
func (p *pair) cronJob(f field) verdict {
	if f.path.matches("spec.jobTemplate") {
		return verdict{InPlace, "Jobs made from now on have it; those that run do not", ""}
	}
	return verdict{Class: InPlace}
}
