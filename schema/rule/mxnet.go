package rule

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/target"
)

var byteSchedulerRules = []Rule{
	part.Of4(byteSchedulerHorovod, part.Framework, part.ByteScheduler, part.OverSSH, part.SSH),
	part.Of2(hostListFits, hosts, part.MaxWorkers),
	part.Of2(bytePSTarget, part.BytePS, part.Target),
	part.Of2(bytePSUnread, part.BytePS, part.Gang),
	part.Of3(bytePSAlone, part.BytePS, part.Replicas, part.Env),
	part.Of2(bytePSProgram, part.BytePS, part.Words),
	part.Of2(bytePSServers, part.BytePS, part.Servers),
}

// byteSchedulerHorovod refuses settings that nothing would read in mode horovod.
func byteSchedulerHorovod(p *Problems, framework string, b *job.ByteScheduler, overSSH bool, ssh *job.SSH) {
	if framework != job.FrameworkByteScheduler || b.Mode == job.ModeBytePS {
		return
	}
	p.failIfSet("ByteScheduler patches Horovod 0.16, which has no other than MPI: leave it out",
		"spec.horovod.controller")
	p.failIfSet("mode horovod trains without servers: leave them out, or set spec.bytescheduler.mode to byteps",
		"spec.servers")
	if !b.PartitionTuning {
		p.failIfSet("only the tuning of partitions needs it: set spec.bytescheduler.partitionTuning",
			"spec.bytescheduler.rootPort")
	}
	if b.PartitionTuning && overSSH && b.RootPort == ssh.Port {
		p.fail("spec.bytescheduler.rootPort", "duplicate",
			"%d is the port of ssh, on which worker 0 listens too: give each a port of its own", b.RootPort)
	}
}

// hostList is the length of a list of hosts, and how many workers fit into one argument.
type hostList struct {
	length int
	fit    int32
}

var hosts = part.New("framework target bytescheduler.mode metadata hashedNames mpi.launch network.clusterDomain "+
	"resources.gpu ssh.server workers.max workers.processes",
	func(j *job.Job) (l hostList) {
		l.length, l.fit = j.HostList()
		return l
	})

// hostListFits holds the list of hosts, which Horovod 0.16 reads from no file, to what one argument has room for.
func hostListFits(p *Problems, hosts hostList, workers int32) {
	if hosts.length > job.LongestArgument {
		p.fail("spec.workers", "range",
			"the names of %d hosts are %d bytes, and horovodrun takes them as one argument, which has %d at most: "+
				"that is %d workers with names of this length", workers, hosts.length, job.LongestArgument, hosts.fit)
	}
}

// bytePSTarget refuses targets that MXNet does not have, whose pods BytePS's are.
func bytePSTarget(p *Problems, bytePS bool, name string) {
	if bytePS && target.Of(job.FrameworkMXNet, name) == nil {
		p.fail("spec.bytescheduler.mode", "target", "target %s has no roles of a scheduler and servers: target job has",
			name)
	}
}

// bytePSUnread refuses settings that nothing would read in mode byteps.
func bytePSUnread(p *Problems, bytePS bool, g *job.Gang) {
	if !bytePS {
		return
	}
	p.failIfSet("belongs to mode horovod: leave this out", "spec.ssh", "spec.horovod")
	p.failIfSet("bpslaunch starts a process for each accelerator: leave this out", "spec.workers.processes")
	for _, field := range []string{
		"partition", "credit", "creditTuning", "partitionTuning", "rootPort", "timeline", "debug",
	} {
		p.failIfSet("belongs to mode horovod: leave this out; what BytePS itself reads, spec.env can set",
			"spec.bytescheduler."+field)
	}
	if g != nil && g.Scheduler == job.GangKueue {
		p.fail("spec.gang.scheduler", "requires", "%s: use another scheduler", target.MxnetJob["gang.scheduler=kueue"])
	}
}

// bytePSAlone refuses one worker, which would not train with servers.
func bytePSAlone(p *Problems, bytePS bool, workers int32, env []job.Env) {
	forced := slices.ContainsFunc(env, func(e job.Env) bool { return e.Name == "BYTEPS_FORCE_DISTRIBUTED" })
	if bytePS && workers == 1 && !forced { // bytedance/byteps, byteps/common/global.cc
		p.fail("spec.workers", "requires",
			"one worker of BytePS never calls its servers, which would wait for ever: at least 2, or "+
				"BYTEPS_FORCE_DISTRIBUTED in spec.env")
	}
}

// bytePSProgram refuses launchers of others, bash -c before them or not.
func bytePSProgram(p *Problems, bytePS bool, words []job.Word) {
	for _, w := range words {
		if bytePS && w.Arg < 1 && (job.HostLauncher().MatchString(w.Text) || job.LauncherWord().MatchString(w.Text)) {
			p.fail(w.Path, "requires",
				"%s starts no servers of BytePS: leave it and its options out, tegen starts bpslaunch", w.Text)
		}
	}
}

