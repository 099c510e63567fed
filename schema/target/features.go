package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// failingAlone are the groups that fail otherwise than the workers.
func failingAlone(j *Written) (paths []string) {
	for i := range j.Spec.Groups {
		if j.Spec.Groups[i].Failure != nil {
			paths = append(paths, fmt.Sprintf("spec.groups[%d].failure", i))
		}
	}
	return paths
}

// Feature is a part of a job that not every target can carry.
type Feature struct {
	Name string // a field of the spec, or field=value; the key in Target.Lacks
	Doc  string // a few words for docs/support.md
	// Shows are what it adds to what every target renders that carries it, or after "-" takes away: parts of paths with
	// their values, such as .env[NAME].value=x, with "|" between alternatives. TestSupport holds all targets to all of
	// them, so that none gets half of a feature.
	Shows []string

	DependsOn string                  // the parts that used depends on
	Used      func(*Written) []string // the paths where a job uses it
}

// Features lists what targets differ in, in the order of job.cue.
var Features = slices.Concat([]Feature{
	written("launcher", "who starts the processes", "-=torchrun"),
	{
		"launcher=" + job.LauncherNone, "a program that is told of no rendezvous",
		[]string{"-[PET_NNODES]|-.elasticPolicy.|-.torch="},
		"launcher", unlaunched,
	},
	written("workingDir", "the directory that the program starts in", ".workingDir="),
	written("env", "environment variables of the workers", ".env["),
	written("envFrom", "variables from all keys of Secrets and ConfigMaps", ".envFrom["),
	written("sidecars", "containers beside the program", ".initContainers[board].restartPolicy=Always",
		".initContainers[board].volumeMounts[data].mountPath=/data"),
	written("probes.startup", "a program that takes long to start", ".startupProbe."),
	written("probes.liveness", "a program that no longer answers", ".livenessProbe."),
	written("probes.readiness", "a worker that is of use", ".readinessProbe."),
	written("metrics", "metrics of the workers", ".ports[metrics].containerPort="),
	written("metrics.podMonitor", "a PodMonitor that collects them", "PodMonitor.spec.podMetricsEndpoints"),
	{
		"workers.min", "elastic: fewer workers than the maximum train",
		[]string{"minAvailable=1|minReplicas=|[PET_NNODES]|=--min"},
		"workers.replicas workers.min workers.max",
		Elastic,
	},
	written("workers.firstIndex", "pods counted from 1", "=j-worker-0", "[PET_RDZV_ENDPOINT].value=j-worker-0"),
	{
		"workers.slices", "slices of the workers, each a Job of its own",
		[]string{".replicatedJobs[worker].replicas=2", ".env[SLICE_ID]", ".completions=1"},
		"workers.slices",
		func(j *Written) []string { return When(j.Spec.Workers.Slices > 1, "workers.slices") },
	},
	{
		"workers.autoscale.cpu", "as many workers as the use of their CPU asks for",
		[]string{".averageUtilization=80"},
		"workers.autoscale.cpu",
		func(j *Written) []string { return When(j.Spec.Workers.Autoscale != nil, "workers.autoscale.cpu") },
	},
	{
		"workers.master", "a Master, for programs that meet at it by themselves",
		[]string{".Master."},
		"workers.master",
		func(j *Written) []string { return When(j.Spec.Workers.Master, "workers.master") },
	},
	written("groups", "groups of pods beside the workers", ".env[TEGEN_SIDE_HOST].value="),
	{
		"groups.failure", "what a failed pod of a group means",
		[]string{".restartPolicy=OnFailure"},
		"groups", failingAlone,
	},
	orderOf("groups.after", "pods that start after others are ready", job.WhenReady, ".dependsOn"),
	orderOf("groups.after="+job.WhenDone, "pods that start after others are done", job.WhenDone,
		".dependsOn[worker].status="),
	written("resources.machine", "a share of a machine by its type", ".nodeSelector.", ".limits.memory="),
	written("resources.devices", "devices and huge pages beside the accelerators", ".limits."+job.DeviceEFA+"="),
	writtenOf("resources.deviceClass", "resources", "accelerators by a claim of dynamic resource allocation",
		"deviceClass deviceSelectors",
		"ResourceClaimTemplate.spec.", ".resourceClaims[accelerators].resourceClaimTemplateName=",
		".resources.claims[accelerators]"),
	written("resources.claims", "claims beside the accelerators", ".resourceClaims[channel].resourceClaimTemplateName=",
		".resources.claims[channel]", "expects=ResourceClaimTemplate/"),
	writtenOf("resources", "resources", "requests that are not the limits, or none",
		"requests limits", ".requests.cpu="),
	writtenOf("rendezvous", "rendezvous", "backend and store of the rendezvous",
		"backend store endpoint port id etcd companion keepAlive keepAliveAttempts",
		"StatefulSet.metadata.name=e", "Service.metadata.name=e", "=e:2379|.rdzvHost=e"),
	{
		"rendezvous.proxy", "a torchrun that outlives its store",
		[]string{"[install-launcher]", "=proxy|tegen-rendezvous proxy"},
		"target rendezvous",
		func(j *Written) []string { return When(j.Spec.Rendezvous.Proxy, "rendezvous.proxy") },
	},
	writtenOf("rendezvous.maxRestarts", "rendezvous", "timeouts and restarts of the rendezvous",
		"maxRestarts lastCall joinTimeout conf", "[PET_MAX_RESTARTS]|axRestarts=|max_restarts|max-restarts"),
	written("servers", "parameter servers", "PodDisruptionBudget.spec.minAvailable="),
	written("ssh", "port and keys of ssh", ".ports[ssh].containerPort=2222", ".env[TEGEN_SSH_PORT].value=2222"),
	{
		"ssh.server=" + job.SSHImage, "an sshd and users of the image's own",
		[]string{".sshAuthMountPath=/root/.ssh", "-.volumes[ssh]", "-.readinessProbe."},
		"target ssh",
		func(j *Written) []string { return When(j.Spec.ImageSSH(), "ssh.server") },
	},
	written("ssh.secret", "ssh keys that exist already", ".volumes[ssh-keys].secret.secretName=", "expects=Secret/",
		"-.volumes[ssh-keys].secret.optional=true", "-Secret.metadata.name=j-ssh", "-Job.metadata.name=j-keygen"),
	{
		"mxnet", "a worker alone, and names of MXNet's first operator",
		[]string{"-DisruptionBudget.metadata.name=j-server", "-Job.metadata.name=j-scheduler|.jobMode=local"},
		"mxnet", mxnetNames,
	},
	written("horovod", "controller and timeouts of Horovod", ".env[TEGEN_START_SECONDS].value=420"),
	written("bytescheduler", "tuning of ByteScheduler, BytePS", ".env[BYTESCHEDULER_PARTITION].value=7"),
	written("dlrover", "strategy of DLRover", "=--network-check"),
	written("jax", "port of JAX's coordinator", ".ports[coordinator].containerPort=2345"),
	written("mpi", "implementation, launcher and options of MPI", "=--tag-output",
		".env[TEGEN_START_SECONDS].value=420"),
	written("volcano.plugins", "plugins of Volcano's controller", "=--ssh-port=2222"),
}, gangFeatures(), []Feature{
	{
		"suspend", "no training pod starts",
		[]string{"uspend=true|.schedulingGates["},
		"suspend",
		func(j *Written) []string { return When(j.Spec.Suspend, "suspend") },
	},
	written("managedBy", "another controller that starts the job", "anagedBy="),
	written("storage", "volumes", ".volumeMounts[runs].mountPath=/runs",
		".volumes[runs].persistentVolumeClaim.claimName="),
	{
		"storage.onDelete", "volumes that go with the job",
		[]string{"PersistentVolumeClaim.metadata.labels.tegen.dev/job=j"},
		"storage", goingVolumes,
	},
	{
		"storage.dataset", "datasets fetched before training",
		[]string{"Job.metadata.name=j-prefetch", ".initContainers[wait-for-dataset]"},
		"storage", fetchedData,
	},
	written("checkpoint", "a place for checkpoints", ".env[CHECKPOINT_DIR].value=/data/ckpt",
		".volumeMounts[data].mountPath=/data"),
	written("checkpoint.save", "a checkpoint before a pod ends", ".lifecycle.preStop.exec.command[]"),
	written("script.image", "a script in the image", "=/main.py"),
	written("script.s3", "a script in S3",
		"=/tegen/script/main.py", ".initContainers[fetch-script].volumeMounts[script]", ".volumes[script].emptyDir",
		".volumeMounts[script].readOnly=true"),
	written("script.configMap", "a script in a ConfigMap",
		"=/tegen/script/main.py", ".volumes[script].configMap", ".volumeMounts[script].readOnly=true"),
	written("code.git", "code from a git repository",
		".initContainers[fetch-code].env[GITSYNC_REPO].value=", ".volumeMounts[code].subPath=git/tree"),
	written("code.image", "code in an OCI image", ".volumes[code].image.reference="),
	written("identity", "cloud identity", ".serviceAccountName=trainer", "-ServiceAccount.metadata.name=j"),
	written("network.host", "the node's network", ".hostNetwork=true", ".dnsPolicy=ClusterFirstWithHostNet"),
	{
		"network.fabric", "EFA, InfiniBand or RoCE between the workers",
		[]string{".env[FI_PROVIDER].value=efa"},
		"network.fabric resources.machine resources.gpu workers.max", fabricOfJob,
	},
	written("network.allowFrom", "who else may connect to workers", ".from[].namespaceSelector."),
	written("network.egress", "connections of workers that are closed",
		".to[].podSelector.matchLabels.app.kubernetes.io/component=worker"),
	written("network.allowTo", "what they may connect to all the same", ".to[].ipBlock.cidr=10.0.0.0/8"),
	written("network.interface", "the interface of NCCL and Gloo",
		".env[NCCL_SOCKET_IFNAME]", ".env[GLOO_SOCKET_IFNAME]"),
	written("network.collective", "the collective backend", ".env[DIST_BACKEND]"),
	written("placement.scheduler", "a scheduler by name", ".schedulerName="),
	written("placement.priorityClass", "priority", ".priorityClassName="),
	written("placement.preemptionPolicy", "whether pending pods push out others", ".preemptionPolicy="),
	written("placement.runtimeClass", "runtime class", ".runtimeClassName="),
	{
		"placement.spot", "nodes that may be taken back",
		[]string{".nodeSelector.cloud.google.com/gke-spot=", ".tolerations[]"},
		"placement",
		func(j *Written) []string { return When(j.Spec.Placement.Spot, "placement.spot") },
	},
	written("placement.nodeSelector", "node selector", ".nodeSelector."),
	written("placement.tolerations", "tolerations", ".tolerations[]"),
	{
		"security.runAsGroup", "the group of the processes",
		[]string{".securityContext.runAsGroup="},
		"security", ownGroup,
	},
	written("failure.restarts", "failed pods that the job survives", ".backoffLimit=|.maxRestarts=|.maxRetry="),
	{
		"failure.restarts=" + job.None, "no limit on them",
		[]string{"-.backoffLimit=|-.maxRestarts="},
		"target failure", endless,
	},
	{
		"failure.restartsPerWorker", "failed pods that a worker survives",
		[]string{"backoffLimitPerIndex=|estartCount="},
		"target framework failure", perWorker,
	},
	written("failure.restartAll", "all pods are started anew together", ".maxRestarts=|.maxRetry="),
	written("failure.rules", "what some failures mean for all", ".action=FailJobSet"),
	{
		"failure.restartAllInPlace", "all containers are started anew in their pods",
		[]string{".restartStrategy=InPlaceRestart"},
		"failure",
		func(j *Written) []string {
			return When(j.Spec.Failure.RestartAllInPlace, "failure.restartAllInPlace")
		},
	},
	written("failure.restartAllOn", "lost pods alone start all anew", "-=PodFailed"),
	written("failure.fatalExitCodes", "exit codes that end the job", "xitCode"),
	{
		"failure.ignoreDisruptions", "drains and preemptions are no failures",
		[]string{"-=DisruptionTarget|.backoffLimit="},
		"target framework failure", ignoresDisruptions,
	},
	{
		"failure.inPlace", "what failed is started again in its own pod",
		[]string{".restartPolicy=OnFailure"},
		"failure",
		func(j *Written) []string { return When(j.Spec.Failure.InPlace, "failure.inPlace") },
	},
	written("failure.deadline", "a limit on time", "ctiveDeadlineSeconds="),
	written("success", "groups that must succeed", "uccessPolicy|.action=CompleteJob"),
	{
		"success=" + job.WhenAll, "several groups that must all succeed",
		[]string{".operator=All"},
		"success", allOfSeveral,
	},
	written("coordinator", "a coordinator's host name on all pods", ".coordinator.replicatedJob="),
	written("gracePeriod", "time to write a checkpoint in", ".terminationGracePeriodSeconds="),
	written("ttlAfterFinished", "finished jobs are deleted", "tlSecondsAfterFinished="),
	written("cleanPods", "pods that are deleted when the job is over", "leanPodPolicy="),
	written("hashedNames", "names that change with the template", ".metadata.name=j"),
	roleOf("roles.server", "resources, nodes and pods of the parameter servers", ".workingDir=/ps"),
	roleOf("roles.scheduler", "resources, nodes and pods of their scheduler", ".tolerations[]|.workingDir=/ps"),
	roleOf("roles.launcher", "resources, nodes and pods of the launcher", ".image=y:1", ".hostIPC=true"),
	roleOf("roles.etcd", "resources, nodes and pods of an etcd", ".nodeSelector.a=b"),
	roleOf("roles.companion", "resources, nodes and pods of a companion", ".nodeSelector.a=b"),
	roleOf("roles.helper", "resources, nodes and pods of what prepares the job", ".nodeSelector.a=b"),
	written("workload", "labels and annotations of the workload alone",
		".metadata.labels.acme.example/queue=", ".metadata.annotations.argocd.argoproj.io/sync-options="),
	written("podTemplate", "any further field of the workers' pods", ".dnsPolicy=Default"),
})

