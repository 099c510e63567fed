package part

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/schema/job"
)

// Single fields, and whole sections.
var (
	Metadata          = New("metadata", func(j *job.Job) *job.Metadata { return &j.Metadata })
	Framework         = OfSpec("framework", func(s *job.Spec) string { return s.Framework })
	Target            = OfSpec("target", func(s *job.Spec) string { return s.Target })
	Launcher          = OfSpec("launcher", func(s *job.Spec) string { return s.Launcher })
	KubernetesVersion = OfSpec("kubernetesVersion", func(s *job.Spec) string { return s.KubernetesVersion })
	Command           = OfSpec("command", func(s *job.Spec) []string { return s.Command })
	Args              = OfSpec("args", func(s *job.Spec) []string { return s.Args })
	Env               = OfSpec("env", func(s *job.Spec) []job.Env { return s.Env })
	EnvFrom           = OfSpec("envFrom", func(s *job.Spec) []job.EnvFrom { return s.EnvFrom })
	Sidecars          = OfSpec("sidecars", func(s *job.Spec) []job.Sidecar { return s.Sidecars })
	Metrics           = OfSpec("metrics", func(s *job.Spec) *job.Metrics { return s.Metrics })
	Script            = OfSpec("script", func(s *job.Spec) *job.Script { return s.Script })
	Code              = OfSpec("code", func(s *job.Spec) *job.Code { return s.Code })
	Servers           = OfSpec("servers", func(s *job.Spec) *job.Servers { return &s.Servers })
	SSH               = OfSpec("ssh", func(s *job.Spec) *job.SSH { return &s.SSH })
	MXNet             = OfSpec("mxnet", func(s *job.Spec) *job.MXNet { return &s.MXNet })
	Horovod           = OfSpec("horovod", func(s *job.Spec) *job.Horovod { return &s.Horovod })
	ByteScheduler     = OfSpec("bytescheduler", func(s *job.Spec) *job.ByteScheduler { return &s.ByteScheduler })
	DLRover           = OfSpec("dlrover", func(s *job.Spec) *job.DLRover { return &s.DLRover })
	JAX               = OfSpec("jax", func(s *job.Spec) *job.JAX { return &s.JAX })
	MPI               = OfSpec("mpi", func(s *job.Spec) *job.MPI { return &s.MPI })
	Volcano           = OfSpec("volcano", func(s *job.Spec) *job.Volcano { return &s.Volcano })
	Gang              = OfSpec("gang", func(s *job.Spec) *job.Gang { return s.Gang })
	Suspend           = OfSpec("suspend", func(s *job.Spec) bool { return s.Suspend })
	ManagedBy         = OfSpec("managedBy", func(s *job.Spec) string { return s.ManagedBy })
	Storage           = OfSpec("storage", func(s *job.Spec) []job.Storage { return s.Storage })
	Checkpoint        = OfSpec("checkpoint", func(s *job.Spec) *job.Checkpoint { return s.Checkpoint })
	Identity          = OfSpec("identity", func(s *job.Spec) *job.Identity { return s.Identity })
	Placement         = OfSpec("placement", func(s *job.Spec) *job.Placement { return &s.Placement })
	Network           = OfSpec("network", func(s *job.Spec) *job.Network { return &s.Network })
	Security          = OfSpec("security", func(s *job.Spec) *job.Security { return &s.Security })
	Failure           = OfSpec("failure", func(s *job.Spec) *job.Failure { return &s.Failure })
	Success           = OfSpec("success", func(s *job.Spec) *job.Success { return s.Success })
	Coordinator       = OfSpec("coordinator", func(s *job.Spec) *job.Coordinator { return s.Coordinator })
	GracePeriod       = OfSpec("gracePeriod", func(s *job.Spec) metav1.Duration { return s.GracePeriod })
	GitOps            = OfSpec("gitops", func(s *job.Spec) bool { return s.GitOps })
	HashedNames       = OfSpec("hashedNames", func(s *job.Spec) bool { return s.HashedNames })
	CreateNamespace   = OfSpec("createNamespace", func(s *job.Spec) bool { return s.CreateNamespace })
	Groups            = OfSpec("groups", func(s *job.Spec) []job.Group { return s.Groups })
	Workload          = OfSpec("workload", func(s *job.Spec) *job.Workload { return &s.Workload })
	Roles             = OfSpec("roles", func(s *job.Spec) *job.Roles { return &s.Roles })
	PodTemplate       = OfSpec("podTemplate", func(s *job.Spec) json.RawMessage { return s.PodTemplate })
	Workers           = OfSpec("workers", func(s *job.Spec) *job.Workers { return &s.Workers })
	Resources         = OfSpec("resources", func(s *job.Spec) *job.Resources { return &s.Resources })
	Rendezvous        = OfSpec("rendezvous", func(s *job.Spec) *job.Rendezvous { return &s.Rendezvous })
)

