package diff

import "reflect"

const anewByHand = "delete it first: its controller deletes the pods, and the run begins again"

// onceSet is the verdict on a field that a definition's rule "self == oldSelf" holds: it may come and go, and never
// change, since such a rule is asked only where both states have the field.
func onceSet(f field, was, is any) verdict {
	if was == nil || is == nil || reflect.DeepEqual(was, is) {
		return verdict{Class: InPlace}
	}
	return verdict{Refused, f.path[1] + " is immutable", anewByHand}
}

// jobSet is the rule of a JobSet (jobset v0.12.0, pkg/webhooks/jobset_webhook.go and api/jobset/v1alpha2).
func (p *pair) jobSet(f field) verdict {
	const template = "spec.replicatedJobs[].template.spec.template."
	switch {
	case f.path.matches("spec.suspend"):
		return p.suspension(f)
	case f.path.in(template+"metadata.labels", template+"metadata.annotations", template+"spec.nodeSelector",
		template+"spec.tolerations", template+"spec.schedulingGates") && (suspended(p.was) || suspended(p.is)):
		return verdict{InPlace, "a suspended JobSet may change how its pods are scheduled", ""}
	case f.path.matches("spec.replicatedJobs"):
		return verdict{
			Refused, "the Jobs of a JobSet are immutable, but for how the pods of a suspended one are scheduled",
			anewByHand,
		}
	case f.path.matches("spec.managedBy"):
		return verdict{Refused, "managedBy is immutable", anewByHand}
	case f.path.in("spec.network", "spec.successPolicy", "spec.failurePolicy", "spec.startupPolicy",
		"spec.volumeClaimPolicies"):
		return onceSet(f, p.was.at(f.path[:2]...), p.is.at(f.path[:2]...))
	}
	return verdict{Class: InPlace}
}

// trainJob is the rule of a TrainJob (trainer v2.3.0, pkg/apis/trainer/v1alpha1 and the plugin of JobSets).
func (p *pair) trainJob(f field) verdict {
	switch {
	case f.path.matches("spec.suspend"):
		return p.suspension(f)
	case f.path.in("spec.runtimePatches", "spec.podTemplateOverrides"):
		if suspended(p.was) || suspended(p.is) {
			return verdict{InPlace, "a suspended TrainJob may change it once none of its pods is left", ""}
		}
		return verdict{Refused, "a TrainJob changes it only while it is suspended", "suspend it in the same change"}
	case f.path.in("spec.runtimeRef", "spec.initializer", "spec.trainer", "spec.activeDeadlineSeconds",
		"spec.managedBy"):
		return onceSet(f, p.was.at(f.path[:2]...), p.is.at(f.path[:2]...))
	}
	return verdict{Class: InPlace}
}

// trainingRuntime is the rule of a TrainingRuntime, as docs/suspend.md saw it.
func (p *pair) trainingRuntime(field) verdict {
	return verdict{
		InPlace, "TrainJobs made from now on have it; one that is there keeps the pods that it was made with",
		"delete the TrainJob to have it made with this",
	}
}

// kubeflowJob is the rule of the training operator's kinds and of MPIJob: their operators compare how many pods there
// are and never a pod with its template (training-operator v1.9.4, ReconcilePods; mpi-operator v0.8.2,
// getOrCreateWorker).
func (p *pair) kubeflowJob(f field) verdict {
	const queue = "spec.runPolicy.schedulingPolicy.queue"
	const roles = "spec.*.*."
	switch {
	case f.path.matches("spec.runPolicy.suspend"):
		return p.suspension(f)
	case f.path.matches(queue) && f.old != nil && f.new != nil:
		return verdict{Refused, "the queue is immutable", anewByHand}
	case f.path.matches(roles + "replicas"):
		return verdict{InPlace, "the operator makes or deletes pods until it has as many", ""}
	case f.path.matches(roles + "template"):
		if suspended(p.was) {
			return verdict{InPlace, "it is suspended: its pods are made with it", ""}
		}
		return verdict{InPlace, "the operator replaces no pod: those that run keep what they have, and one that " +
			"is made " +
			"anew differs from them", "suspend and resume it, or delete it, to have all pods alike"}
	}
	return verdict{Class: InPlace}
}

// volcanoJob is the rule of Volcano's Job, by its webhook (pkg/webhooks/admission/jobs/validate).
func (p *pair) volcanoJob(f field) verdict {
	if f.path.in("spec.minAvailable", "spec.tasks[].replicas", "spec.tasks[].minAvailable", "spec.priorityClassName") {
		return verdict{InPlace, "Volcano makes or deletes pods until it has as many", ""}
	}
	if f.path.matches("spec") {
		return verdict{Refused, "Volcano's webhook lets a Job change its size and priority alone", anewByHand}
	}
	return verdict{Class: InPlace}
}
