package schema

// This file has all that only ByteScheduler and BytePS ask of the schema, off the common path.

import (
	"fmt"
	"slices"
	"strconv"
)

// bytePSJob is the target of BytePS: the pods of MXNet's parameter servers, of another framework's job.
var bytePSJob = Target{
	FrameworkByteScheduler, TargetJob, "batch/v1 Jobs, one a role",
	union(others(FrameworkByteScheduler), ofJobs, countedWorkers, lacks{
		"roles.launcher":  "every pod of BytePS starts its own processes",
		"checkpoint.save": "bpslaunch starts the processes through shells, which hand no signal on",
	}),
}

// byteSchedulerLacks is what ByteScheduler's Horovod cannot do.
var byteSchedulerLacks = lacks{
	"workers.min": "ByteScheduler patches Horovod 0.16, and elastic came with 0.20",
}

// byteScheduler holds settings that nothing would read.
func (r *validation) byteScheduler() {
	if r.Spec.Framework != FrameworkByteScheduler {
		return
	}
	b := &r.Spec.ByteScheduler
	if b.Mode == ModeBytePS {
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

// longestArgument is what Linux takes as one argument, without the byte that ends it (MAX_ARG_STRLEN in execve(2)).
const longestArgument = 128<<10 - 1

// hostListFits holds the list of hosts, which Horovod 0.16 reads from no file, to what one argument has room for.
func (r *validation) hostListFits() {
	if length, fit := r.hostList(); length > longestArgument {
		r.fail("spec.workers", "range",
			"the names of %d hosts are %d bytes, and horovodrun takes them as one argument, which has %d at most: "+
				"that is %d workers with names of this length", r.Spec.Workers.Max, length, longestArgument, fit)
	}
}

// hostList is the length of that list, 0 where there is none, and how many workers fit into one argument.
func (j *Job) hostList() (length int, fit int32) {
	s, m := &j.Spec, &j.Metadata
	if s.Framework != FrameworkByteScheduler || !s.OverSSH() {
		return 0, 0
	}
	rest := len(m.Name) + len("-worker-") // of each host, but for its number
	switch {
	case s.Target == TargetMPIJob:
		rest += len("." + m.Name + "." + m.Namespace + ".svc")
	case s.HashedNames:
		rest += len("-01234567")
		fallthrough
	default:
		rest += len("." + m.Name + "-worker." + m.Namespace + ".svc." + s.Network.ClusterDomain)
	}
	rest += len(fmt.Sprintf(":%d,", s.Slots()))
	length = -1 // no comma behind the last
	for i := range s.Workers.Max {
		if length += rest + len(strconv.Itoa(int(i))); length <= longestArgument {
			fit++
		}
	}
	return length, fit
}

// bytePSTarget refuses targets that MXNet does not have, whose pods BytePS's are.
func (r *validation) bytePSTarget() {
	if TargetOf(FrameworkMXNet, r.Spec.Target) == nil {
		r.fail("spec.bytescheduler.mode", "target", "target %s has no roles of a scheduler and servers: target job has",
			r.Spec.Target)
	}
}

// bytePS holds a job of BytePS to what BytePS has.
func (r *validation) bytePS() {
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
	if g := s.Gang; g != nil && g.Scheduler == GangKueue {
		r.fail("spec.gang.scheduler", "requires", "%s: use another scheduler", mxnetJob["gang.scheduler=kueue"])
	}
	if r.IsSet("spec.workers.processes") {
		r.fail("spec.workers.processes", "requires", "bpslaunch starts a process for each accelerator: leave this out")
	}
	forced := slices.ContainsFunc(s.Env, func(e Env) bool { return e.Name == "BYTEPS_FORCE_DISTRIBUTED" })
	if s.Workers.Replicas == 1 && !forced { // bytedance/byteps, byteps/common/global.cc
		r.fail("spec.workers", "requires",
			"one worker of BytePS never calls its servers, which would wait for ever: at least 2, or "+
				"BYTEPS_FORCE_DISTRIBUTED in spec.env")
	}
}

// bytePSProgram refuses launchers of others, bash -c before them or not, and arguments that no server reads.
func (r *validation) bytePSProgram() {
	s := &r.Spec
	if !s.BytePS() {
		return
	}
	for _, w := range s.words() {
		if w.arg < 1 && (hostLauncher().MatchString(w.text) || launcherWord().MatchString(w.text)) {
			r.fail(w.path, "requires",
				"%s starts no servers of BytePS: leave it and its options out, tegen starts bpslaunch", w.text)
		}
	}
	if len(s.Servers.Args) > 0 && len(s.Servers.Command) == 0 && !s.Servers.Entrypoint {
		r.fail("spec.servers.args", "requires", "bpslaunch serves without any: leave them out, or give a command too")
	}
}

// BPSLaunch makes a process of each role of BytePS, which it reads from DMLC_ROLE: the workers' programs, one for each
// accelerator, or a server, or the scheduler (bytedance/byteps, launcher/launch.py).
const BPSLaunch = "bpslaunch"

// workingDirNote is about where ByteScheduler's own images start (bytescheduler/docker on its branch of
// bytedance/byteps). All users of Horovod's may enter theirs, /horovod/examples, and /examples before.
func (s *Spec) workingDirNote() string {
	if s.Framework != FrameworkByteScheduler || !s.Horovodrun() || s.Security.RunAsUser.Number == nil ||
		s.Security.RunAsUser.Is(0) {
		return ""
	}
	return fmt.Sprintf("ByteScheduler's own Dockerfiles end in a working directory under /root, which user %d cannot "+
		"enter, and the one for PyTorch installs a Horovod that has no horovodrun: docs/images.md says what to change",
		*s.Security.RunAsUser.Number)
}
