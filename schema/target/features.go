package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

// Feature is a part of a job that not every target can carry.
type Feature struct {
	Name string // a field of the spec, or field=value; the key in Target.Lacks
	Doc  string // a few words for docs/support.md
	// Shows are what it adds to what every target renders that carries it, or after "-" takes away: parts of paths with
	// their values, such as .env[NAME].value=x, with "|" between alternatives. TestSupport holds all targets to all of
	// them, so that none gets half of a feature.
	Shows []string
	Used  part.Func[*Used] // finds the paths where a job uses it
}

// Used collects the paths at which a job uses a feature.
type Used struct {
	*part.Tree
	Paths []string
}

// When adds a field of the spec if the job uses the feature there.
func (u *Used) When(used bool, field string) {
	if used {
		u.Paths = append(u.Paths, "spec."+field)
	}
}

// WhenSet adds fields of the spec that the author or an Environment wrote. A field with a mistake in it is not added,
// and the mistake hides none of the other fields.
func (u *Used) WhenSet(fields ...string) {
	for _, field := range fields {
		u.When(u.IsValid("spec."+field), field)
	}
}

// UsedWhen finds a field of the spec if a value is true.
func UsedWhen(field string, is *part.Value[bool]) part.Func[*Used] {
	return part.Of1(func(u *Used, used bool) { u.When(used, field) }, is)
}