// written is a feature that is used wherever its field is given, in the author's file or by an environment.
func written(field, doc string, shows ...string) Feature {
	used := func(j *Written) []string { return When(j.IsSet("spec."+field), field) }
	return Feature{field, doc, shows, "target", used}
}

// roleOf is a feature that is used wherever a role is spoken of. Its refusal names the roles that the job has instead.
func roleOf(field, doc string, shows ...string) Feature {
	f := written(field, doc, shows...)
	f.DependsOn += " workers.max rendezvous.store storage ssh mpi.launch"
	return f
}

// writtenOf is a feature that is used wherever one of some fields of a section is given.
func writtenOf(name, section, doc, fields string, shows ...string) Feature {
	used := func(j *Written) (paths []string) {
		for field := range strings.FieldsSeq(fields) {
			paths = append(paths, When(j.IsSet("spec."+section+"."+field), section+"."+field)...)
		}
		return paths
	}
	return Feature{name, doc, shows, "target", used}
}

// gangShows are what the dialects show: who places the pods, which gang they belong to, and how many start together.
// A controller that makes the group by itself is told so once.
var gangShows = map[string][]string{
	job.GangKoordinator: append(koordinatorShows(), ".schedulerName=koord-scheduler"),
	job.GangTegen:       append(koordinatorShows(), ".schedulerName="+names.Scheduler),
	job.GangCoscheduling: {
		".schedulerName=scheduler-plugins-scheduler", "cheduleTimeoutSeconds=",
		".scheduling.x-k8s.io/pod-group=|.schedulingPolicy.minAvailable=|.podGroupPolicy.coscheduling.",
		"PodGroup.spec.minMember=|.schedulingPolicy.minAvailable=|.podGroupPolicy.coscheduling.",
	},
	job.GangVolcano: { // whose own Job is a group
		".schedulerName=volcano",
		".scheduling.k8s.io/group-name=|.schedulingPolicy.minAvailable=|.podGroupPolicy.volcano={}|.tasks[worker]",
		"PodGroup.spec.minMember=|.schedulingPolicy.minAvailable=|.podGroupPolicy.volcano={}|.tasks[worker]",
	},
	// Where a Job waits in a queue, Kueue starts it; pods wait as a group.
	job.GangKueue: {
		".kueue.x-k8s.io/queue-name=", "-uspend=false|.kueue.x-k8s.io/pod-group-name=",
		"-uspend=false|.kueue.x-k8s.io/pod-group-total-count=",
	},
	job.GangKubernetes: {
		".schedulingGroup.podGroupName=", "Workload.metadata.name=",
		"PodGroup.spec.schedulingPolicy.gang.minCount=",
	},
}

