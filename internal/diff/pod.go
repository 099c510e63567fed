package diff

import (
	"encoding/json"
	"slices"
)

const (
	podFields = "a pod changes in place only in images, activeDeadlineSeconds, more tolerations and fewer " +
		"scheduling gates"
	deletePod = "delete the pod first; a Job in its place (target: job) with hashedNames: true needs no hand"
)

// pod is the rule of a bare pod (kubernetes 1.36, ValidatePodUpdate).
func (p *pair) pod(f field) verdict {
	refused := verdict{Refused, podFields, deletePod}
	switch {
	case f.path.in("spec.containers[].image", "spec.initContainers[].image"):
		return verdict{Restart, "the kubelet restarts the container with the new image", ""}
	case f.path.matches("spec.activeDeadlineSeconds"):
		was, isNumber := f.old.(int64)
		is, ok := f.new.(int64)
		if ok && (f.old == nil || isNumber && is <= was) {
			return verdict{InPlace, "a deadline may only come nearer", ""}
		}
	case f.path.matches("spec.tolerations"):
		if holds(timeless(p.is.at("spec", "tolerations")), timeless(at(p.was.compared(p.is), "spec", "tolerations"))) {
			return verdict{InPlace, "a pod may have more tolerations and other tolerationSeconds, and never fewer", ""}
		}
	case f.path.matches("spec.schedulingGates"):
		if holds(p.was.at("spec", "schedulingGates"), p.is.at("spec", "schedulingGates")) {
			return verdict{InPlace, "a gate comes off, and the pod is scheduled once none is left", ""}
		}
		return verdict{Refused, "a scheduling gate can never be put on a pod that is there", deletePod}
	case len(f.path) == 3 && f.path.matches("spec.nodeSelector.*") && f.old == nil && suspended(p.was):
		return verdict{InPlace, "a pod with a scheduling gate may select fewer nodes", ""}
	case f.path.matches("spec.affinity.nodeAffinity") && suspended(p.was) &&
		narrower(p.was.at(required...), p.is.at(required...)):
		return verdict{InPlace, "a pod with a scheduling gate may select fewer nodes", ""}
	}
	return refused
}

// required is where a pod says which nodes it must have.
var required = []string{
	"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms",
}

// narrower says whether terms of nodes are as many as before, each with at most more at its end
// (validateNodeAffinityMutation). Where there were none, there may be any.
func narrower(was, is any) bool {
	before, after := items(was), items(is)
	if len(before) == 0 {
		return true
	}
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		size := 0
		for _, by := range []string{"matchExpressions", "matchFields"} {
			old, next := items(at(before[i], by)), items(at(after[i], by))
			if len(next) < len(old) || len(old) > 0 && canonical(next[:len(old)]) != canonical(old) {
				return false
			}
			size += len(old)
		}
		if size == 0 && canonical(before[i]) != canonical(after[i]) {
			return false // a term that selects no node
		}
	}
	return true
}

// timeless are tolerations without how long they hold, which a pod may change.
func timeless(tolerations any) any {
	var out []any
	for _, t := range items(tolerations) {
		out = append(out, without(mapping(t), "tolerationSeconds"))
	}
	return out
}

// holds says whether a list has all items of another.
func holds(all, some any) bool {
	var have []string
	for _, i := range items(all) {
		have = append(have, canonical(i))
	}
	for _, i := range items(some) {
		if !slices.Contains(have, canonical(i)) {
			return false
		}
	}
	return true
}

// canonical is a value as text, with the keys of mappings in order.
func canonical(v any) string {
	line, _ := json.Marshal(v)
	return string(line)
}
