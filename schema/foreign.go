package schema

import (
	"strings"

	"github.com/tegen-dev/tegen/internal/spelling"
)

// foreignAt are words of other tools at a place of a job, item numbers left out, and where a job has that.
var foreignAt = map[string]string{
	"spec.annotations":       "metadata.annotations, of all objects, or spec.workload.annotations",
	"spec.cmd":               "spec.command",
	"spec.entrypoint":        "spec.command",
	"spec.fsx":               "spec.storage.fsx",
	"spec.gpu":               "spec.resources.gpu",
	"spec.labels":            "metadata.labels, of all objects, or spec.workload.labels",
	"spec.priority":          "spec.placement.priorityClass",
	"spec.restartPolicy":     "spec.failure: how often pods are started again, and which failures count",
	"spec.timeout":           "spec.failure.deadline",
	"spec.gang.minMember":    "spec.gang.minAvailable",
	"spec.gang.queueName":    "spec.gang.queue",
	"spec.identity.role":     "spec.identity.irsa.role",
	"spec.identity.roleArn":  "spec.identity.irsa.role",
	"spec.workers.count":     "spec.workers.replicas",
	"spec.workers.num":       "spec.workers.replicas",
	"spec.workers.number":    "spec.workers.replicas",
	"spec.workers.size":      "spec.workers.replicas",
	"spec.storage.configMap": "spec.podTemplate: a volume of spec, and volumeMounts of its container worker",
	"spec.storage.secret":    "spec.podTemplate: a volume of spec, and volumeMounts of its container worker",

	"spec.storage.accessMode":       "spec.storage.dynamic.accessMode",
	"spec.storage.accessModes":      "spec.storage.dynamic.accessMode",
	"spec.storage.containerPath":    "spec.storage.mountPath",
	"spec.storage.existingClaim":    "spec.storage.claim",
	"spec.storage.mount":            "spec.storage.mountPath",
	"spec.storage.path":             "spec.storage.mountPath",
	"spec.storage.s3":               "spec.storage.dataset.url",
	"spec.storage.size":             "spec.storage.dynamic.size",
	"spec.storage.storageClass":     "spec.storage.dynamic.storageClass",
	"spec.storage.storageClassName": "spec.storage.dynamic.storageClass",
	"spec.storage.target":           "spec.storage.mountPath",
}

// foreignWords are words of Kubernetes, its operators and launchers that mean one thing wherever they stand, in lower
// case and without '-' and '_', and where a job has that.
var foreignWords = map[string]string{
	"claimname":             "spec.storage.claim",
	"persistentvolumeclaim": "spec.storage.claim",
	"pvc":                   "spec.storage.claim",
	"pvcname":               "spec.storage.claim",

	"mounts":                 "spec.storage",
	"persistentvolumeclaims": "spec.storage",
	"pvcs":                   "spec.storage",
	"volumeclaimtemplates":   "spec.storage",
	"volumemounts":           "spec.storage",
	"volumes":                "spec.storage",

	"gpucount":       "spec.resources.gpu",
	"gpus":           "spec.resources.gpu",
	"gpuspernode":    "spec.resources.gpu",
	"gpusperworker":  "spec.resources.gpu",
	"numgpus":        "spec.resources.gpu",
	"nvidia.com/gpu": "spec.resources.gpu",

	"instancetype": "spec.resources.machine",
	"machinetype":  "spec.resources.machine",
	"nodetype":     "spec.resources.machine",

	"efa":                   "spec.resources.machine, whose cards come with it, or spec.resources.devices",
	"rdma":                  "spec.resources.machine, whose cards come with it, or spec.resources.devices",
	"vpc.amazonaws.com/efa": "spec.resources.machine, whose cards come with it, or spec.resources.devices",

	"dshm":         "spec.resources.shm",
	"sharedmemory": "spec.resources.shm",
	"shmsize":      "spec.resources.shm",

	"completions":   "spec.workers.replicas",
	"instancecount": "spec.workers.replicas",
	"nnodes":        "spec.workers.replicas",
	"nodecount":     "spec.workers.replicas",
	"nodes":         "spec.workers.replicas",
	"numnodes":      "spec.workers.replicas",
	"numworkers":    "spec.workers.replicas",
	"parallelism":   "spec.workers.replicas",
	"workercount":   "spec.workers.replicas",
	"worldsize":     "spec.workers: replicas, and processes of each",

	"elasticpolicy": "spec.workers: min and max",
	"maxreplicas":   "spec.workers.max",
	"maxworkers":    "spec.workers.max",
	"minreplicas":   "spec.workers.min",
	"minworkers":    "spec.workers.min",

	"nprocpernode":   "spec.workers.processes",
	"procspernode":   "spec.workers.processes",
	"slots":          "spec.workers.processes",
	"slotsperworker": "spec.workers.processes",

	"kueue":      "spec.gang: write scheduler: kueue and queue there",
	"localqueue": "spec.gang.queue",
	"queuename":  "spec.gang.queue",

	"iamrole":    "spec.identity.irsa.role",
	"iamrolearn": "spec.identity.irsa.role",
	"rolearn":    "spec.identity.irsa.role",

	"activedeadlineseconds": "spec.failure.deadline",
	"backofflimit":          "spec.failure.restarts",
	"maxretries":            "spec.failure.restarts",
	"maxruntime":            "spec.failure.deadline",
	"retries":               "spec.failure.restarts",

	"affinity":                      "spec.podTemplate.spec",
	"initcontainers":                "spec.podTemplate.spec",
	"topologyspreadconstraints":     "spec.podTemplate.spec",
	"checkpointdir":                 "spec.checkpoint.path",
	"checkpointpath":                "spec.checkpoint.path",
	"cleanpodpolicy":                "spec.cleanPods",
	"environment":                   "spec.env",
	"envvars":                       "spec.env",
	"hostnetwork":                   "spec.network.host",
	"podsecuritycontext":            "spec.security",
	"priorityclassname":             "spec.placement.priorityClass",
	"runtimeclassname":              "spec.placement.runtimeClass",
	"schedulername":                 "spec.placement.scheduler, or for a gang spec.gang.scheduler",
	"securitycontext":               "spec.security",
	"serviceaccountname":            "spec.identity.serviceAccount",
	"terminationgraceperiodseconds": "spec.gracePeriod",
	"ttlsecondsafterfinished":       "spec.ttlAfterFinished",
}

