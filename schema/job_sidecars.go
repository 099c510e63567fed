package schema

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