// bytePSServers refuses arguments that no server reads.
func bytePSServers(p *Problems, bytePS bool, s *job.Servers) {
	if bytePS && len(s.Args) > 0 && len(s.Command) == 0 && !s.Entrypoint {
		p.fail("spec.servers.args", "requires", "bpslaunch serves without any: leave them out, or give a command too")
	}
}

var mxnetRules = []Rule{
	part.Of2(bareEnv, part.Target, part.Env),
	part.Of1(barePriority, part.Target),
	part.Of3(mxnetLocal, part.Framework, part.MXNet, part.Replicas),
	part.Of2(mxnetUnread, part.Framework, part.Target),
	part.Of1(serverEntrypoint, part.Servers),
	part.Of2(lostPods, part.ParameterServers, target.Row),
}

// bareEnv refuses the ways around the row of target mxjob-mlkube.
func bareEnv(p *Problems, name string, env []job.Env) {
	if name == job.TargetMXJobMlkube && len(env) > 0 && !p.IsSet("spec.env") {
		p.fail("spec.target", "target",
			"the environment gives workers variables, which target %s cannot carry: %s; targets %s, %s can",
			job.TargetMXJobMlkube, target.MlkubeEnv, job.TargetJob, job.TargetMXJob)
	}
}

func barePatchedEnv(p *Problems, name string, variables map[string]string) {
	for at := range variables {
		if name != job.TargetMXJobMlkube {
			return
		}
		p.fail(strings.TrimSuffix(at, ".name"), "target", "target %s cannot carry this: %s; spec.envFrom can",
			job.TargetMXJobMlkube, target.MlkubeEnv)
	}
}

func barePriority(p *Problems, name string) {
	if name == job.TargetMXJobMlkube && p.IsSet("spec.gang.priority") {
		p.fail("spec.gang.priority", "target", "target %s cannot carry this: %s", job.TargetMXJobMlkube,
			target.MlkubePods)
	}
}

// mxnetLocal holds mode local against what is asked for: it is a worker alone, and mode dist has servers too.
func mxnetLocal(p *Problems, framework string, m *job.MXNet, workers int32) {
	if framework != job.FrameworkMXNet || m.Mode != job.MXNetLocal {
		return
	}
	if workers > 1 {
		at := "spec.workers.replicas"
		if !p.IsSet(at) {
			at = "spec.workers.max"
		}
		p.fail(at, "requires", "mode local is one worker alone, not %d: set 1, or mxnet.mode: dist", workers)
	}
	p.failIfSet("mode local has no servers: leave this out, or set mxnet.mode: dist", "spec.servers")
}

// mxnetUnread refuses settings that nothing would read.
func mxnetUnread(p *Problems, framework, target string) {
	if framework != job.FrameworkMXNet {
		return
	}
	if target != job.TargetMXJobMlkube && target != job.TargetMXJob { // whose row refuses both
		p.failIfSet("only target "+job.TargetMXJobMlkube+" has one", "spec.mxnet.group", "spec.mxnet.runtimeID")
	}
	p.failIfSet("MXNet trains on all accelerators of a worker in one process: leave this out", "spec.workers.processes")
}

// serverEntrypoint refuses two programs for one container.
func serverEntrypoint(p *Problems, s *job.Servers) {
	if s.Entrypoint && len(s.Command) > 0 {
		p.fail("spec.servers.entrypoint", "one-of", "only one of command, entrypoint may be given")
	}
}

// lostPods refuses what would be done after the loss of a pod where nothing can be done: neither do nodes of ps-lite
// turn to a new scheduler, nor does a new server have the weights, and the scheduler never answers a node beyond those
// that it has counted (dmlc/ps-lite, src/van.cc).
func lostPods(p *Problems, parameterServers bool, row *target.Target) {
	if !parameterServers || row == nil {
		return
	}
	for _, field := range []string{
		"failure.restarts", "failure.restartsPerWorker", "failure.fatalExitCodes",
		"failure.ignoreDisruptions", "failure.inPlace",
	} {
		if row.Carries(field) {
			p.failIfSet("ps-lite cannot re-admit a lost pod, so that the first failure ends the job: leave this out",
				"spec."+field)
		}
	}
}

// dmlcEnv are the variables that make a process a node of ps-lite.
var dmlcEnv = []string{
	"DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER", "DMLC_WORKER_ID",
	"DMLC_USE_KUBERNETES", "MX_CONFIG",
}

// nodeEnv refuses variables that tegen or an operator sets.
func nodeEnv(p *Problems, parameterServers bool, target, network string, variables map[string]string) {
	for at, name := range variables {
		switch {
		case !parameterServers:
		case target == job.TargetMXJobMlkube && !strings.HasPrefix(at, "spec.env["): // bareEnv refuses all of these
		case slices.Contains(dmlcEnv, name):
			p.fail(at, "reserved", "%s is set for each role: see spec.servers and spec.workers", name)
		case name == "DMLC_INTERFACE" && network != "":
			p.fail(at, "reserved", "DMLC_INTERFACE is set by spec.network.interface")
		}
	}
}
