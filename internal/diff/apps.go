package diff

const immutableSelector = "its selector is immutable"

// deployment is the rule of a Deployment.
func (p *pair) deployment(f field) verdict {
	switch {
	case f.path.matches("spec.selector"):
		return verdict{Refused, immutableSelector, "delete the Deployment first"}
	case f.path.matches("spec.template"):
		if yes(p.is.at("spec", "paused")) {
			return verdict{InPlace, "the Deployment is paused: its pods stay until it is not", ""}
		}
		return verdict{Restart, "its pods are replaced, a few at a time", ""}
	case f.path.matches("spec.strategy.type") && text(f.new) == "Recreate":
		return verdict{
			Refused, "server-side apply, which Flux uses, leaves the default rollingUpdate beside it, which " +
				"type Recreate forbids; kubectl apply without --server-side takes it away",
			"patch it once: kubectl patch with spec.strategy.rollingUpdate: null",
		}
	}
	return scaled(f)
}

// statefulSet is the rule of a StatefulSet (kubernetes 1.36, ValidateStatefulSetUpdate).
func (p *pair) statefulSet(f field) verdict {
	switch {
	case f.path.matches("spec.template"):
		if text(p.is.at("spec", "updateStrategy", "type")) == "OnDelete" {
			return verdict{InPlace, "its pods have it once somebody deletes them: updateStrategy is OnDelete", ""}
		}
		return verdict{Restart, "its pods are replaced, one after the other", ""}
	case f.path.matches("spec.replicas") && fewer(f) && text(p.is.at("spec", "persistentVolumeClaimRetentionPolicy",
		"whenScaled")) == "Delete":
		return verdict{
			Data, "the claims of the pods that go are deleted: whenScaled is Delete",
			"set persistentVolumeClaimRetentionPolicy.whenScaled: Retain first",
		}
	case f.path.in("spec.replicas", "spec.ordinals", "spec.updateStrategy", "spec.minReadySeconds",
		"spec.revisionHistoryLimit", "spec.persistentVolumeClaimRetentionPolicy"):
		return scaled(f)
	}
	return verdict{Refused, "a StatefulSet changes in place in its template, size and strategy alone; a " +
		"reconciler stops " +
		"at it", "delete it with kubectl delete --cascade=orphan, which leaves its pods and claims, and apply again"}
}

// daemonSet is the rule of a DaemonSet.
func (p *pair) daemonSet(f field) verdict {
	switch {
	case f.path.matches("spec.selector"):
		return verdict{Refused, immutableSelector, "delete the DaemonSet first"}
	case f.path.matches("spec.template"):
		if text(p.is.at("spec", "updateStrategy", "type")) == "OnDelete" {
			return verdict{InPlace, "its pods have it once somebody deletes them: updateStrategy is OnDelete", ""}
		}
		return verdict{Restart, "its pods are replaced, a node at a time", ""}
	}
	return verdict{Class: InPlace}
}

func scaled(f field) verdict {
	if f.path.matches("spec.replicas") {
		return verdict{InPlace, "it makes or deletes pods until it has as many", ""}
	}
	return verdict{Class: InPlace}
}

// fewer says whether a number got smaller; nothing is the default of one.
func fewer(f field) bool { return orOne(f.new) < orOne(f.old) }

func orOne(v any) int64 {
	if n, ok := v.(int64); ok {
		return n
	}
	return 1
}
