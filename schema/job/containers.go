package job

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/names"
)

// containers are the names that controllers look for, by framework and target.
var containers = map[[2]string]string{
	{FrameworkTorchelastic, TargetTrainJob}: "node",
	{FrameworkJAX, TargetTrainJob}:          "node",
	// pytorch/elastic, kubernetes/api/v1alpha1/constants.go
	{FrameworkTorchelastic, TargetElasticJob}: "elasticjob-worker",
	{FrameworkTorchelastic, TargetPyTorchJob}: "pytorch",
	{FrameworkDLRover, TargetElasticJob}:      "main", // which the master sets up where a pod has several
	{FrameworkMXNet, TargetMXJob}:             "mxnet",
	{FrameworkMXNet, TargetMXJobMlkube}:       "mxnet",
}

// Container is what the target calls the container of a worker.
func (s *Spec) Container() string { return s.ContainerOf(RoleWorker) }

// ContainerOf is what a role's own container is called in the end.
func (s *Spec) ContainerOf(role string) string {
	name, named := containers[[2]string{s.Framework, s.Target}]
	switch {
	case role == RoleCompanion:
		return "rendezvous"
	// whose operators know one name for all roles
	case named && (role == RoleWorker || s.Framework == FrameworkMXNet && Trains(role)):
		return name
	}
	return role
}

// The containers of the pods that prepare a job. In their escape hatch, which is one for all of them, each pod's own is
// called helper.
const (
	ContainerFetch    = "fetch"
	ContainerGenerate = "generate"
	ContainerStore    = "store"
)

// TakenNames are the names that the containers of a role's pods have already.
func (s *Spec) TakenNames(role string) []string {
	if role == RoleHelper {
		return []string{ContainerFetch, ContainerGenerate, ContainerStore}
	}
	return []string{s.ContainerOf(role)}
}

// Sidecar mirrors #Sidecar.
type Sidecar struct {
	Name       string           `json:"name"`
	Image      string           `json:"image"`
	Command    []string         `json:"command,omitempty"`
	Args       []string         `json:"args,omitempty"`
	WorkingDir string           `json:"workingDir,omitempty"`
	Env        []Env            `json:"env,omitempty"`
	EnvFrom    []EnvFrom        `json:"envFrom,omitempty"`
	Ports      map[string]int32 `json:"ports,omitempty"`
	Mounts     []Mount          `json:"mounts,omitempty"`
	Resources  Compute          `json:"resources"`
	Startup    *Probe           `json:"startup,omitempty"`
}

// Mount mirrors #Mount; ReadOnly is nil for what the workers have.
type Mount struct {
	Volume   string `json:"volume"`
	Path     string `json:"path,omitempty"`
	ReadOnly *bool  `json:"readOnly,omitempty"`
}

// VolumeTmp is the name of the scratch space at /tmp among the volumes that a sidecar may mount.
const VolumeTmp = "tmp"

// Probes mirrors #Probes.
type Probes struct {
	Startup   *Probe `json:"startup,omitempty"`
	Liveness  *Probe `json:"liveness,omitempty"`
	Readiness *Probe `json:"readiness,omitempty"`
}

// Probe mirrors #Probe: exactly one of Exec, HTTP and TCP is set. What is nil or 0 is Kubernetes' own.
type Probe struct {
	Exec     []string         `json:"exec,omitempty"`
	HTTP     *HTTPProbe       `json:"http,omitempty"`
	TCP      int32            `json:"tcp,omitempty"`
	Delay    *metav1.Duration `json:"delay,omitempty"`
	Period   *metav1.Duration `json:"period,omitempty"`
	Timeout  *metav1.Duration `json:"timeout,omitempty"`
	Failures int32            `json:"failures,omitempty"`
}

// HTTPProbe is a request to the pod.
type HTTPProbe struct {
	Port int32  `json:"port"`
	Path string `json:"path,omitempty"`
}

// OwnPorts are the ports on which a worker's own program listens, as far as the job says so, with the fields that set
// them.
func (s *Spec) OwnPorts() map[int32]string {
	all := map[int32]string{}
	numbers, fields := s.Listening()
	for i, number := range numbers {
		all[number] = fields[i]
	}
	if s.Framework == FrameworkTorchelastic && s.Rendezvous.Store == StoreWorker && !s.Workers.Master {
		all[cmp.Or(s.Rendezvous.Port, names.C10dPort)] = "spec.rendezvous.port"
	}
	return all
}
