package schema

import (
	"fmt"
	"slices"
)

var mxnetRules = []rule{
	{(*validation).mxnet, "framework target mxnet servers workers"},
	{(*validation).serverEntrypoint, "servers"},
	{(*validation).lostPods, "framework target mxnet.mode bytescheduler.mode failure"},
	{(*validation).nodeEnv, "framework target mxnet.mode bytescheduler.mode network.interface env podTemplate roles"},
}

// mxnet holds the mode against what is asked for: mode local is a worker alone, mode dist has servers too.
func (r *validation) mxnet() {
	s := &r.Spec
	if s.Framework != FrameworkMXNet {
		return
	}
	if s.MXNet.Mode == MXNetLocal {
		if s.Workers.Replicas > 1 {
			at := "spec.workers.replicas"
			if !r.IsSet(at) {
				at = "spec.workers.max"
			}
			r.fail(at, "requires", "mode local is one worker alone, not %d: set 1, or mxnet.mode: dist",
				s.Workers.Replicas)
		}
		if r.IsSet("spec.servers") {
			r.fail("spec.servers", "requires", "mode local has no servers: leave this out, or set mxnet.mode: dist")
		}
	}
	if s.Target != TargetMXJobMlkube && s.Target != TargetMXJob { // whose row refuses both
		for _, field := range []string{"spec.mxnet.group", "spec.mxnet.runtimeID"} {
			if r.IsSet(field) {
				r.fail(field, "requires", "only target %s has one", TargetMXJobMlkube)
			}
		}
	}
	if r.IsSet("spec.workers.processes") {
		r.fail("spec.workers.processes", "requires",
			"MXNet trains on all accelerators of a worker in one process: leave this out")
	}
}

// serverEntrypoint refuses two programs for one container.
func (r *validation) serverEntrypoint() {
	if s := &r.Spec.Servers; s.Entrypoint && len(s.Command) > 0 {
		r.fail("spec.servers.entrypoint", "one-of", "only one of command, entrypoint may be given")
	}
}

// mxnetNames is where a job of framework mxnet says what not each of its targets has.
func mxnetNames(j *Written) (paths []string) {
	if j.Spec.Framework != FrameworkMXNet {
		return when(j.IsSet("spec.mxnet"), "mxnet")
	}
	return slices.Concat(
		when(j.Spec.MXNet.Mode == MXNetLocal, "mxnet.mode"),
		when(j.IsSet("spec.mxnet.group"), "mxnet.group"),
		when(j.IsSet("spec.mxnet.runtimeID"), "mxnet.runtimeID"))
}

// lostPods refuses what would be done after the loss of a pod where nothing can be done: neither do nodes of ps-lite
// turn to a new scheduler, nor does a new server have the weights, and the scheduler never answers a node beyond those
// that it has counted (dmlc/ps-lite, src/van.cc).
func (r *validation) lostPods() {
	t := r.Row
	if !r.Spec.ParameterServers() || t == nil {
		return
	}
	for _, field := range []string{
		"failure.restarts", "failure.restartsPerWorker", "failure.fatalExitCodes",
		"failure.ignoreDisruptions", "failure.inPlace",
	} {
		if at := "spec." + field; t.Carries(field) && r.IsSet(at) {
			r.fail(at, "requires",
				"ps-lite cannot re-admit a lost pod, so that the first failure ends the job: leave this out")
		}
	}
}

// dmlcEnv are the variables that make a process a node of ps-lite.
var dmlcEnv = []string{
	"DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER", "DMLC_WORKER_ID",
	"DMLC_USE_KUBERNETES", "MX_CONFIG",
}

// nodeEnv refuses variables that tegen or an operator sets.
func (r *validation) nodeEnv() {
	if !r.Spec.ParameterServers() {
		return
	}
	check := func(at, name string) {
		switch {
		case slices.Contains(dmlcEnv, name):
			r.fail(at, "reserved", "%s is set for each role: see spec.servers and spec.workers", name)
		case name == "DMLC_INTERFACE" && r.Spec.Network.Interface != "":
			r.fail(at, "reserved", "DMLC_INTERFACE is set by spec.network.interface")
		}
	}
	for i, e := range r.Spec.Env {
		check(fmt.Sprintf("spec.env[%d].name", i), e.Name)
	}
	if r.Spec.Target == TargetMXJobMlkube {
		return // bareEnv refuses all of them
	}
	for at, name := range r.patchedEnv() {
		check(at+".name", name)
	}
}
