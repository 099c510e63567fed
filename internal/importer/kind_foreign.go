package importer

import (
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// foreign are kinds whose pods may train and of which no TrainingJob is made, each with the reason and what to do.
var foreign = map[apischema.GroupKind]string{
	{Group: "ray.io", Kind: "RayJob"}: "Ray starts its processes, and no framework of a TrainingJob starts Ray: keep " +
		"it with its operator, or let torchrun start the program, as framework torchelastic",
	{Group: "ray.io", Kind: "RayCluster"}: "it runs what is submitted to Ray, and no framework of a TrainingJob " +
		"starts Ray: keep it with its operator",
	{Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"}: "its groups of a leader and workers go on for " +
		"ever, as servers do, and the pods of a TrainingJob end: keep it; a leader and workers that end are groups " +
		"of target jobset",
}

// lasting are kinds whose pods are started again when they have ended.
var lasting = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}

// unknownJob says whether an object of a kind without a reader makes pods that train.
func unknownJob(o *object) bool {
	if o.gvk.Group == "kubeflow.org" && strings.HasSuffix(o.gvk.Kind, "Job") || foreign[o.gvk.GroupKind()] != "" {
		return true
	}
	return slices.Contains(lasting, o.gvk.Kind) &&
		newProgram(trainingContainer(o.view().at("spec", "template", "spec"))).launcher != ""
}

// unread says why an object of a kind without a reader is not read, and what would carry it.
func unread(o *object) string {
	switch why := foreign[o.gvk.GroupKind()]; {
	case why != "":
		return why
	case o.is("kubeflow.org", "TFJob"):
		return "its pods find each other by TF_CONFIG, which names all of them, and no framework of a TrainingJob " +
			"sets it: keep the TFJob, whose operator is training-operator 1.9 at the latest, or let horovodrun start " +
			"the program, as framework horovod"
	case o.is("kubeflow.org", "XGBoostJob"):
		return "it has no spec.xgbReplicaSpecs.Master, which is rank 0 and which the workers dial: add one"
	case slices.Contains(lasting, o.gvk.Kind):
		return "its pods are started again when they have ended, and training with them: make it a Job, or a " +
			"TrainingJob of target job with the same image and command"
	}
	return "this kind is not read"
}
