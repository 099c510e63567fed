package schema

// What the targets with parameter servers cannot carry.
var (
	mxnetJob = union(others(FrameworkMXNet), ofJobs, countedWorkers, lacks{
		"gang.scheduler=kueue": "each role is a Job of its own, and Kueue admits Jobs one by one",
	})

	// mxnetLocalJob is a Job alone, which Kueue can admit.
	mxnetLocalJob = Target{
		FrameworkMXNet, TargetJob, "batch/v1 Job",
		union(others(FrameworkMXNet), ofJobs, countedWorkers),
	}

	mxjob = union(others(FrameworkMXNet), countedWorkers, mutableTemplate, namesReadyPods, mxjobPods, lacks{
		"mxnet":                "an MXJob has servers always, and its operator names the pods",
		"gang.scheduler=kueue": "Kueue ended its support of MXJob (kueue#4077)",
		"gang.scheduler=kubernetes": "its pod templates are older than the gangs of Kubernetes itself and lose the " +
			"field",
		"failure.restarts":          "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.restarts=" + None:  "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.restartsPerWorker": "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.fatalExitCodes":    "with ps-lite any failure ends a job, and an MXJob is never of mode local",
		"failure.ignoreDisruptions": "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.inPlace":           "ps-lite cannot re-admit a lost process, and an MXJob is never of mode local",
	})
)

// countedWorkers: ps-lite waits for DMLC_NUM_WORKER workers before any of them trains, and takes no further ones
// (dmlc/ps-lite, src/van.cc, ProcessAddNodeCommandAtScheduler).
var countedWorkers = lacks{
	"workers.min":        "ps-lite trains with exactly the workers that it had at the start",
	"workers.firstIndex": "its pods are counted from 0",
}

// mxjobPods: of a pod's claim its definition knows source.resourceClaimTemplateName alone (kubeflow/training-operator
// v1.8.1, manifests/base/crds/kubeflow.org_mxjobs.yaml).
var mxjobPods = union(unmanaged("an MXJob"), unclaimed(
	"its definition has the claims of Kubernetes 1.30 and before, which no API server of today accepts"), lacks{
	"code.image": "its definition lacks image volumes, which an API server then drops",
})
