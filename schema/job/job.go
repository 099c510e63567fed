// Package job is a TrainingJob as generators read it, and questions about one. It imports no other package of schema.
package job

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/structural"
)

// The values of job.cue's enumerations that Go code branches on.
const (
	FrameworkTorchelastic  = "torchelastic"
	FrameworkDLRover       = "dlrover"
	FrameworkMXNet         = "mxnet"
	FrameworkHorovod       = "horovod"
	FrameworkByteScheduler = "bytescheduler"
	FrameworkJAX           = "jax"
	FrameworkMPI           = "mpi"

	TargetJob         = "job"
	TargetPods        = "pods"
	TargetJobSet      = "jobset"
	TargetElasticJob  = "elasticjob"
	TargetPyTorchJob  = "pytorchjob"
	TargetTrainJob    = "trainjob"
	TargetVCJob       = "vcjob"
	TargetMXJob       = "mxjob"
	TargetMXJobMlkube = "mxjob-mlkube"
	TargetMPIJob      = "mpijob"

	LauncherTorchrun   = "torchrun"
	LauncherEntrypoint = "entrypoint"
	LauncherNone       = "none"

	BackendC10d   = "c10d"
	BackendEtcd   = "etcd"
	BackendEtcdV2 = "etcd-v2"

	StoreWorker    = "worker"
	StoreCompanion = "companion"
	StoreEtcd      = "etcd"
	StoreExternal  = "external"

	MXNetDist  = "dist"
	MXNetLocal = "local"

	ModeHorovod = "horovod"
	ModeBytePS  = "byteps"

	MPIOpen  = "openmpi"
	MPIIntel = "intel"
	MPICH    = "mpich"

	SSHImage = "image"

	LauncherTogether = "together"

	LaunchMpirun  = "mpirun"
	LaunchCommand = "command"

	FetchInitContainer = "initContainer"
	FetchEntrypoint    = "entrypoint"

	OnDeleteRetain = "retain"
	OnDeleteDelete = "delete"
)

