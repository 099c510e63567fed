package schema

import (
	"fmt"
	"slices"
)

// mxnet holds the mode against what is asked for: mode local is a worker alone, mode dist has servers too.
func (r *validation) mxnet() {
	s := &r.Spec
	if s.Framework != FrameworkMXNet {
		return
	}
	if s.MXNet.Mode == MXNetLocal {
		if s.Workers.Replicas > 1 {
			at := "spec.workers.replicas"
			if !r.isSet(at) {
				at = "spec.workers.max"
			}
			r.fail(at, "requires", "mode local is one worker alone, not %d: set 1, or mxnet.mode: dist", s.Workers.Replicas)
		}
		if r.isSet("spec.servers") {
			r.fail("spec.servers", "requires", "mode local has no servers: leave this out, or set mxnet.mode: dist")
		}
	}
	if s.Target != TargetMXJobMlkube && s.Target != TargetMXJob { // whose row refuses both
		for _, field := range []string{"spec.mxnet.group", "spec.mxnet.runtimeID"} {
			if r.isSet(field) {
				r.fail(field, "requires", "only target %s has one", TargetMXJobMlkube)
			}
		}
	}
	if r.isSet("spec.workers.processes") {
		r.fail("spec.workers.processes", "requires", "MXNet trains on all accelerators of a worker in one process: leave this out")
	}
}

// mxnetNames is where a job of framework mxnet says what not each of its targets has.
func mxnetNames(r *validation) (paths []string) {
	if r.Spec.Framework != FrameworkMXNet {
		return when(r.isSet("spec.mxnet"), "mxnet")
	}
	return slices.Concat(
		when(r.Spec.MXNet.Mode == MXNetLocal, "mxnet.mode"),
		when(r.isSet("spec.mxnet.group"), "mxnet.group"),
		when(r.isSet("spec.mxnet.runtimeID"), "mxnet.runtimeID"))
}

// lostPods refuses what would be done after the loss of a pod where nothing can be done: neither do nodes of ps-lite
// turn to a new scheduler, nor does a new server have the weights, and the scheduler never answers a node beyond those
// that it has counted (dmlc/ps-lite, src/van.cc).
func (r *validation) lostPods() {
	t := r.row
	if !r.Spec.ParameterServers() || t == nil {
		return
	}
	for _, field := range []string{"failure.restarts", "failure.restartsPerWorker", "failure.fatalExitCodes", "failure.ignoreDisruptions"} {
		if at := "spec." + field; t.Carries(field) && r.isSet(at) {
			r.fail(at, "requires", "ps-lite cannot re-admit a lost pod, so that the first failure ends the job: leave this out")
		}
	}
}

// bytePS holds a job of BytePS to what BytePS has.
func (r *validation) bytePS() {
	s := &r.Spec
	if !s.BytePS() {
		return
	}
	for _, section := range []string{"ssh", "horovod"} {
		if r.isSet("spec." + section) {
			r.fail("spec."+section, "requires", "belongs to mode horovod: leave this out")
		}
	}
	for _, field := range []string{"partition", "credit", "creditTuning", "partitionTuning", "rootPort", "timeline", "debug"} {
		if at := "spec.bytescheduler." + field; r.isSet(at) {
			r.fail(at, "requires", "belongs to mode horovod: leave this out; what BytePS itself reads, spec.env can set")
		}
	}
	if g := s.Gang; g != nil && g.Scheduler == GangKueue {
		r.fail("spec.gang.scheduler", "requires", "%s: use another scheduler", mxnetJob["gang.scheduler=kueue"])
	}
	if r.isSet("spec.workers.processes") {
		r.fail("spec.workers.processes", "requires", "bpslaunch starts a process for each accelerator: leave this out")
	}
	forced := slices.ContainsFunc(s.Env, func(e Env) bool { return e.Name == "BYTEPS_FORCE_DISTRIBUTED" })
	if s.Workers.Replicas == 1 && !forced { // bytedance/byteps, byteps/common/global.cc
		r.fail("spec.workers", "requires", "one worker of BytePS never calls its servers, which would wait for ever: at least 2, or BYTEPS_FORCE_DISTRIBUTED in spec.env")
	}
}

// bytePSProgram refuses launchers of others, bash -c before them or not, and arguments that no server reads.
func (r *validation) bytePSProgram() {
	s := &r.Spec
	if !s.BytePS() {
		return
	}
	for _, w := range s.words() {
		if w.arg < 1 && (hostLauncher.MatchString(w.text) || launcherWord.MatchString(w.text)) {
			r.fail(w.path, "requires", "%s knows nothing of BytePS's servers: leave it and its options out, tegen starts bpslaunch", w.text)
		}
	}
	if len(s.Servers.Args) > 0 && len(s.Servers.Command) == 0 {
		r.fail("spec.servers.args", "requires", "bpslaunch serves without any: leave them out, or give a command too")
	}
}

// dmlcEnv are the variables that make a process a node of ps-lite.
var dmlcEnv = []string{
	"DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER", "DMLC_WORKER_ID", "DMLC_USE_KUBERNETES", "MX_CONFIG",
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

// bareEnv refuses the ways around the row of target mxjob-mlkube.
func (r *validation) bareEnv() {
	if r.Spec.Target != TargetMXJobMlkube {
		return
	}
	if len(r.Spec.Env) > 0 && !r.isSet("spec.env") {
		r.fail("spec.target", "target", "the environment gives workers variables, which target %s cannot carry: %s; targets %s, %s can", TargetMXJobMlkube, mlkubeEnv, TargetJob, TargetMXJob)
	}
	for at := range r.patchedEnv() {
		r.fail(at, "target", "target %s cannot carry this: %s; envFrom can", TargetMXJobMlkube, mlkubeEnv)
	}
	if r.isSet("spec.gang.priority") {
		r.fail("spec.gang.priority", "target", "target %s cannot carry this: %s", TargetMXJobMlkube, mlkubePods)
	}
}
