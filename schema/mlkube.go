package schema

// This file has all that only the MxJob of MXNet's first operator asks of the schema, off the common path.

// mxjobMlkube is what the MxJob of MXNet's first operator cannot carry.
var mxjobMlkube = union(others(FrameworkMXNet), countedWorkers, namesReadyPods, unmanaged("an MxJob"), oldPods, lacks{
	"sidecars":                   mlkubePods + " and would wait for their end",
	"probes.startup":             mlkubePods,
	"code.image":                 mlkubePods,
	"env":                        mlkubeEnv,
	"checkpoint":                 mlkubeEnv,
	"checkpoint.save":            mlkubeEnv,
	"network.interface":          mlkubeEnv,
	"network.fabric":             mlkubeEnv,
	"suspend":                    "an MxJob has no such field",
	"gang.scheduler=kueue":       "Kueue does not support MxJobs",
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
	"failure.inPlace":            "the kubelet always does so with the pods of an MxJob",
	"failure.deadline":           "an MxJob has no such field",
	"ttlAfterFinished":           "an MxJob has no such field",
	"cleanPods":                  "an MxJob has no such field",
	"hashedNames":                "the operator names the Jobs, by mxnet.runtimeID",
})

var oldPods = unclaimed(mlkubePods)

const (
	// deepinsight/mxnet-operator, branch 1.7, pkg/trainer/replicas.go.
	mlkubeEnv = "its operator writes its own variables over the first five of a container, and crashes where there " +
		"are fewer"
	// The operator decodes templates with client-go of that release and loses what it does not know.
	mlkubePods = "its operator makes pods of Kubernetes 1.7, which had no such field"
)

// bareEnv refuses the ways around the row of target mxjob-mlkube.
func (r *validation) bareEnv() {
	if r.Spec.Target != TargetMXJobMlkube {
		return
	}
	if len(r.Spec.Env) > 0 && !r.IsSet("spec.env") {
		r.fail("spec.target", "target",
			"the environment gives workers variables, which target %s cannot carry: %s; targets %s, %s can",
			TargetMXJobMlkube, mlkubeEnv, TargetJob, TargetMXJob)
	}
	for at := range r.patchedEnv() {
		r.fail(at, "target", "target %s cannot carry this: %s; spec.envFrom can", TargetMXJobMlkube, mlkubeEnv)
	}
	if r.IsSet("spec.gang.priority") {
		r.fail("spec.gang.priority", "target", "target %s cannot carry this: %s", TargetMXJobMlkube, mlkubePods)
	}
}
