package job

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TutorialEnv is what the images of the torchelastic tutorial read.
var TutorialEnv = map[string]bool{
	"RDZV_ENDPOINT": true, "JOB_ID": true, "MIN_SIZE": true, "MAX_SIZE": true,
	"ETCD_PROTOCOL": true, "ETCD_CACERT": true, "ETCD_CERT": true, "ETCD_KEY": true,
}

// MasterVariables are what the operator of a Master sets behind a pod's own variables, of which the later counts
// (kubeflow/trainer v1.9.4, pkg/controller.v1/pytorch/envvar.go).
var MasterVariables = []string{"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"}

// Short prints a duration as people write it: 30m, not 30m0s.
func Short(d metav1.Duration) string {
	text := d.Duration.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// TPUResource is the resource of GKE's TPUs.
const TPUResource = "google.com/tpu"

// TPU says whether the workers' accelerators are TPUs. GKE tells their pods who they are: its webhook sets
// TPU_WORKER_ID and TPU_WORKER_HOSTNAMES, and for slices the MEGASCALE_ variables.
func (s *Spec) TPU() bool { return s.Resources.GPU > 0 && s.Resources.GPUResource == TPUResource }

// JAXVariables are what tells a process of JAX who it is.
var JAXVariables = []string{"JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"}

// Sliced says whether the workers are several slices.
func (s *Spec) Sliced() bool { return s.Workers.Slices > 1 }

// RanksBySlice says whether a shell reckons the number of a process from those of its slice and of its pod. JAX does it
// itself where the accelerators are TPUs, and torchrun gives out ranks of its own.
func (s *Spec) RanksBySlice() bool { return s.Sliced() && s.Framework == FrameworkJAX && !s.TPU() }

// SliceVariables are what tells a worker which slice it is of; JAX reads the last one.
var SliceVariables = []string{"SLICE_ID", "NUM_SLICES", "JAX_PARTITION_INDEX"}

// SliceTopology gives each slice of the workers a domain of its own, where the gang's scheduler can place slices and
// nobody says otherwise. JobSet's own way has a domain for each Job anyway.
func (s *Spec) SliceTopology() {
	t := s.Topology()
	if t != nil && s.Sliced() && t.Slice == 0 && t.Required() && s.Gang.Is(GangKueue, GangKoordinator, GangTegen) &&
		s.Workers.Replicas%s.Workers.Slices == 0 {
		t.Slice = s.Workers.SliceSize()
	}
}
