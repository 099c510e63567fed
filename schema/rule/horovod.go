package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
)

var horovodRules = []oldRule{
	{(*Validation).horovodProgram, "framework bytescheduler.mode command args"},
	{(*Validation).horovodSlots, "framework bytescheduler.mode workers.processes resources.gpu"},
	{
		(*Validation).horovodElastic,
		"framework bytescheduler.mode workers.replicas workers.min workers.max horovod network.interface",
	},
	{
		(*Validation).horovodUser,
		"framework target bytescheduler.mode mpi.launch ssh.server workers security.runAsUser security.restricted",
	},
	{(*Validation).horovodAlone, "framework target bytescheduler.mode mpi.launch workers.replicas workers.max ssh"},
	{(*Validation).horovodFailure, "framework bytescheduler.mode horovod.controller failure.fatalExitCodes"},
	{
		(*Validation).horovodEnvironment,
		"framework target bytescheduler.mode horovod.controller mpi ssh.server workers.max env podTemplate roles",
	},
	{(*Validation).mpiGang, "target gang placement.scheduler"},
}

// horovodProgram refuses a launcher of the author's.
func (r *Validation) horovodProgram() {
	s := &r.Spec
	if !s.Horovodrun() {
		return
	}
	words := slices.Concat(s.Command, s.Args)
	for i, word := range words {
		// bash -c stands before it at most: what follows are the program's own arguments
		if i >= max(len(s.Command), 3) {
			return
		}
		at := fmt.Sprintf("spec.command[%d]", i)
		if i >= len(s.Command) {
			at = fmt.Sprintf("spec.args[%d]", i-len(s.Command))
		}
		if m := job.HostLauncher().FindStringSubmatch(word); m != nil {
			r.fail(at, "requires", "tegen puts horovodrun before the command: leave %s and its options out", m[1])
		}
	}
}

// horovodSlots needs a number of processes: -np is their sum.
func (r *Validation) horovodSlots() {
	if p := r.Spec.Workers.Processes.StrVal; r.Spec.HostLaunched() &&
		(p == "cpu" || p != "" && r.Spec.Resources.GPU == 0) {
		launcher := "horovodrun"
		if r.Spec.Framework == job.FrameworkMPI {
			launcher = "mpirun"
		}
		r.fail("spec.workers.processes", "requires",
			"%s counts no CPUs: give the number of processes of a worker", launcher)
	}
}

// horovodElastic holds what elastic needs, and what nothing else reads.
func (r *Validation) horovodElastic() {
	s := &r.Spec
	switch {
	case !s.Horovodrun() || s.Workers.Replicas == 0:
	case !s.Elastic():
		for _, field := range []string{"spec.horovod.elasticTimeout", "spec.horovod.resetLimit"} {
			if r.IsSet(field) {
				r.fail(field, "requires", "only an elastic job has it: set spec.workers.min below max")
			}
		}
	case s.Horovod.Controller == "mpi":
		r.fail("spec.horovod.controller", "requires",
			"an elastic job (min %d, max %d) needs gloo: processes of MPI end with the first that is lost",
			s.Workers.Min, s.Workers.Max)
	case s.Workers.Min == 1 && s.Network.Interface == "":
		r.fail("spec.workers.min", "requires",
			"horovodrun starts no elastic job on one host unless it is told the interface: set "+
				"spec.network.interface, such as eth0, or min 2")
	}
}

// horovodUser refuses root in pods that drop all capabilities: its sshd changes user and root directory, which takes
// some of them.
func (r *Validation) horovodUser() {
	const at, remedy = "spec.security.runAsUser",
		"give a number other than 0, which needs no line in the image's passwd file"
	switch user := r.Spec.Security.RunAsUser; {
	case !r.Spec.HostLaunched():
	case user.Is(0) && r.Spec.Security.Restricted && r.Spec.OverSSH():
		r.fail(at, "requires",
			"sshd as root needs capabilities that these pods drop: give another user, who needs no line in the "+
				"image's passwd file, or set restricted: false")
	case user.Number == nil && r.Spec.OverSSH():
		r.fail(at, "requires",
			"ssh and sshd need a line of the user in /etc/passwd, and the image's user is unknown here: %s", remedy)
	}
}

