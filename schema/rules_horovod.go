package schema

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/structural"
)

var horovodRules = []rule{
	{(*validation).horovodProgram, "framework bytescheduler.mode command args"},
	{(*validation).horovodSlots, "framework bytescheduler.mode workers.processes resources.gpu"},
	{
		(*validation).horovodElastic,
		"framework bytescheduler.mode workers.replicas workers.min workers.max horovod network.interface",
	},
	{
		(*validation).horovodUser,
		"framework target bytescheduler.mode mpi.launch ssh.server workers security.runAsUser security.restricted",
	},
	{(*validation).horovodAlone, "framework target bytescheduler.mode mpi.launch workers.replicas workers.max ssh"},
	{(*validation).horovodFailure, "framework bytescheduler.mode horovod.controller failure.fatalExitCodes"},
	{
		(*validation).horovodEnvironment,
		"framework target bytescheduler.mode horovod.controller mpi ssh.server workers.max env podTemplate roles",
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

// HostLaunched says whether one launcher starts the training processes of all pods.
func (s *Spec) HostLaunched() bool { return s.Horovodrun() || s.Framework == FrameworkMPI }

// OverSSH says whether tegen sets up the ssh by which processes of other pods are started: one worker of a Job starts
// its own without ssh.
func (s *Spec) OverSSH() bool {
	return s.HostLaunched() && !s.ImageSSH() && (s.Workers.Max > 1 || s.Target == TargetMPIJob || s.MPILine())
}

// StartTimeout is how long that launcher waits for workers.
func (s *Spec) StartTimeout() metav1.Duration {
	if s.Framework == FrameworkMPI {
		return s.MPI.StartTimeout
	}
	return s.Horovod.StartTimeout
}

// Mpirun says whether Open MPI's mpirun reaches other pods, be it in horovodrun's place.
func (s *Spec) Mpirun() bool {
	switch s.Framework {
	case FrameworkMPI:
		return s.OverSSH() && s.MPI.Implementation == MPIOpen
	case FrameworkByteScheduler:
		return s.OverSSH()
	}
	return s.OverSSH() && s.Horovod.Controller == "mpi"
}

// Slots is the number of training processes that a host has room for.
func (s *Spec) Slots() int64 {
	if p := s.Workers.Processes; p.StrVal == "" {
		return int64(p.IntVal)
	}
	return s.Resources.GPU // auto and gpu, where there are some
}

// hostLauncher finds programs that start processes on other hosts, in words and in what a shell is to run.
var hostLauncher = lazy.Regexp(`(?:^|[\s;&|("'/])(horovodrun|mpirun|mpiexec)(?:$|[\s;&|)"'])`)

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
		if m := hostLauncher().FindStringSubmatch(word); m != nil {
			r.fail(at, "requires", "tegen puts horovodrun before the command: leave %s and its options out", m[1])
		}
	}
}

// horovodSlots needs a number of processes: -np is their sum.
func (r *validation) horovodSlots() {
	if p := r.Spec.Workers.Processes.StrVal; r.Spec.HostLaunched() &&
		(p == "cpu" || p != "" && r.Spec.Resources.GPU == 0) {
		launcher := "horovodrun"
		if r.Spec.Framework == FrameworkMPI {
			launcher = "mpirun"
		}
		r.fail("spec.workers.processes", "requires",
			"%s counts no CPUs: give the number of processes of a worker", launcher)
	}
}

// horovodElastic holds what elastic needs, and what nothing else reads.
func (r *validation) horovodElastic() {
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
func (r *validation) horovodUser() {
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
func (r *validation) horovodAlone() {
	s := &r.Spec
	if s.HostLaunched() && s.Workers.Replicas != 0 && !s.OverSSH() && !s.ImageSSH() && r.IsSet("spec.ssh") {
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

// OperatorEnv is what the MPI operator adds to the launcher, behind what its template has.
func (s *Spec) OperatorEnv() []string {
	names := []string{"K_MPI_JOB_ROLE"}
	if !s.MPI.LauncherWorks { // it takes accelerators away from a launcher that has no processes
		names = append(names, "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
	}
	implementation := MPIOpen
	if s.Framework == FrameworkMPI {
		implementation = s.MPI.Implementation
	}
	switch implementation {
	case MPIIntel:
		return append(names, "I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "I_MPI_PERHOST")
	case MPICH:
		return append(names, "HYDRA_HOST_FILE", "HYDRA_LAUNCH_EXTRA_ARGS")
	}
	return append(names, KeepHostNames4, "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args",
		"OMPI_MCA_orte_set_default_slots")
}

// horovodEnvironment refuses variables that tegen, the launcher or an operator sets.
func (r *validation) horovodEnvironment() {
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

func (r *validation) horovodVariable(at, name string) {
	switch {
	case strings.HasPrefix(name, "TEGEN_"), name == "JOB_COMPLETION_INDEX":
		section := "spec.horovod"
		if r.Spec.Framework == FrameworkMPI {
			section = "spec.mpi"
		}
		r.fail(at, "reserved", "%s is set by tegen: see spec.ssh, %s and spec.workers", name, section)
	case r.Spec.Horovodrun() && slices.Contains(processEnv, name):
		r.fail(at, "reserved", "%s is set by horovodrun for each process", name)
	case r.Spec.Framework == FrameworkMPI && rankEnv().MatchString(name):
		r.fail(at, "reserved", "%s is set by mpirun for each process", name)
	case r.Spec.Target == TargetMPIJob && slices.Contains(r.Spec.OperatorEnv(), name):
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
	if r.Spec.Target == TargetMPIJob && r.Spec.MakesPodGroup() && r.IsSet("spec.placement.scheduler") {
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
	if s.Framework == FrameworkJAX { // in worker 0, which may share a node with any pod of the other job
		ports, fields = append(ports, s.JAX.Port), append(fields, "spec.jax.port")
	}
	return ports, fields
}

// sharedPorts refuses two jobs on their nodes' network that listen on the same port: they could never share a node.
func sharedPorts(jobs []loaded, roots []*structural.Node) (errs Errors) {
	first := map[int32]int{}
	for i, l := range jobs {
		if l.job == nil || !l.job.Spec.Network.Host ||
			slices.ContainsFunc([]string{"framework", "ssh", "bytescheduler", "jax", "mpi.launch"}, l.invalid.touch) {
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