// Count is how many workers there are, and may be.
type Count struct{ Replicas, Min, Max int32 }

// Parts of sections, for rules that hold whatever else is wrong in there.
var (
	Counts = OfSpec("workers.replicas workers.min workers.max", func(s *job.Spec) Count {
		return Count{s.Workers.Replicas, s.Workers.Min, s.Workers.Max}
	})
	Replicas     = OfSpec("workers.replicas", func(s *job.Spec) int32 { return s.Workers.Replicas })
	MinWorkers   = OfSpec("workers.min", func(s *job.Spec) int32 { return s.Workers.Min })
	Processes    = OfSpec("workers.processes", func(s *job.Spec) intstr.IntOrString { return s.Workers.Processes })
	MaxWorkers   = OfSpec("workers.max", func(s *job.Spec) int32 { return s.Workers.Max })
	Master       = OfSpec("workers.master", func(s *job.Spec) bool { return s.Workers.Master })
	WorkersAfter = OfSpec("workers.after", func(s *job.Spec) []job.After { return s.Workers.After })

	GPU         = OfSpec("resources.gpu", func(s *job.Spec) int64 { return s.Resources.GPU })
	GPUResource = OfSpec("resources.gpuResource", func(s *job.Spec) string { return s.Resources.GPUResource })
	AskedGPU    = New("resources.gpu", func(j *job.Job) int64 { return j.Origin.Asked.GPU }) // by the author
	MachineType = OfSpec("resources.machine", func(s *job.Spec) string { return s.Resources.Machine })
	Machine     = New("resources.machine", func(j *job.Job) *job.Machine { return j.Origin.Machine }) // nil if unknown

	RunAsUser  = OfSpec("security.runAsUser", func(s *job.Spec) job.ID { return s.Security.RunAsUser })
	Restricted = OfSpec("security.restricted", func(s *job.Spec) bool { return s.Security.Restricted })

	FatalExitCodes    = OfSpec("failure.fatalExitCodes", func(s *job.Spec) []int32 { return s.Failure.FatalExitCodes })
	HorovodController = OfSpec("horovod.controller", func(s *job.Spec) string { return s.Horovod.Controller })
	Interface         = OfSpec("network.interface", func(s *job.Spec) string { return s.Network.Interface })
	KeysPath          = OfSpec("ssh.keysPath", (*job.Spec).KeysPath)
	RestartsPerWorker = OfSpec("failure.restartsPerWorker", func(s *job.Spec) *int32 {
		return s.Failure.RestartsPerWorker
	})

	Scheduler     = OfSpec("placement.scheduler", func(s *job.Spec) string { return s.Placement.Scheduler })
	PriorityClass = OfSpec("placement.priorityClass", func(s *job.Spec) string { return s.Placement.PriorityClass })

	WorkloadAnnotations = OfSpec("workload.annotations", func(s *job.Spec) map[string]string {
		return s.Workload.Annotations
	})

	Backend         = OfSpec("rendezvous.backend", func(s *job.Spec) string { return s.Rendezvous.Backend })
	Store           = OfSpec("rendezvous.store", func(s *job.Spec) string { return s.Rendezvous.Store })
	Proxy           = OfSpec("rendezvous.proxy", func(s *job.Spec) bool { return s.Rendezvous.Proxy })
	RendezvousImage = OfSpec("images.rendezvous", func(s *job.Spec) string { return s.Images.Rendezvous })
	EtcdImage       = OfSpec("images.etcd", func(s *job.Spec) string { return s.Images.Etcd })
	EtcdV2Image     = OfSpec("images.etcdV2", func(s *job.Spec) string { return s.Images.EtcdV2 })
	Endpoint        = OfSpec("rendezvous.endpoint", func(s *job.Spec) string { return s.Rendezvous.Endpoint })
	MaxRestarts     = OfSpec("rendezvous.maxRestarts", func(s *job.Spec) int32 { return s.Rendezvous.MaxRestarts })
	LastCall        = OfSpec("rendezvous.lastCall", func(s *job.Spec) metav1.Duration { return s.Rendezvous.LastCall })
	JoinTimeout     = OfSpec("rendezvous.joinTimeout", func(s *job.Spec) metav1.Duration {
		return s.Rendezvous.JoinTimeout
	})
	AskedCompanion = New("rendezvous.companion", func(j *job.Job) bool { return j.Origin.Asked.Companion })
	RendezvousPort = OfSpec("rendezvous.port", func(s *job.Spec) int32 { return s.Rendezvous.Port })
	RendezvousConf = OfSpec("rendezvous.conf", func(s *job.Spec) map[string]string { return s.Rendezvous.Conf })
	Companion      = OfSpec("rendezvous.companion", func(s *job.Spec) *job.Companion {
		return &s.Rendezvous.Companion
	})
	Etcd = OfSpec("rendezvous.etcd", func(s *job.Spec) *job.Etcd { return &s.Rendezvous.Etcd })
)

