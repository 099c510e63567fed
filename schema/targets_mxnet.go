package schema

// What the targets with parameter servers cannot carry.
var (
	mxnetJob = union(others(FrameworkMXNet), ofJobs, countedWorkers, lacks{
		"gang.scheduler=kueue": "each role is a Job of its own, and Kueue admits Jobs one by one",
	})

	// bytePSJob are the same pods, of another framework's job.
	bytePSJob = Target{FrameworkByteScheduler, TargetJob, "batch/v1 Jobs, one a role", union(others(FrameworkByteScheduler), ofJobs, countedWorkers, lacks{
		"roles.launcher": "every pod of BytePS starts its own processes",
	})}

	// mxnetLocalJob is a Job alone, which Kueue can admit.
	mxnetLocalJob = Target{FrameworkMXNet, TargetJob, "batch/v1 Job", union(others(FrameworkMXNet), ofJobs, countedWorkers)}

	mxjob = union(others(FrameworkMXNet), countedWorkers, mutableTemplate, lacks{
		"mxnet":                     "an MXJob has servers always, and its operator names the pods",
		"gang.scheduler=kueue":      "Kueue ended its support of MXJob (kueue#4077)",
		"gang.scheduler=kubernetes": "its pod templates are older than the gangs of Kubernetes itself and lose the field",
		"failure.restarts":          "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.restarts=" + None:  "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.restartsPerWorker": "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.fatalExitCodes":    "with ps-lite any failure ends a job, and an MXJob is never of mode local",
		"failure.ignoreDisruptions": "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
	})

	mxjobMlkube = union(others(FrameworkMXNet), countedWorkers, lacks{
		"env":                        mlkubeEnv,
		"checkpoint":                 mlkubeEnv,
		"network.interface":          mlkubeEnv,
		"suspend":                    "an MxJob has no such field",
		"gang.scheduler=kueue":       "Kueue knows no MxJob",
		"gang.scheduler=kubernetes":  mlkubePods,
		"placement.priorityClass":    mlkubePods,
		"placement.preemptionPolicy": mlkubePods,
		"placement.runtimeClass":     mlkubePods,
		"security.runAsGroup":        mlkubePods,
		"failure.restarts":           "an MxJob has no such field",
		"failure.restarts=" + None:   "an MxJob has no such field",
		"failure.restartsPerWorker":  "an MxJob has no such field",
		"failure.fatalExitCodes":     "an MxJob has no such field",
		"failure.ignoreDisruptions":  "an MxJob has no such field",
		"failure.deadline":           "an MxJob has no such field",
		"ttlAfterFinished":           "an MxJob has no such field",
		"cleanPods":                  "an MxJob has no such field",
		"hashedNames":                "the operator names the Jobs, by mxnet.runtimeID",
	})
)

// countedWorkers: ps-lite waits for DMLC_NUM_WORKER workers before any of them trains, and takes no further ones
// (dmlc/ps-lite, src/van.cc, ProcessAddNodeCommandAtScheduler).
var countedWorkers = lacks{
	"workers.min":        "ps-lite trains with exactly the workers that it was told of at the start",
	"workers.firstIndex": "its pods are counted from 0",
}

const (
	// deepinsight/mxnet-operator, branch 1.7, pkg/trainer/replicas.go.
	mlkubeEnv = "its operator writes its own variables over the first five of a container, and crashes where there are fewer"
	// The operator decodes templates with client-go of that release and loses what it does not know.
	mlkubePods = "its operator makes pods of Kubernetes 1.7, which had no such field"
)
