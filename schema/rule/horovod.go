package rule

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

var horovodRules = []Rule{
	part.Of3(horovodProgram, part.Horovodrun, part.Command, part.Args),
	part.Of4(horovodSlots, part.Framework, part.HostLaunched, part.Processes, part.GPU),
	part.Of4(horovodElastic, part.Horovodrun, part.Counts, part.HorovodController, part.Interface),
	part.Of3(horovodUser, part.OverSSH, part.RunAsUser, part.Restricted),
	part.Of4(horovodAlone, part.HostLaunched, part.Replicas, part.OverSSH, part.ImageSSH),
	part.Of3(horovodFailure, part.Framework, part.HorovodController, part.FatalExitCodes),
	part.Of2(mpiGangScheduler, part.Target, part.MakesPodGroup),
}

// horovodProgram refuses a launcher of the author's.
func horovodProgram(p *Problems, horovodrun bool, command, args []string) {
	if !horovodrun {
		return
	}
	for i, word := range slices.Concat(command, args) {
		// bash -c stands before it at most: what follows are the program's own arguments
		if i >= max(len(command), 3) {
			return
		}
		if m := job.HostLauncher().FindStringSubmatch(word); m != nil {
			p.fail(job.WordPath(command, i), "requires",
				"tegen puts horovodrun before the command: leave %s and its options out", m[1])
		}
	}
}

// horovodSlots needs a number of processes: -np is their sum.
func horovodSlots(p *Problems, framework string, hostLaunched bool, processes intstr.IntOrString, gpu int64) {
	if word := processes.StrVal; hostLaunched && (word == "cpu" || word != "" && gpu == 0) {
		launcher := "horovodrun"
		if framework == job.FrameworkMPI {
			launcher = "mpirun"
		}
		p.fail("spec.workers.processes", "requires",
			"%s counts no CPUs: give the number of processes of a worker", launcher)
	}
}

// horovodElastic holds what elastic needs, and what nothing else reads.
func horovodElastic(p *Problems, horovodrun bool, workers part.Count, controller, network string) {
	switch {
	case !horovodrun || workers.Replicas == 0:
	case workers.Min >= workers.Max:
		p.failIfSet("only an elastic job has it: set spec.workers.min below max",
			"spec.horovod.elasticTimeout", "spec.horovod.resetLimit")
	case controller == "mpi":
		p.fail("spec.horovod.controller", "requires",
			"an elastic job (min %d, max %d) needs gloo: processes of MPI end with the first that is lost",
			workers.Min, workers.Max)
	case workers.Min == 1 && network == "":
		p.fail("spec.workers.min", "requires",
			"horovodrun starts no elastic job on one host unless it is told the interface: set "+
				"spec.network.interface, such as eth0, or min 2")
	}
}

// horovodUser refuses root in pods that drop all capabilities: its sshd changes user and root directory, which takes
// some of them.
func horovodUser(p *Problems, overSSH bool, user job.ID, restricted bool) {
	const at, remedy = "spec.security.runAsUser",
		"give a number other than 0, which needs no line in the image's passwd file"
	switch {
	case !overSSH:
	case user.Is(0) && restricted:
		p.fail(at, "requires",
			"sshd as root needs capabilities that these pods drop: give another user, who needs no line in the "+
				"image's passwd file, or set restricted: false")
	case user.Number == nil:
		p.fail(at, "requires",
			"ssh and sshd need a line of the user in /etc/passwd, and the image's user is unknown here: %s", remedy)
	}
}

// horovodAlone refuses settings of an ssh that is not there.
func horovodAlone(p *Problems, hostLaunched bool, workers int32, overSSH, imageSSH bool) {
	if hostLaunched && workers != 0 && !overSSH && !imageSSH {
		p.failIfSet("one worker starts its processes without ssh: leave it out", "spec.ssh")
	}
}

// horovodFailure knows with what horovodrun exits: with gloo it raises an error, whatever its processes exit with;
// mpirun exits like the first process that failed.
func horovodFailure(p *Problems, framework, controller string, fatal []int32) {
	if framework != job.FrameworkHorovod || controller != "gloo" {
		return
	}
	for i, code := range fatal {
		if code != 1 {
			p.fail(fmt.Sprintf("spec.failure.fatalExitCodes[%d]", i), "requires",
				"horovodrun exits with 1 whatever its processes exit with, so %d never comes: use controller mpi, or 1",
				code)
		}
	}
}

// processEnv is what horovodrun gives each process, over what a container has.
var processEnv = []string{
	"HOROVOD_HOSTNAME", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
	"HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE", "HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT",
	"HOROVOD_GLOO_IFACE", "HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS", "HOROVOD_ELASTIC",
}

// rankEnv is what mpirun tells each process of itself.
var rankEnv = lazy.Regexp(`^(OMPI_COMM_WORLD_|PMI_|PMIX_RANK$|MPI_LOCAL)`)

// launched says whether processes get a variable: those of an sshd of the image's own get none of its container. And
// podTemplate refuses TEGEN_ in escape hatches of all frameworks.
func launched(at, name string, imageSSH bool) bool {
	return !(imageSSH && strings.HasPrefix(at, "spec.podTemplate.") ||
		strings.HasPrefix(name, "TEGEN_") && !strings.HasPrefix(at, "spec.env["))
}

