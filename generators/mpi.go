package generators

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema"
)

// launchCall is what starts the processes: horovodrun, mpirun, or the author's own line.
func launchCall(job *schema.Job, hosts []string) []string {
	switch {
	case job.Spec.MPILine():
		return launchedProgram(job)
	case job.Spec.Framework == schema.FrameworkMPI:
		return mpirun(job)
	}
	return append([]string{"horovodrun"}, horovodrun(job, hosts)...)
}

// mpirun is its call, the program's words among it. ssh has port and keys from its configuration, so that neither
// Open MPI's plm_rsh_args nor its new name of PRRTE's is needed, nor the variables that hydra has for that.
func mpirun(job *schema.Job) []string {
	m, slots := &job.Spec.MPI, job.Spec.Slots()
	call := "mpirun"
	if m.Prefix != "" { // from where Open MPI and hydra start their helpers on the other hosts, too
		call = strings.TrimSuffix(m.Prefix, "/") + "/bin/mpirun"
	}
	words := []string{call}
	switch open := m.Implementation == schema.MPIOpen; {
	case open && !job.Spec.OverSSH():
		words = append(words, "-H", hostList([]string{"localhost"}, slots))
	case open:
		words = append(words, "--hostfile", hostfilePath(job))
	case job.Spec.OverSSH():
		words = append(words, "-f", hostfilePath(job))
	}
	words = append(words, "-np", strconv.FormatInt(int64(job.Spec.Workers.Replicas)*slots, 10))
	switch m.Implementation {
	case schema.MPIOpen:
		// Open MPI counts the cores of the node, of which the pod has a share and other pods the rest.
		if !slices.ContainsFunc(m.Options, bindsTo) {
			words = append(words, "--bind-to", "none")
		}
	case schema.MPIIntel: // which reads no slots from a file of hosts
		words = append(words, "-ppn", strconv.FormatInt(slots, 10))
	case schema.MPICH: // hydra would put the launcher's variables over those of each pod
		if !slices.ContainsFunc(m.Options, sharesEnv) {
			words = append(words, "-genvnone")
		}
	}
	return append(append(words, m.Options...), launchedProgram(job)...)
}

func bindsTo(option string) bool {
	return strings.TrimLeft(option, "-") == "bind-to" && strings.HasPrefix(option, "-")
}

func sharesEnv(option string) bool {
	return slices.Contains([]string{"genvall", "genvlist", "genvnone"}, strings.TrimLeft(option, "-"))
}

// mpiEnv is what the MPI of framework mpi reads from the environment, whoever calls its mpirun; an author's own value
// wins.
func mpiEnv(job *schema.Job) (env []corev1.EnvVar) {
	if job.Spec.Framework != schema.FrameworkMPI {
		return nil
	}
	add := func(value string, names ...string) {
		for _, name := range names {
			if value != "" && !slices.ContainsFunc(job.Spec.Env, func(e schema.Env) bool { return e.Name == name }) {
				env = append(env, corev1.EnvVar{Name: name, Value: value})
			}
		}
	}
	i := job.Spec.Network.Interface
	switch job.Spec.MPI.Implementation {
	case schema.MPIOpen:
		if job.Spec.Security.RunAsUser.Is(0) { // which it refuses otherwise
			add("1", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
		}
		add(i, "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include")
	case schema.MPIIntel:
		add("off", "I_MPI_PIN") // two pods of a node would get the same cores
		add(i, "I_MPI_HYDRA_IFACE")
	case schema.MPICH:
		add(i, "HYDRA_IFACE")
	}
	return env
}

// mpiDNS lets pods find the launcher by the first part of its name, by which the proxies of hydra dial it. The MPI
// operator does it for clusters of the domain cluster.local.
func mpiDNS(job *schema.Job) *corev1.PodDNSConfig {
	s := &job.Spec
	byOperator := s.Target == schema.TargetMPIJob
	if s.Framework != schema.FrameworkMPI || s.MPI.Implementation == schema.MPIOpen ||
		byOperator && s.Network.ClusterDomain == "cluster.local" {
		return nil
	}
	service := workerName(job)
	if byOperator {
		service = job.Metadata.Name
	}
	return &corev1.PodDNSConfig{Searches: []string{strings.TrimPrefix(inService(job, "", service), ".")}}
}
