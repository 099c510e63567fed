package apis

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Written are fields of a kind that somebody else writes after an object was applied, as paths of jq.
type Written struct {
	schema.GroupKind
	Paths []string
}

// queued is true of an object in a queue of Kueue: of no other object does anybody write these fields.
const queued = `select(.metadata.labels["kueue.x-k8s.io/queue-name"]) | `

// WrittenByOthers are the fields that a reconciler has to leave as they are in the cluster. Kueue merges the flavor
// that it admitted an object to into the pods' templates (kueue v0.19.2, pkg/podset, Merge): where git has a map, more
// keys in the cluster are no difference to it, but where it has a list, more items are, and all that the items of a
// list of a custom resource hold. Kubernetes adds tolerations to every pod (the admission plugin
// DefaultTolerationSeconds) and refuses to take any away.
func WrittenByOthers() []Written {
	return []Written{
		{schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}, inQueue(".spec.suspend", ".spec.parallelism",
			".spec.template.spec.tolerations")},
		{schema.GroupKind{Kind: "Pod"}, append([]string{".spec.tolerations"},
			inQueue(".spec.nodeSelector", ".spec.schedulingGates")...)},
		{JobSetKind.GroupKind(), inQueue(".spec.suspend",
			".spec.replicatedJobs[]?.template.spec.template.metadata.annotations",
			".spec.replicatedJobs[]?.template.spec.template.metadata.labels",
			".spec.replicatedJobs[]?.template.spec.template.spec.nodeSelector",
			".spec.replicatedJobs[]?.template.spec.template.spec.schedulingGates",
			".spec.replicatedJobs[]?.template.spec.template.spec.tolerations")},
		{TrainJobKind.GroupKind(), inQueue(".spec.suspend")},
		{PyTorchJobKind.GroupKind(), inQueue(".spec.runPolicy.suspend",
			".spec.pytorchReplicaSpecs[]?.template.spec.tolerations")},
		{MPIJobKind.GroupKind(), inQueue(".spec.runPolicy.suspend",
			".spec.mpiReplicaSpecs[]?.template.spec.tolerations")},
	}
}

func inQueue(paths ...string) []string {
	for i := range paths {
		paths[i] = queued + paths[i]
	}
	return paths
}
