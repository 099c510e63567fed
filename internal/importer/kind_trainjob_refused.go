package importer

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// policyReasons are the sources of mlPolicy for which Trainer does more than set the variables of torch or JAX
// (kubeflow/trainer v2.3.0, pkg/runtime/framework/plugins).
var policyReasons = map[string]string{
	"mpi":     "Trainer creates ssh keys and a host file, and its launcher starts the program with mpirun",
	"flux":    "Trainer installs Flux in the pods and starts the program with it",
	"xgboost": "Trainer sets the DMLC_ variables, with which workers of XGBoost find their tracker",
}

// tuneReason is why a program of torchtune is not kept (pkg/runtime/framework/plugins/torch/torchtune.go).
const tuneReason = "Trainer sets the arguments of 'tune run' itself: nodes, processes, rendezvous, recipe and config"

// installedReasons are the runtimes that Trainer installs (v2.3.0, manifests/base/runtimes) and no TrainingJob is made
// of, without those of torchtune, which are one for each model.
var installedReasons = map[string]string{
	"mpi-distributed":              policyReasons["mpi"],
	"deepspeed-distributed":        policyReasons["mpi"],
	"mlx-distributed":              policyReasons["mpi"],
	"flux-distributed":             policyReasons["flux"],
	"xgboost-distributed":          policyReasons["xgboost"],
	"grpo-distributed":             "other pods download the dataset and the model before",
	"torch-distributed-with-cache": "other pods start a cache of the dataset before",
}

// installedReason is why no TrainingJob is made of a runtime that Trainer installs, by its name alone; "" for none.
func installedReason(ref view) string {
	name := ref.at("name").text()
	switch {
	case ref.at("kind").text() == "TrainingRuntime":
		return ""
	case strings.HasPrefix(name, "torchtune-"):
		return tuneReason
	}
	return installedReasons[name]
}

// runtimeKept says whether a TrainingJob made of a TrainJob and its runtime would run what they run, and reports each
// place that it would not keep. A runtime that the input does not hold is known by its name at most.
func (s *stream) runtimeKept(o, runtime *object) bool {
	kept := true
	refuse := func(v view, why, fix string) {
		kept = false
		s.notes = append(s.notes, v.note(Refused, "%s; a TrainingJob would not. %s is not imported: keep it and its "+
			"runtime as they are%s", why, o, fix))
	}
	spec, policy := o.view().at("spec"), runtime.view().at("spec", "mlPolicy")
	set := runtime.view().at("spec", "template", "spec")
	if why := installedReason(spec.at("runtimeRef")); runtime.synthetic && why != "" {
		refuse(spec.at("runtimeRef"), "Trainer's own runtime: "+why, "")
	}
	for _, key := range sortedKeys(policy.mapping()) {
		if why := policyReasons[key]; key == "mpi" {
			refuse(policy.at(key), why, ", or write an MPIJob with the same pods and import that")
		} else if !slices.Contains([]string{"numNodes", "torch", "jax"}, key) {
			refuse(policy.at(key), cmp.Or(why, "Trainer sets up the pods for "+key), "")
		}
	}
	items := set.at("replicatedJobs").items()
	train := items[trainingIndex(items)]
	for _, item := range items {
		if name := item.at("name"); name.text() != train.at("name").text() {
			refuse(name, "the runtime starts these pods beside those of "+train.at("name").text(),
				", or write both as groups of a TrainingJob of target jobset")
		}
	}
	if n, ok := train.at("replicas").number(); ok && n != 1 {
		refuse(train.at("replicas"), "the runtime starts the pods of as many Jobs", "")
	}
	if claims := set.at("volumeClaimPolicies"); claims.isSet() {
		refuse(claims, "JobSet creates these claims and mounts them in the pods",
			", or put each into the pods' volumes as a claim")
	}
	if first := spec.at("initializer"); first.isSet() {
		refuse(first, "Trainer downloads this in other pods before", "")
	}
	for _, patch := range spec.at("runtimePatches").items() {
		for _, item := range patch.at("trainingRuntimeSpec", "template", "spec", "replicatedJobs").items() {
			if name := item.at("name"); name.text() != train.at("name").text() && !set.at("replicatedJobs").
				item("name", name.text()).isSet() {
				refuse(name, "the runtime starts pods of this name beside those of "+train.at("name").text(), "")
			}
		}
	}
	c := trainingContainer(train.at("template", "spec", "template", "spec"))
	for _, v := range []view{spec.at("trainer", "command"), c.at("command")} {
		if words := v.texts(); len(words) > 1 && path.Base(words[0]) == "tune" && words[1] == "run" {
			refuse(v, tuneReason, "")
		}
	}
	return kept
}
