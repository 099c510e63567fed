package rule

import (
	"fmt"
	"slices"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// byteScheduler holds settings that nothing would read.
func (r *Validation) byteScheduler() {
	if r.Spec.Framework != job.FrameworkByteScheduler {
		return
	}
	b := &r.Spec.ByteScheduler
	if b.Mode == job.ModeBytePS {
		r.bytePSTarget()
		return
	}
	if r.IsSet("spec.horovod.controller") {
		r.fail("spec.horovod.controller", "requires",
			"ByteScheduler patches Horovod 0.16, which has no other than MPI: leave it out")
	}
	if r.IsSet("spec.servers") {
		r.fail("spec.servers", "requires",
			"mode horovod trains without servers: leave them out, or set spec.bytescheduler.mode to byteps")
	}
	if r.IsSet("spec.bytescheduler.rootPort") && !b.PartitionTuning {
		r.fail("spec.bytescheduler.rootPort", "requires",
			"only the tuning of partitions needs it: set spec.bytescheduler.partitionTuning")
	}
	if b.PartitionTuning && r.Spec.OverSSH() && b.RootPort == r.Spec.SSH.Port {
		r.fail("spec.bytescheduler.rootPort", "duplicate",
			"%d is the port of ssh, on which worker 0 listens too: give each a port of its own", b.RootPort)
	}
}

// hostListFits holds the list of hosts, which Horovod 0.16 reads from no file, to what one argument has room for.
func (r *Validation) hostListFits() {
	if length, fit := r.HostList(); length > job.LongestArgument {
		r.fail("spec.workers", "range",
			"the names of %d hosts are %d bytes, and horovodrun takes them as one argument, which has %d at most: "+
				"that is %d workers with names of this length", r.Spec.Workers.Max, length, job.LongestArgument, fit)
	}
}

// bytePSTarget refuses targets that MXNet does not have, whose pods BytePS's are.
func (r *Validation) bytePSTarget() {
	if target.Of(job.FrameworkMXNet, r.Spec.Target) == nil {
		r.fail("spec.bytescheduler.mode", "target", "target %s has no roles of a scheduler and servers: target job has",
			r.Spec.Target)
	}
}

// bytePS holds a job of BytePS to what BytePS has.
func (r *Validation) bytePS() {
	s := &r.Spec
	if !s.BytePS() {
		return
	}
	for _, section := range []string{"ssh", "horovod"} {
		if r.IsSet("spec." + section) {
			r.fail("spec."+section, "requires", "belongs to mode horovod: leave this out")
		}
	}
	for _, field := range []string{
		"partition", "credit", "creditTuning", "partitionTuning", "rootPort", "timeline",
		"debug",
	} {
		if at := "spec.bytescheduler." + field; r.IsSet(at) {
			r.fail(at, "requires",
				"belongs to mode horovod: leave this out; what BytePS itself reads, spec.env can set")
		}
	}
	if g := s.Gang; g != nil && g.Scheduler == job.GangKueue {
		r.fail("spec.gang.scheduler", "requires", "%s: use another scheduler", target.MxnetJob["gang.scheduler=kueue"])
	}
	if r.IsSet("spec.workers.processes") {
		r.fail("spec.workers.processes", "requires", "bpslaunch starts a process for each accelerator: leave this out")
	}
	forced := slices.ContainsFunc(s.Env, func(e job.Env) bool { return e.Name == "BYTEPS_FORCE_DISTRIBUTED" })
	if s.Workers.Replicas == 1 && !forced { // bytedance/byteps, byteps/common/global.cc
		r.fail("spec.workers", "requires",
			"one worker of BytePS never calls its servers, which would wait for ever: at least 2, or "+
				"BYTEPS_FORCE_DISTRIBUTED in spec.env")
	}
}

// bytePSProgram refuses launchers of others, bash -c before them or not, and arguments that no server reads.
func (r *Validation) bytePSProgram() {
	s := &r.Spec
	if !s.BytePS() {
		return
	}
	for _, w := range s.Words() {
		if w.Arg < 1 && (job.HostLauncher().MatchString(w.Text) || job.LauncherWord().MatchString(w.Text)) {
			r.fail(w.Path, "requires",
				"%s starts no servers of BytePS: leave it and its options out, tegen starts bpslaunch", w.Text)
		}
	}
	if len(s.Servers.Args) > 0 && len(s.Servers.Command) == 0 && !s.Servers.Entrypoint {
		r.fail("spec.servers.args", "requires", "bpslaunch serves without any: leave them out, or give a command too")
	}
}

// bareEnv refuses the ways around the row of target mxjob-mlkube.
func (r *Validation) bareEnv() {
	if r.Spec.Target != job.TargetMXJobMlkube {
		return
	}
	if len(r.Spec.Env) > 0 && !r.IsSet("spec.env") {
		r.fail("spec.target", "target",
			"the environment gives workers variables, which target %s cannot carry: %s; targets %s, %s can",
			job.TargetMXJobMlkube, target.MlkubeEnv, job.TargetJob, job.TargetMXJob)
	}
	for at := range r.patchedEnv() {
		r.fail(at, "target", "target %s cannot carry this: %s; spec.envFrom can", job.TargetMXJobMlkube,
			target.MlkubeEnv)
	}
	if r.IsSet("spec.gang.priority") {
		r.fail("spec.gang.priority", "target", "target %s cannot carry this: %s", job.TargetMXJobMlkube,
			target.MlkubePods)
	}
}

var mxnetRules = []oldRule{
	{(*Validation).mxnet, "framework target mxnet servers workers"},
	{(*Validation).serverEntrypoint, "servers"},
	{(*Validation).lostPods, "framework target mxnet.mode bytescheduler.mode failure"},
	{(*Validation).nodeEnv, "framework target mxnet.mode bytescheduler.mode network.interface env podTemplate roles"},
}

// mxnet holds the mode against what is asked for: mode local is a worker alone, mode dist has servers too.
func (r *Validation) mxnet() {
	s := &r.Spec
	if s.Framework != job.FrameworkMXNet {
		return
	}
	if s.MXNet.Mode == job.MXNetLocal {
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
	if s.Target != job.TargetMXJobMlkube && s.Target != job.TargetMXJob { // whose row refuses both
		for _, field := range []string{"spec.mxnet.group", "spec.mxnet.runtimeID"} {
			if r.IsSet(field) {
				r.fail(field, "requires", "only target %s has one", job.TargetMXJobMlkube)
			}
		}
	}
	if r.IsSet("spec.workers.processes") {
		r.fail("spec.workers.processes", "requires",
			"MXNet trains on all accelerators of a worker in one process: leave this out")
	}
}

// serverEntrypoint refuses two programs for one container.
func (r *Validation) serverEntrypoint() {
	if s := &r.Spec.Servers; s.Entrypoint && len(s.Command) > 0 {
		r.fail("spec.servers.entrypoint", "one-of", "only one of command, entrypoint may be given")
	}
}

// lostPods refuses what would be done after the loss of a pod where nothing can be done: neither do nodes of ps-lite
// turn to a new scheduler, nor does a new server have the weights, and the scheduler never answers a node beyond those
// that it has counted (dmlc/ps-lite, src/van.cc).
func (r *Validation) lostPods() {
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
func (r *Validation) nodeEnv() {
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
	if r.Spec.Target == job.TargetMXJobMlkube {
		return // bareEnv refuses all of them
	}
	for at, name := range r.patchedEnv() {
		check(at+".name", name)
	}
}
