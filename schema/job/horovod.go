package job

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// LongestArgument is what Linux takes as one argument, without the byte that ends it (MAX_ARG_STRLEN in execve(2)).
const LongestArgument = 128<<10 - 1

// HostList is the length of that list, 0 where there is none, and how many workers fit into one argument.
func (j *Job) HostList() (length int, fit int32) {
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
		if length += rest + len(strconv.Itoa(int(i))); length <= LongestArgument {
			fit++
		}
	}
	return length, fit
}

// BPSLaunch makes a process of each role of BytePS, which it reads from DMLC_ROLE: the workers' programs, one for each
// accelerator, or a server, or the scheduler (bytedance/byteps, launcher/launch.py).
const BPSLaunch = "bpslaunch"

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

// HostLauncher finds programs that start processes on other hosts, in words and in what a shell is to run.
var HostLauncher = lazy.Regexp(`(?:^|[\s;&|("'/])(horovodrun|mpirun|mpiexec)(?:$|[\s;&|)"'])`)

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

// Listening are the ports on which a job's workers listen by themselves, and the fields that set them.
func (s *Spec) Listening() (ports []int32, fields []string) {
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

// MPILine says whether the command of a job of framework mpi is a launcher's whole line.
func (s *Spec) MPILine() bool { return s.Framework == FrameworkMPI && s.MPI.Launch == LaunchCommand }

// ImageSSH says whether the workers run an sshd that their image has set up, with keys of the MPI operator's.
func (s *Spec) ImageSSH() bool { return s.SSH.Server == SSHImage }

// KeysPath is where the operator mounts these keys.
func (s *Spec) KeysPath() string {
	if s.SSH.KeysPath == "" {
		return RootKeys
	}
	return s.SSH.KeysPath
}

// RootKeys is the operator's default (setDefaults in pkg/apis/kubeflow/v2beta1/default.go).
const RootKeys = "/root/.ssh"