// launcherVariables refuses variables that tegen or the launcher sets.
func launcherVariables(
	p *Problems, framework string, hostLaunched, horovodrun, imageSSH bool, variables map[string]string,
) {
	if !hostLaunched {
		return
	}
	section := "spec.horovod"
	if framework == job.FrameworkMPI {
		section = "spec.mpi"
	}
	for at, name := range variables {
		reserved := func(by string) { p.fail(at, "reserved", "%s is set by %s", name, by) }
		switch byteScheduler := framework == job.FrameworkByteScheduler; {
		case !launched(at, name, imageSSH):
		case strings.HasPrefix(name, "TEGEN_"), name == "JOB_COMPLETION_INDEX":
			reserved("tegen: see spec.ssh, " + section + " and spec.workers")
		case horovodrun && slices.Contains(processEnv, name):
			reserved("horovodrun for each process")
		case framework == job.FrameworkMPI && rankEnv().MatchString(name):
			reserved("mpirun for each process")
		case byteScheduler && name == job.HorovodStartTimeout:
			reserved("tegen: see spec.horovod.startTimeout")
		case byteScheduler && (name == "USE_BYTESCHEDULER" || strings.HasPrefix(name, "BYTESCHEDULER_")):
			reserved("tegen: see spec.bytescheduler")
		}
	}
}

// operatorVariables are those that the MPI operator sets.
var operatorVariables = part.OfSpec("framework target bytescheduler.mode mpi.implementation mpi.launcherWorks",
	func(s *job.Spec) []string {
		if s.HostLaunched() && s.Target == job.TargetMPIJob {
			return s.OperatorEnv()
		}
		return nil
	})

// mpirunVariables refuses variables that the MPI operator sets, or that tegen sets for mpirun.
func mpirunVariables(p *Problems, mpirun, imageSSH bool, operator []string, variables map[string]string) {
	for at, name := range variables {
		switch {
		case !launched(at, name, imageSSH):
		case slices.Contains(operator, name):
			p.fail(at, "reserved", "%s is set by the MPI operator", name)
		case mpirun && (name == job.KeepHostNames4 || name == job.KeepHostNames5):
			p.fail(at, "reserved", "%s is set by tegen: mpirun reaches no pod without it", name)
		}
	}
}

// mpiGangScheduler refuses a scheduler that the MPI operator would replace: it puts the pods of a gang under the
// scheduler that it was started with, whatever their templates say (decoratePodTemplateSpec in
// pkg/controller/podgroup.go).
func mpiGangScheduler(p *Problems, target string, makesPodGroup bool) {
	if target == job.TargetMPIJob && makesPodGroup {
		p.failIfSet("the MPI operator sets the scheduler of a gang itself: leave it out", "spec.placement.scheduler")
	}
}

var hostNetwork = part.OfSpec("network.host", func(s *job.Spec) bool { return s.Network.Host })

var listening = part.OfSpec("framework target workers.max mpi.launch ssh bytescheduler jax", func(s *job.Spec) []int32 {
	ports, _ := s.Listening()
	return ports
})

// SharedPorts refuses two jobs on their nodes' network that listen on the same port: they could never share a node.
func SharedPorts(jobs []Loaded, roots []*structural.Node) (errs structural.Errors) {
	first := map[int32]int{}
	for i, l := range jobs {
		if !l.Knows(listening, hostNetwork) || !l.Job.Spec.Network.Host {
			continue
		}
		ports, fields := l.Job.Spec.Listening()
		for k, port := range ports {
			if j, ok := first[port]; !ok {
				first[port] = i
			} else if j != i { // byteScheduler tells of one job's own
				errs = append(errs,
					roots[i].Errorf(fields[k], "duplicate",
						"%d is a port of job %q on its nodes already: give each a port of its own", port,
						jobs[j].Job.Metadata.Name))
			}
		}
	}
	return errs
}

var mpiRules = []Rule{
	part.Of4(mpiLine, part.MPILine, part.Command, part.Script, part.ImageSSH),
	part.Of2(mpiOptions, part.Framework, part.MPI),
	part.Of3(mpiValues, part.Framework, part.Env, part.ImageSSH),
	part.Of4(mpiInterface, part.Framework, part.MPI, part.OverSSH, part.Network),
}

// mpiLine needs a line where mpirun is not tegen's, and leaves all of it to that line.
func mpiLine(p *Problems, line bool, command []string, script *job.Script, imageSSH bool) {
	if !line {
		return
	}
	if len(command) == 0 && script == nil && !imageSSH {
		p.fail("spec.mpi.launch", "requires",
			"the command is the launcher, and the image's entrypoint is not run: give a command")
	}
	p.failIfSet("it is for tegen's mpirun, and launch is command: write it in spec.command",
		"spec.mpi.options", "spec.mpi.prefix")
}