// gangFeatures are the dialects of gang scheduling.
func gangFeatures() (all []Feature) {
	for _, d := range job.Dialects {
		used := func(j *Written) []string { return When(j.Spec.Gang.Is(d.Name), "gang.scheduler") }
		all = append(all, Feature{"gang.scheduler=" + d.Name, "gang of " + d.Name, gangShows[d.Name], "gang", used})
	}
	all = append(all, written("gang.topology", "workers near each other, where the gang's scheduler can",
		"/network-topology-spec=|.networkTopology.mode="))
	return all
}

// koordinatorShows are the annotations of which none may be missing.
func koordinatorShows() (keys []string) {
	for _, key := range []string{"name", "min-available", "mode", "waiting-time", "match-policy"} {
		keys = append(keys, ".gang.scheduling.koordinator.sh/"+key+"=")
	}
	return keys
}

// unlaunched passes over frameworks that have no launcher to choose, since launcher says so already.
func unlaunched(j *Written) []string { return When(j.Spec.Unlaunched(), "launcher") }

// Elastic is where a job says that it trains with fewer workers than the maximum.
func Elastic(j *Written) []string {
	w := &j.Spec.Workers
	field := "workers.min"
	if !j.IsSet("spec.workers.min") {
		field = "workers.max"
	}
	return When(w.Min < w.Max, field)
}

