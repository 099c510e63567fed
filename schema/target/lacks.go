package target

import (
	"fmt"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

// BytePSJob is the target of BytePS: the pods of MXNet's parameter servers, of another framework's job.
var BytePSJob = Target{
	job.FrameworkByteScheduler, job.TargetJob, "batch/v1 Jobs, one a role",
	union(others(job.FrameworkByteScheduler), ofJobs, countedWorkers, lacks{
		"roles.launcher":  "every pod of BytePS starts its own processes",
		"checkpoint.save": "bpslaunch starts the processes through shells, which hand no signal on",
	}),
}

// byteSchedulerLacks is what ByteScheduler's Horovod cannot do.
var byteSchedulerLacks = lacks{
	"workers.min": "ByteScheduler patches Horovod 0.16, and elastic came with 0.20",
}

// unclaimed is a target whose controller or definition loses the claims of pods.
func unclaimed(reason string) lacks {
	return lacks{"resources.deviceClass": reason, "resources.claims": reason}
}

// orderOf is a feature that a job uses where pods start after others are ready, or done.
func orderOf(name, doc, when string, shows ...string) Feature {
	return Feature{name, doc, shows, part.Of2(func(u *Used, workers []job.After, groups []job.Group) {
		add := func(at string, after []job.After) {
			for i, a := range after {
				u.When(a.When == when, fmt.Sprintf("%s[%d]", at, i))
			}
		}
		add("workers.after", workers)
		for i, g := range groups {
			add(fmt.Sprintf("groups[%d].after", i), g.After)
		}
	}, part.WorkersAfter, part.Groups)}
}

// allOfSeveral says whether several groups must all succeed.
var allOfSeveral = part.OfSpec("success", func(s *job.Spec) bool {
	return s.Success != nil && len(s.Success.Groups) > 1 && s.Success.When == job.WhenAll
})

// unmanaged are APIs without the field managedBy.
func unmanaged(kind string) lacks { return lacks{"managedBy": kind + " has no field of that name"} }

// This file has all that only the MxJob of MXNet's first operator asks of the schema, off the common path.

// mxjobMlkube is what the MxJob of MXNet's first operator cannot carry.
var mxjobMlkube = union(others(job.FrameworkMXNet), countedWorkers, namesReadyPods, unmanaged("an MxJob"), oldPods,
	lacks{
		"sidecars":                     MlkubePods + " and would wait for their end",
		"probes.startup":               MlkubePods,
		"code.image":                   MlkubePods,
		"env":                          MlkubeEnv,
		"checkpoint":                   MlkubeEnv,
		"checkpoint.save":              MlkubeEnv,
		"network.interface":            MlkubeEnv,
		"network.fabric":               MlkubeEnv,
		"suspend":                      "an MxJob has no such field",
		"gang.scheduler=kueue":         "Kueue does not support MxJobs",
		"gang.scheduler=kubernetes":    MlkubePods,
		"placement.priorityClass":      MlkubePods,
		"placement.preemptionPolicy":   MlkubePods,
		"placement.runtimeClass":       MlkubePods,
		"security.runAsGroup":          MlkubePods,
		"failure.restarts":             "an MxJob has no such field",
		"failure.restarts=" + job.None: "an MxJob has no such field",
		"failure.restartsPerWorker":    "an MxJob has no such field",
		"failure.fatalExitCodes":       "an MxJob has no such field",
		"failure.ignoreDisruptions":    "an MxJob has no such field",
		"failure.inPlace":              "the kubelet always does so with the pods of an MxJob",
		"failure.deadline":             "an MxJob has no such field",
		"ttlAfterFinished":             "an MxJob has no such field",
		"cleanPods":                    "an MxJob has no such field",
		"hashedNames":                  "the operator names the Jobs, by mxnet.runtimeID",
	})

var oldPods = unclaimed(MlkubePods)

const (
	// MlkubeEnv is from deepinsight/mxnet-operator, branch 1.7, pkg/trainer/replicas.go.
	MlkubeEnv = "its operator writes its own variables over the first five of a container, and crashes where there " +
		"are fewer"
	// MlkubePods is for what client-go of that release, with which the operator decodes templates, does not know.
	MlkubePods = "its operator makes pods of Kubernetes 1.7, which had no such field"
)

var mxnetMode = part.OfSpec("mxnet.mode", func(s *job.Spec) string { return s.MXNet.Mode })

// mxnetNames finds the fields that not every target of framework mxnet has.
func mxnetNames(u *Used, framework, mode string) {
	if framework != job.FrameworkMXNet {
		u.WhenSet("mxnet")
		return
	}
	u.When(mode == job.MXNetLocal, "mxnet.mode")
	u.WhenSet("mxnet.group", "mxnet.runtimeID")
}

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
var vcJobLacks = union(onlyGang(job.GangVolcano,
	"its controller makes the gang, which Volcano's own scheduler alone reads"), unmanaged("a Volcano Job"), lacks{
	"workers.slices":                  onlySets,
	"gang.scheduler=" + job.GangKueue: "Kueue does not support Volcano's Job",
	"suspend":                         "it is stopped and started by Command objects of bus.volcano.sh, not by a field",
	"failure.restarts=" + job.None:    "a Volcano Job that names no limit has one of 3",
	"cleanPods":                       "Volcano always deletes those that still run, and no others",
	"failure.restartsPerWorker": "Volcano counts the pods of all workers together, so that it can only be 0: then " +
		"none that failed is made again",
	"groups.after=" + job.WhenDone: "Volcano starts a task when others run, and knows no other condition",
	"success=" + job.WhenAll:       "Volcano ends a job when a task is complete, and does not wait for several",
	"coordinator":                  "only a JobSet has one; " + hostsInstead,
	"failure.ignoreDisruptions":    "Volcano counts every failed pod, whatever ended it",
	"failure.deadline":             "a Volcano Job has no limit on time",
	"groups.failure":               "Volcano counts the failed pods of all groups together",
	"failure.rules":                "Volcano knows what befell a pod, and not why a group failed",
	"failure.restartAllInPlace":    "only a JobSet starts all containers anew in their pods",
})

// notVolcanos is what Volcano's controller does for its own Job alone.
var notVolcanos = lacks{
	"volcano.plugins": "only Volcano's controller has plugins, and only for its own Job",
}

// onlyGang is a target whose gangs are those of one scheduler.
func onlyGang(scheduler, reason string) lacks {
	all := lacks{}
	for _, d := range job.Dialects {
		if d.Name != scheduler {
			all["gang.scheduler="+d.Name] = reason
		}
	}
	return all
}

// What the APIs of elastic jobs cannot carry (pytorch/elastic v0.2.2, kubeflow/trainer v1.9.4, dlrover v0.6.1).

// torchElasticJobLacks is what TorchElastic's controller, built with client-go 1.15, does not know.
var torchElasticJobLacks = union(mutableTemplate, namesReadyPods, unmanaged("an ElasticJob"), unclaimed(
	"its controller makes pods of Kubernetes 1.15, which had no claims"), lacks{
	"sidecars": "its controller was built before Kubernetes had sidecars, and the program would wait for their " +
		"end",
	"code.image":                   "its controller makes pods of Kubernetes 1.15, which mounted no images",
	"probes.startup":               "its controller was built before Kubernetes had such probes, and drops it",
	"rendezvous.proxy":             "its controller has torchrun speak to an etcd of the v2 API, which needs no proxy",
	"launcher=" + job.LauncherNone: "its controller puts options of torchrun before the arguments of every container",
	"workers.firstIndex":           "its controller counts pods from 0",
	"workers.slices":               onlySets,
	"gang.scheduler=kueue":         "Kueue does not support this kind",
	"gang.scheduler=kubernetes":    "its controller was built before the pods' field schedulingGroup and drops it",
	"suspend": "its controller cannot hold a job back, and counts one without workers as " +
		"succeeded",
	"failure.restartsPerWorker": "its controller counts the failed pods of the whole job, so that it can only be 0: " +
		"then those that were killed are made again, and no others",
	"failure.fatalExitCodes":    "its controller starts whatever failed again, or nothing",
	"failure.ignoreDisruptions": "its controller counts every failed pod alike, or with restartsPerWorker: 0 none",
	"failure.inPlace":           "its controller has the kubelet do so wherever failed pods are counted",
	"failure.deadline":          "its controller notes no start of a job, and so never ends one",
	"ttlAfterFinished":          "its controller dies of it when a job has failed",
})

var pyTorchJobLacks = union(mutableTemplate, namesReadyPods, lacks{
	"workers.firstIndex":        "its operator counts pods from 0",
	"workers.slices":            onlySets,
	"failure.restartsPerWorker": "its operator counts the restarts of the whole job",
	"failure.fatalExitCodes":    "its operator takes all codes from 1 to 127 as fatal, or none",
	"failure.ignoreDisruptions": "its operator counts restarted containers alone, and never a pod that was evicted",
	"failure.inPlace":           "its operator always has the kubelet do so",
})

var dlroverLacks = union(mutableTemplate, unmanaged("an ElasticJob"), unclaimed(
	"its definition lacks the pods' field resourceClaims, which an API server then drops"), lacks{
	"sidecars": "its definition lacks initContainers[].restartPolicy, which an API server then drops, and the " +
		"program would wait for their end",
	"code.image":                   "its definition lacks image volumes, which an API server then drops",
	"workers.firstIndex":           "its master counts pods from 0",
	"gang.scheduler=kueue":         "Kueue does not support this kind",
	"gang.scheduler=kubernetes":    "its pods have no field schedulingGroup",
	"resources":                    "its master gives every pod requests that equal limits",
	"failure.restarts":             "its master counts the restarts of each worker: see failure.restartsPerWorker",
	"failure.restarts=" + job.None: "its master counts the restarts of each worker: see failure.restartsPerWorker",
	"cleanPods":                    "its API has no field for it",
	"failure.fatalExitCodes":       "its master decides itself what is worth another try",
	"failure.ignoreDisruptions":    "its master decides itself what is worth another try",
	"failure.inPlace":              "its master makes a pod anew that failed",
	"failure.deadline":             "its API has no field for it",
	"gracePeriod":                  "its master gives every pod Kubernetes' own 30s",
	"checkpoint.save":              "its master drops hooks, and gives every pod Kubernetes' own 30s",
	"ttlAfterFinished":             "its API has no field for it",
})

// mutableTemplate: no hash is needed where an API server accepts another template.
var mutableTemplate = lacks{"hashedNames": "its pod template may change, so that no name needs a hash"}

// namesReadyPods: nobody is ready before the others are found, and nobody is found before it is ready.
var namesReadyPods = lacks{
	"probes.readiness": "its controller's Services name ready workers alone, and those would wait for each other",
}

// grouped are the frameworks that have groups beside their workers.
var grouped = []string{job.FrameworkTorchelastic, job.FrameworkJAX}

// hostsInstead is what takes the place of a coordinator.
const hostsInstead = "the variables TEGEN_<GROUP>_HOST name the first pod of each group"

// workersOnly is a target of one template of pods.
var workersOnly = lacks{
	"groups":                       "it has one template, which is the workers'",
	"groups.after":                 "it has one template, so that no pods could wait for others",
	"groups.after=" + job.WhenDone: "it has one template, so that no pods could wait for others",
	"success":                      "it has no groups beside the workers that could decide it",
	"success=" + job.WhenAll:       "it has no groups beside the workers that could decide it",
	"coordinator":                  "only a JobSet has one",
	"groups.failure":               "it has no groups beside the workers that could fail otherwise",
	"failure.restartAll":           "nobody starts all pods anew together: their controller replaces single ones",
	"failure.rules":                "only a JobSet tells failures of its Jobs apart",

	"failure.restartAllInPlace": "only a JobSet starts all containers anew in their pods",
	"failure.restartAllOn":      "nobody starts all pods anew together",
}

// jobGroupsLack is what Jobs that know nothing of each other cannot do.
var jobGroupsLack = lacks{
	"groups.after":                 "each group is a Job of its own, and no Job waits for another",
	"groups.after=" + job.WhenDone: "each group is a Job of its own, and no Job waits for another",
	"success":                      "each group is a Job of its own, and each must succeed",
	"success=" + job.WhenAll:       "each group is a Job of its own, and each must succeed",
	"coordinator":                  "only a JobSet has one; " + hostsInstead,
	"failure.restartAll":           "a Job that has failed stays so: nobody makes it anew",
	"failure.rules":                "a Job that has failed stays so, whatever the reason: only a JobSet makes it anew",

	"failure.restartAllInPlace": "only a JobSet starts all containers anew in their pods",
	"failure.restartAllOn":      "nobody starts all pods anew together",
}

// seesJobs is what a JobSet cannot do, to which a Job that failed is one like another.
var seesJobs = lacks{
	"failure.restartAllOn": "a JobSet sees Jobs that failed, and no pods: ignoreDisruptions keeps those that were " +
		"evicted from being counted",
}

// What Horovod's own nature rules out, whoever makes the pods.
var horovodLacks = lacks{
	"probes.readiness":          "a worker is ready when its sshd listens, for which the launcher waits",
	"workers.firstIndex":        "hosts are counted from 0",
	"checkpoint.save":           "sshd starts its ranks, and all end when the first is lost: save at intervals",
	"failure.restartsPerWorker": "a launcher that is given up would leave workers that never end",
}

// mpiLacks is what MPI itself rules out: mpirun ends all processes with the first that is lost.
var mpiLacks = lacks{"workers.min": "processes of MPI end with the first that is lost, and none joins later"}

// launchesInWorker: no other pod starts the processes.
var launchesInWorker = lacks{
	"roles.launcher":  "the pod of worker 0 runs the launcher too",
	"failure.inPlace": "worker 0 launches, and a launcher starts anew in a pod of its own",
}

// mpijobLacks is what an MPIJob has no field for (kubeflow/mpi-operator v0.8.0, pkg/apis/kubeflow/v2beta1/types.go and
// pkg/controller/mpi_job_controller.go).
var mpijobLacks = lacks{
	"servers":         "an MPIJob has a launcher and workers, and no more roles",
	"roles.server":    "an MPIJob has a launcher and workers, and no more roles",
	"roles.scheduler": "an MPIJob has a launcher and workers, and no more roles",
	"gang.scheduler=kubernetes": "its pod templates have Kubernetes 1.35's field in place of schedulingGroup, and " +
		"lose this one",
	"failure.restarts=" + job.None: "its launcher is a Job, and one that names no limit has one of 6",
	"ssh.secret":                   "the MPI operator makes a pair of keys for each job itself",
	"failure.restartsPerWorker":    "the MPI operator counts failures of the launcher alone",
	"failure.fatalExitCodes":       "the MPI operator tells no exit codes apart",
	"failure.ignoreDisruptions": "the MPI operator makes deleted workers again without counting them, leaves those " +
		"that failed, as evicted ones do, and counts every launcher that is lost",
	"failure.inPlace": "the MPI operator always has the kubelet do so with workers, and a launcher is made anew",
	"hashedNames": "all names of the MPI operator start with the job's, and it makes a changed one no " +
		"new job",
}

// jaxLacks is from jax 0.10.2: jax/_src/distributed.py waits for all processes and ends with the first that is lost.
var jaxLacks = lacks{
	"workers.min":        "JAX trains with exactly the processes that it had at the start",
	"workers.firstIndex": "its pods are counted from 0",
}

// onlySets is why others than a JobSet have no slices.
const onlySets = "only a JobSet has a Job for each slice of the workers"

// What the targets with parameter servers cannot carry.
var (
	MxnetJob = union(others(job.FrameworkMXNet), ofJobs, countedWorkers, lacks{
		"gang.scheduler=kueue": "each role is a Job of its own, and Kueue admits Jobs one by one",
	})

	// MxnetLocalJob is a Job alone, which Kueue can admit.
	MxnetLocalJob = Target{
		job.FrameworkMXNet, job.TargetJob, "batch/v1 Job",
		union(others(job.FrameworkMXNet), ofJobs, countedWorkers),
	}

	mxjob = union(others(job.FrameworkMXNet), countedWorkers, mutableTemplate, namesReadyPods, mxjobPods, lacks{
		"mxnet":                "an MXJob has servers always, and its operator names the pods",
		"gang.scheduler=kueue": "Kueue ended its support of MXJob (kueue#4077)",
		"gang.scheduler=kubernetes": "its pod templates are older than the gangs of Kubernetes itself and lose the " +
			"field",
		"failure.restarts":             "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.restarts=" + job.None: "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.restartsPerWorker":    "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.fatalExitCodes":       "with ps-lite any failure ends a job, and an MXJob is never of mode local",
		"failure.ignoreDisruptions":    "ps-lite cannot re-admit a lost pod, and an MXJob is never of mode local",
		"failure.inPlace":              "ps-lite cannot re-admit a lost process, and an MXJob is never of mode local",
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
