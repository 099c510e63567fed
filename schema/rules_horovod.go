package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
)

var horovodRules = []rule{
	{(*validation).horovodProgram, "framework bytescheduler.mode command args"},
	{(*validation).horovodSlots, "framework bytescheduler.mode workers.processes resources.gpu"},
	{
		(*validation).horovodElastic,
		"framework bytescheduler.mode workers.replicas workers.min workers.max horovod network.interface",
	},
	{(*validation).horovodUser, "framework target bytescheduler.mode workers security.runAsUser"},
	{(*validation).horovodAlone, "framework target bytescheduler.mode workers.replicas workers.max ssh"},
	{(*validation).horovodFailure, "framework bytescheduler.mode horovod.controller failure.fatalExitCodes"},
	{
		(*validation).horovodEnvironment,
		"framework target bytescheduler.mode horovod.controller workers.max env podTemplate roles",
	},
	{(*validation).mpiGang, "target gang placement.scheduler"},
}

// Horovodrun says whether horovodrun starts the training processes.
func (s *Spec) Horovodrun() bool {
	return s.Framework == FrameworkHorovod || s.Framework == FrameworkByteScheduler &&
		s.ByteScheduler.Mode == ModeHorovod
}

// Elastic says whether fewer workers than the maximum train.
func (s *Spec) Elastic() bool { return s.Workers.Min < s.Workers.Max }

// OverSSH says whether processes of other pods are started: one worker of a Job starts its own without ssh.
func (s *Spec) OverSSH() bool {
	return s.Horovodrun() && (s.Workers.Max > 1 || s.Target == TargetMPIJob)
}

// Mpirun says whether horovodrun becomes Open MPI's mpirun, which reaches other pods.
func (s *Spec) Mpirun() bool {
	return s.OverSSH() && (s.Framework == FrameworkByteScheduler || s.Horovod.Controller == "mpi")
}

// Slots is the number of training processes that a host has room for.
func (s *Spec) Slots() int64 {
	if p := s.Workers.Processes; p.StrVal == "" {
		return int64(p.IntVal)
	}
	return s.Resources.GPU // auto and gpu, where there are some
}

// hostLauncher finds programs that start processes on other hosts, in words and in what a shell is to run.
var hostLauncher = regexp.MustCompile(`(?:^|[\s;&|("'/])(horovodrun|mpirun|mpiexec)(?:$|[\s;&|)"'])`)

// horovodProgram refuses a launcher of the author's.
func (r *validation) horovodProgram() {
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
		if m := hostLauncher.FindStringSubmatch(word); m != nil {
			r.fail(at, "requires", "%s is put before the command by tegen: leave it and its options out", m[1])
		}
	}
}

// horovodSlots needs a number of processes: -np is their sum.
func (r *validation) horovodSlots() {
	if p := r.Spec.Workers.Processes.StrVal; r.Spec.Horovodrun() &&
		(p == "cpu" || p != "" && r.Spec.Resources.GPU == 0) {
		r.fail("spec.workers.processes", "requires",
			"horovodrun counts no CPUs: give the number of processes of a worker")
	}
}