// horovodAlone refuses settings of an ssh that is not there.
func (r *Validation) horovodAlone() {
	s := &r.Spec
	if s.HostLaunched() && s.Workers.Replicas != 0 && !s.OverSSH() && !s.ImageSSH() && r.IsSet("spec.ssh") {
		r.fail("spec.ssh", "requires", "one worker starts its processes without ssh: leave it out")
	}
}

// horovodFailure knows with what horovodrun exits: with gloo it raises an error, whatever its processes exit with;
// mpirun exits like the first process that failed.
func (r *Validation) horovodFailure() {
	if !r.Spec.Horovodrun() || r.Spec.Framework == job.FrameworkByteScheduler || r.Spec.Horovod.Controller != "gloo" {
		return
	}
	for i, code := range r.Spec.Failure.FatalExitCodes {
		if code != 1 {
			r.fail(fmt.Sprintf("spec.failure.fatalExitCodes[%d]", i), "requires",
				"horovodrun exits with 1 whatever its processes exit with, so %d never comes: use controller mpi, or 1",
				code)
		}
	}
}

// processEnv is what horovodrun gives each process, over what a container has.
var processEnv = []string{
	"HOROVOD_HOSTNAME", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
	"HOROVOD_CROSS_RANK",
	"HOROVOD_CROSS_SIZE", "HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT", "HOROVOD_GLOO_IFACE",
	"HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS", "HOROVOD_ELASTIC",
}

// horovodEnvironment refuses variables that tegen, the launcher or an operator sets.
func (r *Validation) horovodEnvironment() {
	if !r.Spec.HostLaunched() {
		return
	}
	for i, e := range r.Spec.Env {
		r.horovodVariable(fmt.Sprintf("spec.env[%d].name", i), e.Name)
	}
	for at, name := range r.patchedEnv() {
		if r.Spec.ImageSSH() && strings.HasPrefix(at, "spec.podTemplate.") {
			continue // sshd's own, of which no process gets any
		}
		if !strings.HasPrefix(name, "TEGEN_") { // podTemplate refuses them for all frameworks
			r.horovodVariable(at+".name", name)
		}
	}
}

func (r *Validation) horovodVariable(at, name string) {
	switch {
	case strings.HasPrefix(name, "TEGEN_"), name == "JOB_COMPLETION_INDEX":
		section := "spec.horovod"
		if r.Spec.Framework == job.FrameworkMPI {
			section = "spec.mpi"
		}
		r.fail(at, "reserved", "%s is set by tegen: see spec.ssh, %s and spec.workers", name, section)
	case r.Spec.Horovodrun() && slices.Contains(processEnv, name):
		r.fail(at, "reserved", "%s is set by horovodrun for each process", name)
	case r.Spec.Framework == job.FrameworkMPI && rankEnv().MatchString(name):
		r.fail(at, "reserved", "%s is set by mpirun for each process", name)
	case r.Spec.Target == job.TargetMPIJob && slices.Contains(r.Spec.OperatorEnv(), name):
		r.fail(at, "reserved", "%s is set by the MPI operator", name)
	case r.Spec.Mpirun() && (name == job.KeepHostNames4 || name == job.KeepHostNames5):
		r.fail(at, "reserved", "%s is set by tegen: mpirun reaches no pod without it", name)
	case r.Spec.Framework == job.FrameworkByteScheduler && name == job.HorovodStartTimeout:
		r.fail(at, "reserved", "%s is set by tegen: see spec.horovod.startTimeout", name)
	case r.Spec.Framework == job.FrameworkByteScheduler &&
		(name == "USE_BYTESCHEDULER" || strings.HasPrefix(name, "BYTESCHEDULER_")):
		r.fail(at, "reserved", "%s is set by tegen: see spec.bytescheduler", name)
	}
}

