package schema

import (
	"fmt"
	"slices"
)

var jaxRules = []rule{
	{(*validation).jaxProcesses, "framework workers.processes"},
	{(*validation).jaxEnvironment, "framework env podTemplate roles"},
	{(*validation).jaxPort, "framework jax resources.gpu resources.gpuResource"},
}

// TPUResource is the resource of GKE's TPUs.
const TPUResource = "google.com/tpu"

// TPU says whether the workers' accelerators are TPUs. GKE tells their pods who they are: its webhook sets
// TPU_WORKER_ID and TPU_WORKER_HOSTNAMES, and for slices the MEGASCALE_ variables.
func (s *Spec) TPU() bool { return s.Resources.GPU > 0 && s.Resources.GPUResource == TPUResource }

// jaxProcesses refuses several processes in a worker: each needs a number of its own, and JAX has no launcher.
func (r *validation) jaxProcesses() {
	if p := r.Spec.Workers.Processes; r.Spec.Framework == FrameworkJAX && p.IntVal != 1 {
		r.fail("spec.workers.processes", "requires",
			"one process drives all accelerators of a worker, and JAX has no launcher that starts more: leave this "+
				"out, or have more workers with fewer accelerators each")
	}
}

// JAXVariables are what tells a process of JAX who it is.
var JAXVariables = []string{"JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"}

// jaxEnvironment refuses variables that tegen sets.
func (r *validation) jaxEnvironment() {
	if r.Spec.Framework != FrameworkJAX {
		return
	}
	check := func(at, name string) {
		if slices.Contains(JAXVariables, name) {
			r.fail(at, "reserved", "%s is set by tegen: see spec.jax and spec.workers", name)
		}
	}
	for i, e := range r.Spec.Env {
		check(fmt.Sprintf("spec.env[%d].name", i), e.Name)
	}
	for at, name := range r.patchedEnv() {
		check(at+".name", name)
	}
}

// The ports of libtpu in a pod with TPUs: of its metrics, of its processes, of the slices' coordinator and of JAX's own
// coordinator before and since 0.8.1 (jax-ml/jax, jax/_src/clusters/cloud_tpu_cluster.py).
var tpuPorts = []int32{8080, 8431, 8471, 8472, 8473, 8474, 8475, 8476, 8477, 8478, 8479}

// jaxPort refuses a port that something else in the pod listens on.
func (r *validation) jaxPort() {
	if p := r.Spec.JAX.Port; r.Spec.Framework == FrameworkJAX && r.Spec.TPU() && slices.Contains(tpuPorts, p) {
		r.fail("spec.jax.port", "duplicate", "%d is a port of the TPUs' own library in the same pod: choose another", p)
	}
}