// endless passes over targets that count no restarts, since failure.restarts says so already.
func endless(j *Written) []string {
	return When(j.Spec.Failure.Restarts.None && (j.Row == nil || j.Row.Carries("failure.restarts")), "failure.restarts")
}

// perWorker passes over targets whose failed pods stay as they are, which needs no counting.
func perWorker(j *Written) []string {
	n := j.Spec.Failure.RestartsPerWorker
	return When(n != nil && !j.Spec.LeavesFailed(), "failure.restartsPerWorker")
}

// ignoresDisruptions passes over an ElasticJob whose killed workers are made again, and no others.
func ignoresDisruptions(j *Written) []string {
	return When(j.IsSet("spec.failure.ignoreDisruptions") && (j.Spec.Target != job.TargetElasticJob ||
		!j.Spec.LeavesFailed()), "failure.ignoreDisruptions")
}

func fetchedData(j *Written) (paths []string) {
	for i := range j.Spec.Storage {
		paths = append(paths, When(j.Spec.Storage[i].Dataset != nil, fmt.Sprintf("storage[%d].dataset", i))...)
	}
	return paths
}

func goingVolumes(j *Written) (paths []string) {
	for i := range j.Spec.Storage {
		field := fmt.Sprintf("storage[%d].onDelete", i)
		paths = append(paths, When(j.IsSet("spec."+field), field)...)
	}
	return paths
}