// mpiGang knows that the MPI operator puts the pods of a gang under the scheduler that it was started with, whatever
// their templates say (decoratePodTemplateSpec in pkg/controller/podgroup.go).
func (r *Validation) mpiGang() {
	if r.Spec.Target == job.TargetMPIJob && r.Spec.MakesPodGroup() && r.IsSet("spec.placement.scheduler") {
		r.fail("spec.placement.scheduler", "requires",
			"the MPI operator sets the scheduler of a gang itself: leave it out")
	}
}

// SharedPorts refuses two jobs on their nodes' network that listen on the same port: they could never share a node.
func SharedPorts(jobs []Loaded, roots []*structural.Node) (errs structural.Errors) {
	first := map[int32]int{}
	for i, l := range jobs {
		if l.Job == nil || !l.Job.Spec.Network.Host ||
			slices.ContainsFunc([]string{"framework", "ssh", "bytescheduler", "jax", "mpi.launch"}, l.Invalid.Touch) {
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

var mpiRules = []oldRule{
	{(*Validation).mpiLine, "framework mpi command script ssh.server"},
	{(*Validation).mpiOptions, "framework mpi"},
	{(*Validation).mpiValues, "framework env ssh.server"},
	{(*Validation).mpiInterface, "framework target mpi network ssh.server workers.max"},
}

// rankEnv is what mpirun tells each process of itself.
var rankEnv = lazy.Regexp(`^(OMPI_COMM_WORLD_|PMI_|PMIX_RANK$|MPI_LOCAL)`)

// mpiLine needs a line where mpirun is not tegen's, and leaves all of it to that line.
func (r *Validation) mpiLine() {
	s := &r.Spec
	if !s.MPILine() {
		return
	}
	if len(s.Command) == 0 && s.Script == nil && !s.ImageSSH() {
		r.fail("spec.mpi.launch", "requires",
			"the command is the launcher, and the image's entrypoint is not run: give a command")
	}
	for _, field := range []string{"spec.mpi.options", "spec.mpi.prefix"} {
		if r.IsSet(field) {
			r.fail(field, "requires", "it is for tegen's mpirun, and launch is command: write it in spec.command")
		}
	}
}

// mpiOptions refuses a first word that is no option.
func (r *Validation) mpiOptions() {
	if options := r.Spec.MPI.Options; r.Spec.Framework == job.FrameworkMPI && len(options) > 0 &&
		!strings.HasPrefix(options[0], "-") {
		r.fail("spec.mpi.options[0]", "format", "%s is no option, and mpirun would take it for the program: it "+
			"belongs into spec.command", options[0])
	}
}

// mpiValues refuses values of several lines: processes get theirs from sshd, which reads a line for each.
func (r *Validation) mpiValues() {
	if r.Spec.Framework != job.FrameworkMPI || r.Spec.ImageSSH() {
		return
	}
	for i, e := range r.Spec.Env {
		if e.Value != nil && strings.Contains(*e.Value, "\n") {
			r.fail(fmt.Sprintf("spec.env[%d].value", i), "format",
				"%s has several lines, and ssh hands on variables of one line alone: put it into a file", e.Name)
		}
	}
}

// mpiInterface needs the interface of hydra on the nodes' network: its proxies call back by the host's name, which is
// then the node's, and which no other pod need resolve.
func (r *Validation) mpiInterface() {
	s := &r.Spec
	hydra := slices.Contains([]string{job.MPIIntel, job.MPICH}, s.MPI.Implementation)
	if s.Framework == job.FrameworkMPI && hydra && s.OverSSH() && s.Network.Host && s.Network.Interface == "" {
		r.fail("spec.network.host", "requires",
			"processes of %s call the launcher by the name of its node, which pods need not resolve: set "+
				"spec.network.interface, such as eth0", s.MPI.Implementation)
	}
}

var imageSSHRules = []oldRule{
	{(*Validation).imageSSH, "framework target ssh mpi"},
	{(*Validation).imageKeys, "framework target ssh security"},
	{(*Validation).imageLauncher, "framework target ssh.server mpi gang"},
}

// imageSSH keeps apart what is said of tegen's ssh and of an image's.
func (r *Validation) imageSSH() {
	if !r.Spec.HostLaunched() || r.Spec.Target != job.TargetMPIJob && r.Spec.ImageSSH() {
		return // whose row refuses it
	}
	if !r.Spec.ImageSSH() {
		for _, field := range []string{
			"ssh.keysPath", "ssh.command", "ssh.args", "ssh.restart", "mpi.launcherStart", "mpi.launcherRestart",
			"mpi.launcherWorks",
		} {
			if r.IsSet("spec." + field) {
				r.fail("spec."+field, "requires", "tegen sets up ssh and the launcher that waits for it: set "+
					"ssh.server: image, with mpi.launch: command, for an image that does so itself, or leave it out")
			}
		}
		return
	}
	if r.Spec.Framework != job.FrameworkMPI {
		return
	}
	if r.Spec.MPI.Launch != job.LaunchCommand {
		r.fail("spec.ssh.server", "requires", "an sshd of the image's hands on no variables and has a port that is "+
			"unknown here: give mpirun's whole line in spec.command, with -x for each variable, and set mpi.launch: "+
			"command")
	}
	if r.IsSet("spec.ssh.port") {
		r.fail("spec.ssh.port", "requires", "the image's sshd listens where its own configuration says: leave it out, "+
			"or say so in ssh.command")
	}
	if r.IsSet("spec.mpi.startTimeout") {
		r.fail("spec.mpi.startTimeout", "requires", "nothing of tegen's waits for the workers of ssh.server image: "+
			"leave it out, and see mpi.launcherStart")
	}
}

// imageKeys knows who can read the keys. Those at /root/.ssh are 0600, all others 0644 (setupSSHOnPod in pkg/controller
// of the MPI operator), of root; an fsGroup adds rights of a group, and ssh then refuses its own user's key
// (sshkey_perm_ok in OpenSSH's authfile.c).
func (r *Validation) imageKeys() {
	s := &r.Spec.Security
	if !r.Spec.ImageSSH() || r.Spec.Framework != job.FrameworkMPI || r.Spec.Target != job.TargetMPIJob {
		return
	}
	at, user := r.Spec.KeysPath(), s.RunAsUser
	root := at == "/root" || strings.HasPrefix(at, "/root/")
	switch {
	case root && user.Number != nil && !user.Is(0):
		r.fail("spec.ssh.keysPath", "requires", "the keys at %s are root's, and the pods run as user %d: give the "+
			"directory where the image has the keys of that user, such as /home/mpiuser/.ssh, or set security: "+
			"{runAsUser: image, restricted: false}", at, *user.Number)
	case s.Restricted && (user.Is(0) || root):
		r.fail("spec.security.restricted", "requires", "an sshd that runs as root needs capabilities that these pods "+
			"drop: set restricted: false")
	case at == job.RootKeys && s.FSGroup.Number != nil:
		r.fail("spec.security.fsGroup", "requires", "its group may read the keys at %s, and ssh refuses a key that "+
			"others can read: set fsGroup: none", at)
	}
}

// imageLauncher knows that a gang is placed as a whole, the launcher with it.
func (r *Validation) imageLauncher() {
	if r.Spec.ImageSSH() && r.Spec.MPI.LauncherStart == "ready" && r.Spec.Gang.Active() {
		r.fail("spec.mpi.launcherStart", "requires", "the gang has the launcher among its pods, and would wait for it "+
			"for ever: leave it out")
	}
}