// overSSH are the fields of OverSSH, which other values ask too.
const overSSH = "framework target bytescheduler.mode mpi.launch ssh.server workers.max"

// Questions that are answered by several fields.
var (
	Torchrun          = OfSpec("framework launcher", (*job.Spec).Torchrun)
	Unlaunched        = OfSpec("framework launcher", (*job.Spec).Unlaunched)
	WithoutRendezvous = OfSpec("workers.master framework launcher", (*job.Spec).WithoutRendezvous)
	Horovodrun        = OfSpec("framework bytescheduler.mode", (*job.Spec).Horovodrun)
	HostLaunched      = OfSpec("framework bytescheduler.mode", (*job.Spec).HostLaunched)
	ImageSSH          = OfSpec("ssh.server", (*job.Spec).ImageSSH)
	MPILine           = OfSpec("framework mpi.launch", (*job.Spec).MPILine)
	OverSSH           = OfSpec(overSSH, (*job.Spec).OverSSH)
	Mpirun            = OfSpec(overSSH+" mpi.implementation horovod.controller", (*job.Spec).Mpirun)
	Words             = OfSpec("command args", (*job.Spec).Words)
	ParameterServers  = OfSpec("framework mxnet.mode bytescheduler.mode", (*job.Spec).ParameterServers)
	BytePS            = OfSpec("framework bytescheduler.mode", (*job.Spec).BytePS)
	Launch            = OfSpec("framework launcher command args", (*job.Spec).Launch)
	LaunchedBy        = OfSpec("framework launcher bytescheduler.mode mpi.launch command args", (*job.Spec).LaunchedBy)
	TPU               = OfSpec("resources.gpu resources.gpuResource", (*job.Spec).TPU)
	Container         = OfSpec("framework target", (*job.Spec).Container)
	GroupNames        = OfSpec("groups", (*job.Spec).GroupNames)
	WorkersAwaited    = OfSpec("groups", (*job.Spec).WorkersAwaited)
	Components        = OfSpec("framework target mxnet.mode bytescheduler.mode groups", (*job.Spec).Components)
	MakesJobs         = OfSpec("framework target mxnet.mode bytescheduler.mode", (*job.Spec).MakesJobs)
	LeavesFailed      = OfSpec("framework target failure.restartsPerWorker", (*job.Spec).LeavesFailed)
	Ordered           = OfSpec("workers.after groups", (*job.Spec).Ordered)
	MakesPodGroup     = OfSpec("gang target", (*job.Spec).MakesPodGroup)
	NamesGang         = OfSpec("gang target", (*job.Spec).NamesGang)
	CountsTasks       = OfSpec("gang target workers.min groups", (*job.Spec).CountsTasks)
	GangIDs           = New("gang target framework mxnet.mode bytescheduler.mode metadata groups",
		func(j *job.Job) []string {
			if !j.Spec.Gang.Active() {
				return nil
			}
			return j.GangIDs()
		})
	Topology      = OfSpec("gang", (*job.Spec).Topology)
	Levels        = New("gang", func(j *job.Job) []job.Level { return j.Origin.Levels }) // of the Environment
	TopologyLevel = New("gang", func(j *job.Job) (l job.Level) {
		if j.Spec.Topology() != nil {
			l = j.TopologyLevel()
		}
		return l
	})
	TopologyLayer = New("gang", func(j *job.Job) string {
		if j.Spec.Topology() == nil {
			return ""
		}
		return j.TopologyLayer()
	})
	ExclusiveTopology = OfSpec("gang target", (*job.Spec).ExclusiveTopology)
	WorkersAndGroups  = OfSpec("groups", func(s *job.Spec) []string { // by name
		return append([]string{job.RoleWorker}, s.GroupNames()...)
	})
)