// Features lists what targets differ in, in the order of job.cue.
var Features = slices.Concat([]Feature{
	written("launcher", "who starts the processes", "-=torchrun"),
	// frameworks without a choice of launchers are refused by launcher already
	when("launcher="+job.LauncherNone, "a program that is told of no rendezvous", part.Unlaunched,
		"-[PET_NNODES]|-.elasticPolicy.|-.torch="),
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
		part.Of1(Elastic, part.Counts),
	},
	written("workers.firstIndex", "pods counted from 1", "=j-worker-0", "[PET_RDZV_ENDPOINT].value=j-worker-0"),
	when("workers.slices", "slices of the workers, each a Job of its own",
		part.OfSpec("workers.slices", func(s *job.Spec) bool { return s.Workers.Slices > 1 }),
		".replicatedJobs[worker].replicas=2", ".env[SLICE_ID]", ".completions=1"),
	when("workers.autoscale.cpu", "as many workers as the use of their CPU asks for",
		part.OfSpec("workers.autoscale", func(s *job.Spec) bool { return s.Workers.Autoscale != nil }),
		".averageUtilization=80"),
	when("workers.master", "a Master, for programs that meet at it by themselves", part.Master, ".Master."),
	written("groups", "groups of pods beside the workers", ".env[TEGEN_SIDE_HOST].value="),
	{
		"groups.failure", "what a failed pod of a group means",
		[]string{".restartPolicy=OnFailure"},
		part.Of1(failingAlone, part.Groups),
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
	when("rendezvous.proxy", "a torchrun that outlives its store", part.Proxy,
		"[install-launcher]", "=proxy|tegen-rendezvous proxy"),
	writtenOf("rendezvous.maxRestarts", "rendezvous", "timeouts and restarts of the rendezvous",
		"maxRestarts lastCall joinTimeout conf", "[PET_MAX_RESTARTS]|axRestarts=|max_restarts|max-restarts"),
	written("servers", "parameter servers", "PodDisruptionBudget.spec.minAvailable="),
	written("ssh", "port and keys of ssh", ".ports[ssh].containerPort=2222", ".env[TEGEN_SSH_PORT].value=2222"),
	when("ssh.server="+job.SSHImage, "an sshd and users of the image's own",
		part.OfSpec("ssh.server", (*job.Spec).ImageSSH),
		".sshAuthMountPath=/root/.ssh", "-.volumes[ssh]", "-.readinessProbe."),
	written("ssh.secret", "ssh keys that exist already", ".volumes[ssh-keys].secret.secretName=", "expects=Secret/",
		"-.volumes[ssh-keys].secret.optional=true", "-Secret.metadata.name=j-ssh", "-Job.metadata.name=j-keygen"),
	{
		"mxnet", "a worker alone, and names of MXNet's first operator",
		[]string{"-DisruptionBudget.metadata.name=j-server", "-Job.metadata.name=j-scheduler|.jobMode=local"},
		part.Of2(mxnetNames, part.Framework, mxnetMode),
	},
	written("horovod", "controller and timeouts of Horovod", ".env[TEGEN_START_SECONDS].value=420"),
	written("bytescheduler", "tuning of ByteScheduler, BytePS", ".env[BYTESCHEDULER_PARTITION].value=7"),
	written("dlrover", "strategy of DLRover", "=--network-check"),
	written("jax", "port of JAX's coordinator", ".ports[coordinator].containerPort=2345"),
	written("mpi", "implementation, launcher and options of MPI", "=--tag-output",
		".env[TEGEN_START_SECONDS].value=420"),
	written("volcano.plugins", "plugins of Volcano's controller", "=--ssh-port=2222"),
}, gangFeatures(), []Feature{
	when("suspend", "no training pod starts", part.Suspend, "uspend=true|.schedulingGates["),
	written("managedBy", "another controller that starts the job", "anagedBy="),
	written("storage", "volumes", ".volumeMounts[runs].mountPath=/runs",
		".volumes[runs].persistentVolumeClaim.claimName="),
	{
		"storage.onDelete", "volumes that go with the job",
		[]string{"PersistentVolumeClaim.metadata.labels.tegen.dev/job=j"},
		part.Of1(goingVolumes, part.Storage),
	},
	{
		"storage.dataset", "datasets fetched before training",
		[]string{"Job.metadata.name=j-prefetch", ".initContainers[wait-for-dataset]"},
		part.Of1(fetchedData, part.Storage),
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
		part.Of1(fabricOfJob, hasFabric),
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
	when("placement.spot", "nodes that may be taken back",
		part.OfSpec("placement.spot", func(s *job.Spec) bool { return s.Placement.Spot }),
		".nodeSelector.cloud.google.com/gke-spot=", ".tolerations[]"),
	written("placement.nodeSelector", "node selector", ".nodeSelector."),
	written("placement.tolerations", "tolerations", ".tolerations[]"),
	{
		"security.runAsGroup", "the group of the processes",
		[]string{".securityContext.runAsGroup="},
		part.Of1(ownGroup, runAsGroup),
	},
	written("failure.restarts", "failed pods that the job survives", ".backoffLimit=|.maxRestarts=|.maxRetry="),
	{
		"failure.restarts=" + job.None, "no limit on them",
		[]string{"-.backoffLimit=|-.maxRestarts="},
		part.Of2(endless, unlimited, Row),
	},
	{
		"failure.restartsPerWorker", "failed pods that a worker survives",
		[]string{"backoffLimitPerIndex=|estartCount="},
		part.Of2(perWorker, part.RestartsPerWorker, part.LeavesFailed),
	},
	written("failure.restartAll", "all pods are started anew together", ".maxRestarts=|.maxRetry="),
	written("failure.rules", "what some failures mean for all", ".action=FailJobSet"),
	when("failure.restartAllInPlace", "all containers are started anew in their pods",
		part.OfSpec("failure.restartAllInPlace", func(s *job.Spec) bool { return s.Failure.RestartAllInPlace }),
		".restartStrategy=InPlaceRestart"),
	written("failure.restartAllOn", "lost pods alone start all anew", "-=PodFailed"),
	written("failure.fatalExitCodes", "exit codes that end the job", "xitCode"),
	{
		"failure.ignoreDisruptions", "drains and preemptions are no failures",
		[]string{"-=DisruptionTarget|.backoffLimit="},
		part.Of2(ignoresDisruptions, part.Target, part.LeavesFailed),
	},
	when("failure.inPlace", "what failed is started again in its own pod",
		part.OfSpec("failure.inPlace", func(s *job.Spec) bool { return s.Failure.InPlace }),
		".restartPolicy=OnFailure"),
	written("failure.deadline", "a limit on time", "ctiveDeadlineSeconds="),
	written("success", "groups that must succeed", "uccessPolicy|.action=CompleteJob"),
	{
		"success=" + job.WhenAll, "several groups that must all succeed",
		[]string{".operator=All"},
		UsedWhen("success.when", allOfSeveral),
	},
	written("coordinator", "a coordinator's host name on all pods", ".coordinator.replicatedJob="),
	written("gracePeriod", "time to write a checkpoint in", ".terminationGracePeriodSeconds="),
	written("ttlAfterFinished", "finished jobs are deleted", "tlSecondsAfterFinished="),
	written("cleanPods", "pods that are deleted when the job is over", "leanPodPolicy="),
	written("hashedNames", "names that change with the template", ".metadata.name=j"),
	written("roles.server", "resources, nodes and pods of the parameter servers", ".workingDir=/ps"),
	written("roles.scheduler", "resources, nodes and pods of their scheduler", ".tolerations[]|.workingDir=/ps"),
	written("roles.launcher", "resources, nodes and pods of the launcher", ".image=y:1", ".hostIPC=true"),
	written("roles.etcd", "resources, nodes and pods of an etcd", ".nodeSelector.a=b"),
	written("roles.companion", "resources, nodes and pods of a companion", ".nodeSelector.a=b"),
	written("roles.helper", "resources, nodes and pods of what prepares the job", ".nodeSelector.a=b"),
	written("workload", "labels and annotations of the workload alone",
		".metadata.labels.acme.example/queue=", ".metadata.annotations.argocd.argoproj.io/sync-options="),
	written("podTemplate", "any further field of the workers' pods", ".dnsPolicy=Default"),
})

// written is a feature that a job uses if its field is set, by the author or an Environment.
func written(field, doc string, shows ...string) Feature {
	return Feature{field, doc, shows, part.Of0(func(u *Used) { u.WhenSet(field) })}
}

// writtenOf is a feature that a job uses where one of some fields of a section is set.
func writtenOf(name, section, doc, fields string, shows ...string) Feature {
	return Feature{name, doc, shows, part.Of0(func(u *Used) {
		for field := range strings.FieldsSeq(fields) {
			u.WhenSet(section + "." + field)
		}
	})}
}

// when is a feature that a job uses if a value is true. It is named after its field, with or without =value.
func when(name, doc string, is *part.Value[bool], shows ...string) Feature {
	field, _, _ := strings.Cut(name, "=")
	return Feature{name, doc, shows, UsedWhen(field, is)}
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
		is := part.OfSpec("gang", func(s *job.Spec) bool { return s.Gang.Is(d.Name) })
		all = append(all, when("gang.scheduler="+d.Name, "gang of "+d.Name, is, gangShows[d.Name]...))
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

// Elastic finds where a job sets that it trains with fewer workers than the maximum.
func Elastic(u *Used, n part.Count) {
	field := "workers.min"
	if !u.IsSet("spec.workers.min") {
		field = "workers.max"
	}
	u.When(n.Min < n.Max, field)
}

// failingAlone finds the groups whose failures are handled differently from those of the workers.
func failingAlone(u *Used, groups []job.Group) {
	for i := range groups {
		u.When(groups[i].Failure != nil, fmt.Sprintf("groups[%d].failure", i))
	}
}

var unlimited = part.OfSpec("failure.restarts", func(s *job.Spec) bool { return s.Failure.Restarts.None })

// endless skips targets that count no restarts, because failure.restarts refuses these already.
func endless(u *Used, unlimited bool, row *Target) {
	u.When(unlimited && (row == nil || row.Carries("failure.restarts")), "failure.restarts")
}

// perWorker skips targets whose failed pods stay as they are, because these need no counting.
func perWorker(u *Used, restarts *int32, leavesFailed bool) {
	u.When(restarts != nil && !leavesFailed, "failure.restartsPerWorker")
}

// ignoresDisruptions skips an ElasticJob that recreates killed workers and no others.
func ignoresDisruptions(u *Used, target string, leavesFailed bool) {
	if target != job.TargetElasticJob || !leavesFailed {
		u.WhenSet("failure.ignoreDisruptions")
	}
}

func fetchedData(u *Used, storage []job.Storage) {
	for i := range storage {
		u.When(storage[i].Dataset != nil, fmt.Sprintf("storage[%d].dataset", i))
	}
}

func goingVolumes(u *Used, storage []job.Storage) {
	for i := range storage {
		u.WhenSet(fmt.Sprintf("storage[%d].onDelete", i))
	}
}

var runAsGroup = part.OfSpec("security.runAsGroup", func(s *job.Spec) job.ID { return s.Security.RunAsGroup })

// ownGroup skips the default, which every target renders.
func ownGroup(u *Used, group job.ID) {
	if group.Number != nil && !group.Is(65534) {
		u.WhenSet("security.runAsGroup")
	}
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

// hasFabric names the fields of the machine too, which may give the workers a fabric.
var hasFabric = part.New("network.fabric resources.machine resources.gpu workers.max",
	func(j *job.Job) bool { return j.Fabric() != nil })

// fabricOfJob finds where a job asks for its fabric.
func fabricOfJob(u *Used, has bool) {
	field := "network.fabric"
	if !u.IsSet("spec.network.fabric") {
		field = "resources.machine"
	}
	u.When(has, field)
}