// mpiOptions refuses a first word that is no option.
func mpiOptions(p *Problems, framework string, m *job.MPI) {
	if framework == job.FrameworkMPI && len(m.Options) > 0 && !strings.HasPrefix(m.Options[0], "-") {
		p.fail("spec.mpi.options[0]", "format", "%s is no option, and mpirun would take it for the program: it "+
			"belongs into spec.command", m.Options[0])
	}
}

// mpiValues refuses values of several lines: processes get theirs from sshd, which reads a line for each.
func mpiValues(p *Problems, framework string, env []job.Env, imageSSH bool) {
	if framework != job.FrameworkMPI || imageSSH {
		return
	}
	for i, e := range env {
		if e.Value != nil && strings.Contains(*e.Value, "\n") {
			p.fail(fmt.Sprintf("spec.env[%d].value", i), "format",
				"%s has several lines, and ssh hands on variables of one line alone: put it into a file", e.Name)
		}
	}
}

// mpiInterface needs the interface of hydra on the nodes' network: its proxies call back by the host's name, which is
// then the node's, and which no other pod need resolve.
func mpiInterface(p *Problems, framework string, m *job.MPI, overSSH bool, n *job.Network) {
	hydra := slices.Contains([]string{job.MPIIntel, job.MPICH}, m.Implementation)
	if framework == job.FrameworkMPI && hydra && overSSH && n.Host && n.Interface == "" {
		p.fail("spec.network.host", "requires",
			"processes of %s call the launcher by the name of its node, which pods need not resolve: set "+
				"spec.network.interface, such as eth0", m.Implementation)
	}
}

var imageSSHRules = []Rule{
	part.Of2(ownSSH, part.HostLaunched, part.ImageSSH),
	part.Of2(imageSSH, imageServes, part.MPILine),
	part.Of3(imageKeys, imageServes, part.KeysPath, part.Security),
	part.Of3(imageLauncher, part.ImageSSH, part.MPI, part.Gang),
}

// ownSSH refuses settings of an image's ssh where tegen sets it up.
func ownSSH(p *Problems, hostLaunched, imageSSH bool) {
	if hostLaunched && !imageSSH {
		p.failIfSet("tegen sets up ssh and the launcher that waits for it: set ssh.server: image, with mpi.launch: "+
			"command, for an image that does so itself, or leave it out",
			"spec.ssh.keysPath", "spec.ssh.command", "spec.ssh.args", "spec.ssh.restart",
			"spec.mpi.launcherStart", "spec.mpi.launcherRestart", "spec.mpi.launcherWorks")
	}
}

// imageServes says whether the sshd of the image's may serve: the rows of other frameworks and targets refuse it.
var imageServes = part.OfSpec("framework target ssh.server", func(s *job.Spec) bool {
	return s.ImageSSH() && s.Framework == job.FrameworkMPI && s.Target == job.TargetMPIJob
})

// imageSSH refuses settings of tegen's ssh where the image has set it up.
func imageSSH(p *Problems, serves, line bool) {
	if !serves {
		return
	}
	if !line {
		p.fail("spec.ssh.server", "requires", "an sshd of the image's hands on no variables and has a port that is "+
			"unknown here: give mpirun's whole line in spec.command, with -x for each variable, and set mpi.launch: "+
			"command")
	}
	p.failIfSet("the image's sshd listens where its own configuration says: leave it out, or say so in ssh.command",
		"spec.ssh.port")
	p.failIfSet("nothing of tegen's waits for the workers of ssh.server image: leave it out, and see "+
		"mpi.launcherStart", "spec.mpi.startTimeout")
}

// imageKeys knows who can read the keys. Those at /root/.ssh are 0600, all others 0644 (setupSSHOnPod in pkg/controller
// of the MPI operator), of root; an fsGroup adds rights of a group, and ssh then refuses its own user's key
// (sshkey_perm_ok in OpenSSH's authfile.c).
func imageKeys(p *Problems, serves bool, at string, s *job.Security) {
	if !serves {
		return
	}
	user := s.RunAsUser
	switch root := at == "/root" || strings.HasPrefix(at, "/root/"); {
	case root && user.Number != nil && !user.Is(0):
		p.fail("spec.ssh.keysPath", "requires", "the keys at %s are root's, and the pods run as user %d: give the "+
			"directory where the image has the keys of that user, such as /home/mpiuser/.ssh, or set security: "+
			"{runAsUser: image, restricted: false}", at, *user.Number)
	case s.Restricted && (user.Is(0) || root):
		p.fail("spec.security.restricted", "requires", "an sshd that runs as root needs capabilities that these pods "+
			"drop: set restricted: false")
	case at == job.RootKeys && s.FSGroup.Number != nil:
		p.fail("spec.security.fsGroup", "requires", "its group may read the keys at %s, and ssh refuses a key that "+
			"others can read: set fsGroup: none", at)
	}
}

// imageLauncher knows that a gang is placed as a whole, the launcher with it.
func imageLauncher(p *Problems, imageSSH bool, m *job.MPI, g *job.Gang) {
	if imageSSH && m.LauncherStart == "ready" && g.Active() {
		p.fail("spec.mpi.launcherStart", "requires", "the gang has the launcher among its pods, and would wait for it "+
			"for ever: leave it out")
	}
}
