package schema

// noMaster is what the operator of PyTorchJobs alone knows.
var noMaster = lacks{
	"workers.master":        "its pods are alike: only a PyTorchJob has a Master",
	"workers.autoscale.cpu": "its controller makes no HorizontalPodAutoscaler: only that of PyTorchJobs does",
}

// countsFromZero is what every controller of numbered pods does.
var countsFromZero = lacks{"workers.firstIndex": "its controller counts pods from 0"}

// trainJobLacks is from kubeflow/trainer v2.3.0: pkg/runtime/framework/plugins/torch/torch.go sets the rendezvous, and
// pkg/controller/trainjob_controller.go forgets that a job has failed and makes its JobSet anew when it is gone.
var trainJobLacks = union(expiringTrainJob, lacks{
	"workers.min":            "a TrainJob has no minimum and maximum of nodes (KEP-2903 is open)",
	"rendezvous":             "its controller sets a static rendezvous with node 0 by itself",
	"rendezvous.proxy":       "its controller sets a static rendezvous with node 0, which has no store to outlive",
	"rendezvous.maxRestarts": "its controller sets a static rendezvous with node 0 by itself",
	"roles.etcd":             "its controller sets a static rendezvous with node 0 by itself",
	"roles.companion":        "its controller sets a static rendezvous with node 0 by itself",
})

// expiringTrainJob is what no runtime of a TrainJob can have, whatever its framework.
var expiringTrainJob = lacks{
	"workers.slices":   onlySets,
	"ttlAfterFinished": "a TrainJob has none, and one that failed would run again when its JobSet expires",
}

// vcJobLacks is from volcano-sh/volcano v1.15.1: the CustomResourceDefinition, and pkg/controllers/job.
var vcJobLacks = union(onlyGang(GangVolcano,
	"its controller makes the gang, which Volcano's own scheduler alone reads"), unmanaged("a Volcano Job"), lacks{
	"workers.slices":              onlySets,
	"gang.scheduler=" + GangKueue: "Kueue does not support Volcano's Job",
	"suspend":                     "it is stopped and started by Command objects of bus.volcano.sh, not by a field",
	"failure.restarts=" + None:    "a Volcano Job that names no limit has one of 3",
	"cleanPods":                   "Volcano always deletes those that still run, and no others",
	"failure.restartsPerWorker": "Volcano counts the pods of all workers together, so that it can only be 0: then " +
		"none that failed is made again",
	"groups.after=" + WhenDone:  "Volcano starts a task when others run, and knows no other condition",
	"success=" + WhenAll:        "Volcano ends a job when a task is complete, and does not wait for several",
	"coordinator":               "only a JobSet has one; " + hostsInstead,
	"failure.ignoreDisruptions": "Volcano counts every failed pod, whatever ended it",
	"failure.deadline":          "a Volcano Job has no limit on time",
	"groups.failure":            "Volcano counts the failed pods of all groups together",
	"failure.rules":             "Volcano knows what befell a pod, and not why a group failed",
	"failure.restartAllInPlace": "only a JobSet starts all containers anew in their pods",
})

// notVolcanos is what Volcano's controller does for its own Job alone.
var notVolcanos = lacks{
	"volcano.plugins": "only Volcano's controller has plugins, and only for its own Job",
}

// onlyGang is a target whose gangs are those of one scheduler.
func onlyGang(scheduler, reason string) lacks {
	all := lacks{}
	for _, d := range Dialects {
		if d.Name != scheduler {
			all["gang.scheduler="+d.Name] = reason
		}
	}
	return all
}