// ownGroup passes over the default, which is rendered for every target.
func ownGroup(j *Written) []string {
	group := j.Spec.Security.RunAsGroup
	return When(j.IsSet("spec.security.runAsGroup") && group.Number != nil && !group.Is(65534), "security.runAsGroup")
}

// When is the path of a field if it is used.
func When(used bool, field string) []string {
	if !used {
		return nil
	}
	return []string{"spec." + field}
}

// Instead names the targets that can carry a feature: of the same framework, or else of any.
func Instead(of *Target, feature string) string {
	var same, any []string
	for _, t := range All {
		switch {
		case !t.Carries(feature):
		case t.Framework == of.Framework:
			same = append(same, t.Name)
		case !slices.Contains(any, t.Framework):
			any = append(any, t.Framework)
		}
	}
	switch {
	case len(same) > 0:
		return "target " + strings.Join(same, ", ") + " can"
	case len(any) > 0 && strings.HasPrefix(of.Lacks[feature], OwnedBy): // and the word for it was forgotten, or is old
		return "set framework: " + strings.Join(any, " or ") + ", where that is meant, or leave this out"
	case len(any) > 0:
		return "framework " + strings.Join(any, ", ") + " can"
	}
	return "no target can"
}

// fabricOfJob is where a job says that it has a fabric.
func fabricOfJob(j *Written) []string {
	if j.IsSet("spec.network.fabric") {
		return When(j.Fabric() != nil, "network.fabric")
	}
	return When(j.Fabric() != nil, "resources.machine")
}