// Job is one TrainingJob as generators read it: checked, merged with its environment, every default filled in. Pointers
// are nil where an author said nothing and no default exists. The fields mirror job.cue one to one, where each has
// its sentence of documentation; TestDrift holds the two together.
type Job struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`

	Origin Origin `json:"-"`
}

// ImageOfRelease says whether an image is the one of this release, for want of a name: another renders another.
func (j *Job) ImageOfRelease() bool { return j.Origin.Released }

// Source is the name of what the job was loaded from.
func (j *Job) Source() string { return j.Origin.At.File }

// Relocate lets the job stand somewhere else for whoever reads of it: what was loaded was made of another file. It is
// asked where it stands when somebody wants to know.
func (j *Job) Relocate(place func() string) { j.Origin.Place = place }

// Position is where the job starts, as file:line:col.
func (j *Job) Position() string { return Placed(j.Origin.At, j.Origin.Place) }

// Placed is file:line:col, or what is given instead.
func Placed(at structural.Position, instead func() string) string {
	if instead != nil {
		return instead()
	}
	return fmt.Sprintf("%s:%d:%d", at.File, at.Line, at.Col)
}

// Metadata names a job and what its objects carry.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Spec mirrors #Spec.
type Spec struct {
	Framework         string          `json:"framework"`
	Target            string          `json:"target"`
	KubernetesVersion string          `json:"kubernetesVersion,omitempty"`
	Launcher          string          `json:"launcher"`
	Image             string          `json:"image"`
	ImagePullPolicy   string          `json:"imagePullPolicy"`
	ImagePullSecrets  []string        `json:"imagePullSecrets,omitempty"`
	Command           []string        `json:"command,omitempty"`
	Args              []string        `json:"args,omitempty"`
	WorkingDir        string          `json:"workingDir,omitempty"`
	Env               []Env           `json:"env,omitempty"`
	EnvFrom           []EnvFrom       `json:"envFrom,omitempty"`
	Sidecars          []Sidecar       `json:"sidecars,omitempty"`
	Probes            *Probes         `json:"probes,omitempty"`
	Metrics           *Metrics        `json:"metrics,omitempty"`
	Script            *Script         `json:"script,omitempty"`
	Code              *Code           `json:"code,omitempty"`
	Workers           Workers         `json:"workers"`
	Resources         Resources       `json:"resources"`
	Rendezvous        Rendezvous      `json:"rendezvous"`
	Servers           Servers         `json:"servers"`
	SSH               SSH             `json:"ssh"`
	MXNet             MXNet           `json:"mxnet"`
	Horovod           Horovod         `json:"horovod"`
	ByteScheduler     ByteScheduler   `json:"bytescheduler"`
	DLRover           DLRover         `json:"dlrover"`
	JAX               JAX             `json:"jax"`
	MPI               MPI             `json:"mpi"`
	Volcano           Volcano         `json:"volcano"`
	Gang              *Gang           `json:"gang,omitempty"`
	Suspend           bool            `json:"suspend"`
	ManagedBy         string          `json:"managedBy,omitempty"`
	Storage           []Storage       `json:"storage,omitempty"`
	Checkpoint        *Checkpoint     `json:"checkpoint,omitempty"`
	Identity          *Identity       `json:"identity,omitempty"`
	Placement         Placement       `json:"placement"`
	Network           Network         `json:"network"`
	Security          Security        `json:"security"`
	Failure           Failure         `json:"failure"`
	Success           *Success        `json:"success,omitempty"`
	Coordinator       *Coordinator    `json:"coordinator,omitempty"`
	Disruption        Disruption      `json:"disruption"`
	GracePeriod       metav1.Duration `json:"gracePeriod"`
	TTLAfterFinished  Lifetime        `json:"ttlAfterFinished"`
	CleanPods         string          `json:"cleanPods"`
	GitOps            bool            `json:"gitops"`
	HashedNames       bool            `json:"hashedNames"`
	CreateNamespace   bool            `json:"createNamespace"`
	Images            Images          `json:"images"`
	Roles             Roles           `json:"roles"`
	Groups            []Group         `json:"groups,omitempty"`
	Workload          Workload        `json:"workload"`
	// a partial PodTemplateSpec that podpatch.Validate accepted
	PodTemplate json.RawMessage `json:"podTemplate,omitempty"`
}

// Workload is what the objects that make the workers carry beside Metadata.
type Workload struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Torchrun says whether tegen puts torchrun before the command.
func (s *Spec) Torchrun() bool {
	return s.Framework == FrameworkTorchelastic && s.Launcher == LauncherTorchrun
}

// Unlaunched says whether the workers' program starts as it stands, and is told of no rendezvous.
func (s *Spec) Unlaunched() bool {
	return s.Framework == FrameworkTorchelastic && s.Launcher == LauncherNone
}

// WithoutRendezvous says whether tegen renders none for the workers: a Master is one, or their program wants none.
func (s *Spec) WithoutRendezvous() bool { return s.Workers.Master || s.Unlaunched() }

// ParameterServers says whether workers train with the servers and the scheduler of ps-lite.
func (s *Spec) ParameterServers() bool {
	return s.Framework == FrameworkMXNet && s.MXNet.Mode == MXNetDist || s.BytePS()
}

// BytePS says whether the parameter servers are BytePS's.
func (s *Spec) BytePS() bool {
	return s.Framework == FrameworkByteScheduler && s.ByteScheduler.Mode == ModeBytePS
}

// Images mirrors #Spec.images.
type Images struct {
	Etcd    string `json:"etcd"`
	EtcdV2  string `json:"etcdV2"`
	Fetch   string `json:"fetch"`
	AWS     string `json:"aws"`
	Git     string `json:"git"`
	Kubectl string `json:"kubectl"`

	Rendezvous string `json:"rendezvous,omitempty"`
}

// Workers mirrors #Workers.
type Workers struct {
	Replicas  int32              `json:"replicas"`
	Min       int32              `json:"min"`
	Max       int32              `json:"max"`
	Processes intstr.IntOrString `json:"processes"`

	Autoscale  *Autoscale `json:"autoscale,omitempty"`
	FirstIndex int32      `json:"firstIndex"`
	After      []After    `json:"after,omitempty"`
	Master     bool       `json:"master"`
	Slices     int32      `json:"slices"`
}

// Autoscale mirrors #Workers.autoscale.
type Autoscale struct {
	CPU int32 `json:"cpu"` // percent of the request
}

// SliceSize is the number of workers in each slice.
func (w *Workers) SliceSize() int32 { return w.Replicas / max(w.Slices, 1) }

// Resources mirrors #Resources: what each worker asks for.
type Resources struct {
	Compute
	Machine     string `json:"machine,omitempty"`
	GPU         int64  `json:"gpu"`
	GPUResource string `json:"gpuResource"`
	Shm         Amount `json:"shm"`

	DeviceClass     string   `json:"deviceClass,omitempty"`
	DeviceSelectors []string `json:"deviceSelectors,omitempty"`
	Claims          []string `json:"claims,omitempty"`

	Devices map[string]resource.Quantity `json:"devices,omitempty"`

	Tmp Amount `json:"tmp,omitzero"` // as ephemeralStorage where nobody says anything
}

// Rendezvous mirrors #Rendezvous.
type Rendezvous struct {
	Backend     string            `json:"backend"`
	Store       string            `json:"store"`
	Endpoint    string            `json:"endpoint,omitempty"`
	Port        int32             `json:"port,omitempty"`
	ID          string            `json:"id,omitempty"`
	LastCall    metav1.Duration   `json:"lastCall"`
	JoinTimeout metav1.Duration   `json:"joinTimeout"`
	MaxRestarts int32             `json:"maxRestarts"`
	Conf        map[string]string `json:"conf,omitempty"`
	Etcd        Etcd              `json:"etcd"`
	Companion   Companion         `json:"companion,omitzero"`

	Proxy bool `json:"proxy,omitempty"`

	KeepAlive         metav1.Duration `json:"keepAlive,omitzero"`
	KeepAliveAttempts int32           `json:"keepAliveAttempts,omitzero"`
}

// SpeaksV2 says whether a backend needs etcd's v2 API, which ended with etcd 3.5.
func SpeaksV2(backend string) bool {
	return backend == BackendEtcd || backend == BackendEtcdV2
}

// KeepsAliveByDefault says whether agents keep to the interval that all versions of torch have.
func (r *Rendezvous) KeepsAliveByDefault() bool {
	return r.KeepAlive.Duration == 5*time.Second && r.KeepAliveAttempts == 3
}

// KeepsAlive says whether a backend is of torch's second generation, of which c10d and etcd-v2 are one class.
func KeepsAlive(backend string) bool {
	return backend == BackendC10d || backend == BackendEtcdV2
}

// Proxied says whether torchrun reaches its store by a proxy beside it.
func (s *Spec) Proxied() bool {
	return s.Framework == FrameworkTorchelastic && s.Rendezvous.Proxy && s.Rendezvous.Backend == BackendC10d
}

// Companion mirrors #Companion.
type Companion struct {
	Name     string         `json:"name,omitempty"`
	Replicas int32          `json:"replicas,omitempty"`
	Storage  *EtcdStorage   `json:"storage,omitempty"`
	Etcd     *CompanionEtcd `json:"etcd,omitempty"`
}

// CompanionEtcd is an etcd that exists. Of its Secrets the content is never read.
type CompanionEtcd struct {
	Endpoints []string           `json:"endpoints"`
	TLS       *CompanionTLS      `json:"tls,omitempty"`
	User      string             `json:"user,omitempty"`
	Password  *CompanionPassword `json:"password,omitempty"`
}

// CompanionTLS names a Secret.
type CompanionTLS struct {
	Secret string `json:"secret"`
}

// CompanionPassword is a key of a Secret.
type CompanionPassword struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Etcd mirrors #Etcd.
type Etcd struct {
	Name       string            `json:"name,omitempty"`
	Replicas   int32             `json:"replicas"`
	Quota      resource.Quantity `json:"quota"`
	Compaction metav1.Duration   `json:"compaction"`
	Storage    *EtcdStorage      `json:"storage,omitempty"`
	TLS        *EtcdTLS          `json:"tls,omitempty"`
}

// EtcdStorage is a volume for each member.
type EtcdStorage struct {
	Size         resource.Quantity `json:"size"`
	StorageClass string            `json:"storageClass,omitempty"`
}

// EtcdTLS names Secrets; their content is never read.
type EtcdTLS struct {
	Secret       string `json:"secret"`
	ClientSecret string `json:"clientSecret,omitempty"`
}

// Servers mirrors #Servers.
type Servers struct {
	Replicas   int32    `json:"replicas"`
	Command    []string `json:"command,omitempty"`
	Entrypoint bool     `json:"entrypoint,omitempty"`
	Args       []string `json:"args,omitempty"`
	Port       int32    `json:"port"`
}

// SSH mirrors #SSH.
type SSH struct {
	Server   string   `json:"server"`
	KeysPath string   `json:"keysPath,omitempty"`
	Command  []string `json:"command,omitempty"`
	Args     []string `json:"args,omitempty"`
	Restart  string   `json:"restart,omitempty"`
	Port     int32    `json:"port"`
	Secret   string   `json:"secret,omitempty"`
}

// MXNet mirrors #MXNet.
type MXNet struct {
	Mode      string `json:"mode"`
	Group     string `json:"group"`
	RuntimeID string `json:"runtimeID,omitempty"`
}

// Horovod mirrors #Horovod.
type Horovod struct {
	Controller     string          `json:"controller"`
	StartTimeout   metav1.Duration `json:"startTimeout"`
	ElasticTimeout metav1.Duration `json:"elasticTimeout"`
	ResetLimit     int32           `json:"resetLimit"`
}

// ByteScheduler mirrors #ByteScheduler; 0 leaves a number to ByteScheduler itself.
type ByteScheduler struct {
	Mode            string `json:"mode"`
	Partition       int64  `json:"partition,omitempty"`
	Credit          int64  `json:"credit,omitempty"`
	CreditTuning    bool   `json:"creditTuning"`
	PartitionTuning bool   `json:"partitionTuning"`
	RootPort        int32  `json:"rootPort"`
	Timeline        string `json:"timeline,omitempty"`
	Debug           bool   `json:"debug"`
}

// MPI mirrors #MPI.
type MPI struct {
	Implementation string          `json:"implementation"`
	Launch         string          `json:"launch"`
	Options        []string        `json:"options,omitempty"`
	Prefix         string          `json:"prefix,omitempty"`
	StartTimeout   metav1.Duration `json:"startTimeout"`

	LauncherStart   string `json:"launcherStart,omitempty"`
	LauncherRestart string `json:"launcherRestart,omitempty"`
	LauncherWorks   bool   `json:"launcherWorks,omitempty"`
}

// DLRover mirrors #DLRover.
type DLRover struct {
	Strategy         string           `json:"strategy"`
	OptimizeMode     string           `json:"optimizeMode"`
	Brain            string           `json:"brain,omitempty"`
	NetworkCheck     bool             `json:"networkCheck"`
	ExcludeStraggler bool             `json:"excludeStraggler"`
	NodeUnit         int32            `json:"nodeUnit,omitempty"`
	PendingTimeout   *metav1.Duration `json:"pendingTimeout,omitempty"`
}

// JAX mirrors #JAX.
type JAX struct {
	Port int32 `json:"port"`
}

// Gang mirrors #Gang.
type Gang struct {
	Scheduler    string          `json:"scheduler"`
	Name         string          `json:"name,omitempty"`
	MinAvailable int32           `json:"minAvailable"`
	Mode         string          `json:"mode"`
	Groups       []string        `json:"groups,omitempty"`
	WaitTimeout  metav1.Duration `json:"waitTimeout"`
	MatchPolicy  string          `json:"matchPolicy"`
	Queue        string          `json:"queue,omitempty"`
	Priority     string          `json:"priority,omitempty"`
	Topology     *Topology       `json:"topology,omitempty"`
}

// Checkpoint is where the script saves its state.
type Checkpoint struct {
	Path string          `json:"path"`
	Save *CheckpointSave `json:"save,omitempty"`
}

// CheckpointSave is the signal on which the script writes a checkpoint, and how long that takes.
type CheckpointSave struct {
	Signal string          `json:"signal"`
	Takes  metav1.Duration `json:"takes"`
}

// Script mirrors #Script.
type Script struct {
	Image     string           `json:"image,omitempty"`
	S3        string           `json:"s3,omitempty"`
	Fetch     string           `json:"fetch"`
	ConfigMap *ScriptConfigMap `json:"configMap,omitempty"`
}

// ScriptConfigMap is a key of a ConfigMap.
type ScriptConfigMap struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Env mirrors #Env: exactly one of the value and the references is set.
type Env struct {
	Name      string  `json:"name"`
	Value     *string `json:"value,omitempty"`
	Secret    *KeyRef `json:"secret,omitempty"`
	ConfigMap *KeyRef `json:"configMap,omitempty"`
	Field     string  `json:"field,omitempty"`
	Resource  string  `json:"resource,omitempty"`
}

// EnvFrom mirrors #EnvFrom: exactly one of Secret and ConfigMap is set.
type EnvFrom struct {
	Secret    string `json:"secret,omitempty"`
	ConfigMap string `json:"configMap,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	Optional  bool   `json:"optional,omitempty"`
}