// foreign returns where a job has what another tool calls by a name, "" where that is unknown.
func foreign(at, name string) string {
	if field := foreignAt[at]; field != "" {
		return field
	}
	return foreignWords[strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))]
}

// meantValues are words of other tools as the value of a field, and the end of the message about it.
var meantValues = map[string]map[string]string{
	"spec.framework": {
		"accelerate": ofTorch, "ddp": ofTorch, "deepspeed": ofTorch, "fsdp": ofTorch, "lightning": ofTorch,
		"megatron": ofTorch, "pytorch": ofTorch, "torch": ofTorch, "torchrun": ofTorch, "transformers": ofTorch,
		"flax": "; did you mean \"jax\"?", "hvd": "; did you mean \"horovod\"?",
		"horovodrun": "; did you mean \"horovod\"?", "mpirun": "; did you mean \"mpi\"?",
		"openmpi": "; did you mean \"mpi\"?", "byteps": "; bytescheduler serves it, in mode byteps",
		"keras": ofTensorFlow, "tensorflow": ofTensorFlow, "tf": ofTensorFlow,
	},
	"spec.target": {
		"batch": "; did you mean \"job\"?", "batch/v1": "; did you mean \"job\"?",
		"kubernetes": "; did you mean \"job\"?", "mpi": "; did you mean \"mpijob\"?",
		"mpioperator": "; did you mean \"mpijob\"?", "trainer": "; did you mean \"trainjob\"?",
		"volcano": "; did you mean \"vcjob\"?",
	},
	"spec.launcher": {
		"accelerate": unlaunchedWord, "deepspeed": unlaunchedWord,
		"dlroverrun": "; dlrover-run is that of framework dlrover",
		"horovodrun": "; horovodrun is that of framework horovod",
		"mpirun":     "; mpirun is that of framework mpi",
		"python":     "; write python into command: each launcher starts that",
		"tegen": "; it was removed: remove launcher, and set rendezvous: {backend: c10d, store: etcd, proxy: true}, " +
			"or for target elasticjob backend: etcd with store: companion; the image must contain torchrun",
	},
	"spec.rendezvous.backend": {
		"etcdv3": "; an etcd 3.5 or newer serves backend c10d with rendezvous.proxy: true",
		"gloo":   "; a library of collectives is named in spec.network.collective",
		"nccl":   "; a library of collectives is named in spec.network.collective",
	},
}

const (
	ofTorch      = "; torchelastic, the default, starts programs of PyTorch"
	ofTensorFlow = "; horovod starts programs of TensorFlow that use Horovod, and of target vcjob " +
		"volcano.plugins.tensorflow sets TF_CONFIG for others"
	unlaunchedWord = "; set entrypoint and write it into command, or leave it out: torchrun starts its programs too"
)

// meantWord ends the message about a value that is none of those there are with what could have been meant.
func meantWord(path, word string, known []string) string {
	at, _ := inJob(path, "")
	said := meantValues[itemNumber().ReplaceAllString(at, "")]
	if hint := said[strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(word))]; hint != "" {
		return hint
	}
	return spelling.Suggest(word, known)
}