// horovodElastic holds what elastic needs, and what nothing else reads.
func (r *validation) horovodElastic() {
	s := &r.Spec
	switch {
	case !s.Horovodrun() || s.Workers.Replicas == 0:
	case !s.Elastic():
		for _, field := range []string{"spec.horovod.elasticTimeout", "spec.horovod.resetLimit"} {
			if r.isSet(field) {
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

// horovodUser refuses root: sshd would then change its user and root directory, which takes capabilities that no pod of
// a restricted namespace has.
func (r *validation) horovodUser() {
	const at, remedy = "spec.security.runAsUser",
		"give a number other than 0, which needs no line in the image's passwd file"
	switch user := r.Spec.Security.RunAsUser; {
	case !r.Spec.Horovodrun():
	case user.Is(0):
		r.fail(at, "requires",
			"sshd as root needs capabilities that these pods drop: give another user, who needs no line in the "+
				"image's passwd file")
	case user.Number == nil && r.Spec.OverSSH():
		r.fail(at, "requires",
			"ssh and sshd need a line of the user in /etc/passwd, and the image's user is unknown here: %s", remedy)
	}
}

// horovodAlone refuses settings of an ssh that is not there.
func (r *validation) horovodAlone() {
	if s := &r.Spec; s.Horovodrun() && s.Workers.Replicas != 0 && !s.OverSSH() && r.isSet("spec.ssh") {
		r.fail("spec.ssh", "requires", "one worker starts its processes without ssh: leave it out")
	}
}

// horovodFailure knows with what horovodrun exits: with gloo it raises an error, whatever its processes exit with;
// mpirun exits like the first process that failed.
func (r *validation) horovodFailure() {
	if !r.Spec.Horovodrun() || r.Spec.Framework == FrameworkByteScheduler || r.Spec.Horovod.Controller != "gloo" {
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

// What tegen tells horovodrun and mpirun by variables.
const (
	HorovodStartTimeout = "HOROVOD_START_TIMEOUT"
	KeepHostNames4      = "OMPI_MCA_orte_keep_fqdn_hostnames" // Open MPI up to 4
	KeepHostNames5      = "PRTE_MCA_prte_keep_fqdn_hostnames"
)

// operatorEnv is what the MPI operator adds to the launcher, behind what its template has.
var operatorEnv = []string{
	"K_MPI_JOB_ROLE", KeepHostNames4, "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args",
	"OMPI_MCA_orte_set_default_slots", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
}

// horovodEnvironment refuses variables that tegen, horovodrun or an operator sets, and those that no process would see.
func (r *validation) horovodEnvironment() {
	if !r.Spec.Horovodrun() {
		return
	}
	for i, e := range r.Spec.Env {
		r.horovodVariable(fmt.Sprintf("spec.env[%d].name", i), e.Name)
	}
	if r.Spec.Target != TargetMPIJob {
		for at, name := range r.patchedEnv() {
			if !strings.HasPrefix(name, "TEGEN_") { // podTemplate refuses them for all frameworks
				r.horovodVariable(at+".name", name)
			}
		}
		return
	}
	const reason = "sshd gives the processes of workers none of it, and horovodrun only what the launcher has: put " +
		"it in spec.env"
	for at, c := range r.patchedContainers() {
		if len(c.Env) > 0 {
			r.fail(at+".env", "target", reason)
		}
		if len(c.EnvFrom) > 0 {
			r.fail(at+".envFrom", "target", reason)
		}
	}
}

func (r *validation) horovodVariable(at, name string) {
	switch {
	case strings.HasPrefix(name, "TEGEN_"), name == "JOB_COMPLETION_INDEX":
		r.fail(at, "reserved", "%s is set by tegen: see spec.ssh, spec.horovod and spec.workers", name)
	case slices.Contains(processEnv, name):
		r.fail(at, "reserved", "%s is set by horovodrun for each process", name)
	case r.Spec.Target == TargetMPIJob && slices.Contains(operatorEnv, name):
		r.fail(at, "reserved", "%s is set by the MPI operator", name)
	case r.Spec.Mpirun() && (name == KeepHostNames4 || name == KeepHostNames5):
		r.fail(at, "reserved", "%s is set by tegen: mpirun reaches no pod without it", name)
	case r.Spec.Framework == FrameworkByteScheduler && name == HorovodStartTimeout:
		r.fail(at, "reserved", "%s is set by tegen: see spec.horovod.startTimeout", name)
	case r.Spec.Framework == FrameworkByteScheduler &&
		(name == "USE_BYTESCHEDULER" || strings.HasPrefix(name, "BYTESCHEDULER_")):
		r.fail(at, "reserved", "%s is set by tegen: see spec.bytescheduler", name)
	}
}

// mpiGang knows that the MPI operator puts the pods of a gang under the scheduler that it was started with, whatever
// their templates say (decoratePodTemplateSpec in pkg/controller/podgroup.go).
func (r *validation) mpiGang() {
	if r.Spec.Target == TargetMPIJob && r.Spec.MakesPodGroup() && r.isSet("spec.placement.scheduler") {
		r.fail("spec.placement.scheduler", "requires",
			"the MPI operator sets the scheduler of a gang itself: leave it out")
	}
}

// listening are the ports on which a job's workers listen by themselves, and the fields that set them.
func (s *Spec) listening() (ports []int32, fields []string) {
	if s.OverSSH() {
		ports, fields = append(ports, s.SSH.Port), append(fields, "spec.ssh.port")
	}
	if s.Horovodrun() && s.ByteScheduler.PartitionTuning {
		ports, fields = append(ports, s.ByteScheduler.RootPort), append(fields, "spec.bytescheduler.rootPort")
	}
	return ports, fields
}

// sharedPorts refuses two jobs on their nodes' network that listen on the same port: they could never share a node.
func sharedPorts(jobs []loaded, roots []*structural.Node) (errs Errors) {
	first := map[int32]int{}
	for i, l := range jobs {
		if l.job == nil || !l.job.Spec.Network.Host ||
			slices.ContainsFunc([]string{"framework", "ssh", "bytescheduler"}, l.invalid.touch) {
			continue
		}
		ports, fields := l.job.Spec.listening()
		for k, port := range ports {
			if j, ok := first[port]; !ok {
				first[port] = i
			} else if j != i { // byteScheduler tells of one job's own
				errs = append(errs,
					roots[i].Errorf(fields[k], "duplicate",
						"%d is a port of job %q on its nodes already: give each a port of its own", port,
						jobs[j].job.Metadata.Name))
			}
		}
	}
	return errs
}