// KeyRef is a key of a Secret or ConfigMap that exists.
type KeyRef struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Optional bool   `json:"optional,omitempty"`
}

// Identity mirrors #Identity: exactly one field is set.
type Identity struct {
	IRSA           *IRSA        `json:"irsa,omitempty"`
	PodIdentity    *PodIdentity `json:"podIdentity,omitempty"`
	NodeRole       *struct{}    `json:"nodeRole,omitempty"`
	ServiceAccount string       `json:"serviceAccount,omitempty"`
}

// IRSA is an IAM role for a ServiceAccount.
type IRSA struct {
	Role           string `json:"role"`
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// PodIdentity is an EKS Pod Identity.
type PodIdentity struct {
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// Placement mirrors #Placement.
type Placement struct {
	Scheduler        string            `json:"scheduler,omitempty"`
	PriorityClass    string            `json:"priorityClass,omitempty"`
	PreemptionPolicy string            `json:"preemptionPolicy,omitempty"`
	RuntimeClass     string            `json:"runtimeClass,omitempty"`
	Spot             bool              `json:"spot,omitempty"`
	Provisioner      string            `json:"provisioner,omitempty"`
	NodeSelector     map[string]string `json:"nodeSelector,omitempty"`
	Tolerations      []Toleration      `json:"tolerations,omitempty"`
}

// Toleration mirrors #Toleration; Seconds is nil for ever.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
	Seconds  *int64 `json:"seconds,omitempty"`
}

// Network mirrors #Network.
type Network struct {
	Host          bool   `json:"host"`
	Policy        bool   `json:"policy"`
	AllowFrom     []Peer `json:"allowFrom,omitempty"`
	Egress        string `json:"egress"`
	AllowTo       []Peer `json:"allowTo,omitempty"`
	ClusterDomain string `json:"clusterDomain"`
	Interface     string `json:"interface,omitempty"`
	Fabric        string `json:"fabric,omitempty"` // none where there is none, when rules read it
	Collective    string `json:"collective,omitempty"`
}

// Security mirrors #Security.
type Security struct {
	RunAsUser              ID   `json:"runAsUser"`
	RunAsGroup             ID   `json:"runAsGroup"`
	FSGroup                ID   `json:"fsGroup"`
	ReadOnlyRootFilesystem bool `json:"readOnlyRootFilesystem"`
	Restricted             bool `json:"restricted"`
}

// Failure mirrors #Failure.
type Failure struct {
	Restarts          Restarts         `json:"restarts"`
	RestartsPerWorker *int32           `json:"restartsPerWorker,omitempty"`
	RestartAll        *RestartAll      `json:"restartAll,omitempty"`
	FatalExitCodes    []int32          `json:"fatalExitCodes,omitempty"`
	IgnoreDisruptions bool             `json:"ignoreDisruptions"`
	InPlace           bool             `json:"inPlace"`
	Deadline          *metav1.Duration `json:"deadline,omitempty"`
	Rules             []FailureRule    `json:"rules,omitempty"`
	RestartAllInPlace bool             `json:"restartAllInPlace,omitempty"`
	RestartAllOn      string           `json:"restartAllOn,omitempty"`
}

// Disruption mirrors #Disruption.
type Disruption struct {
	Budget      bool `json:"budget"`
	SafeToEvict bool `json:"safeToEvict"`
}
