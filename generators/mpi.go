package generators

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// launchCall is what starts the processes: horovodrun, mpirun, or the author's own line.
func launchCall(j *job.Job, hosts []string) []string {
	switch {
	case j.Spec.MPILine():
		return launchedProgram(j)
	case j.Spec.Framework == job.FrameworkMPI:
		return mpirun(j)
	}
	return append([]string{"horovodrun"}, horovodrun(j, hosts)...)
}

// mpirun is its call, the program's words among it. ssh has port and keys from its configuration, so that neither
// Open MPI's plm_rsh_args nor its new name of PRRTE's is needed, nor the variables that hydra has for that.
func mpirun(j *job.Job) []string {
	m, slots := &j.Spec.MPI, j.Spec.Slots()
	call := "mpirun"
	if m.Prefix != "" { // from where Open MPI and hydra start their helpers on the other hosts, too
		call = strings.TrimSuffix(m.Prefix, "/") + "/bin/mpirun"
	}
	words := []string{call}
	switch open := m.Implementation == job.MPIOpen; {
	case open && !j.Spec.OverSSH():
		words = append(words, "-H", hostList([]string{"localhost"}, slots))
	case open:
		words = append(words, "--hostfile", hostfilePath(j))
	case j.Spec.OverSSH():
		words = append(words, "-f", hostfilePath(j))
	}
	words = append(words, "-np", strconv.FormatInt(int64(j.Spec.Workers.Replicas)*slots, 10))
	switch m.Implementation {
	case job.MPIOpen:
		// Open MPI counts the cores of the node, of which the pod has a share and other pods the rest.
		if !slices.ContainsFunc(m.Options, bindsTo) {
			words = append(words, "--bind-to", "none")
		}
	case job.MPIIntel: // which reads no slots from a file of hosts
		words = append(words, "-ppn", strconv.FormatInt(slots, 10))
	case job.MPICH: // hydra would put the launcher's variables over those of each pod
		if !slices.ContainsFunc(m.Options, sharesEnv) {
			words = append(words, "-genvnone")
		}
	}
	return append(append(words, m.Options...), launchedProgram(j)...)
}

func bindsTo(option string) bool {
	return strings.TrimLeft(option, "-") == "bind-to" && strings.HasPrefix(option, "-")
}

func sharesEnv(option string) bool {
	return slices.Contains([]string{"genvall", "genvlist", "genvnone"}, strings.TrimLeft(option, "-"))
}

// mpiEnv is what the MPI of framework mpi reads from the environment, whoever calls its mpirun; an author's own value
// wins.
func mpiEnv(j *job.Job) (env []corev1.EnvVar) {
	if j.Spec.Framework != job.FrameworkMPI {
		return nil
	}
	add := func(value string, names ...string) {
		for _, name := range names {
			if value != "" && !slices.ContainsFunc(j.Spec.Env, func(e job.Env) bool { return e.Name == name }) {
				env = append(env, corev1.EnvVar{Name: name, Value: value})
			}
		}
	}
	i := j.Spec.Network.Interface
	switch j.Spec.MPI.Implementation {
	case job.MPIOpen:
		if j.Spec.Security.RunAsUser.Is(0) { // which it refuses otherwise
			add("1", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
		}
		add(i, "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include")
	case job.MPIIntel:
		add("off", "I_MPI_PIN") // two pods of a node would get the same cores
		add(i, "I_MPI_HYDRA_IFACE")
	case job.MPICH:
		add(i, "HYDRA_IFACE")
	}
	return env
}

// mpiDNS lets pods find the launcher by the first part of its name, by which the proxies of hydra dial it. The MPI
// operator does it for clusters of the domain cluster.local.
func mpiDNS(j *job.Job) *corev1.PodDNSConfig {
	s := &j.Spec
	byOperator := s.Target == job.TargetMPIJob
	if s.Framework != job.FrameworkMPI || s.MPI.Implementation == job.MPIOpen ||
		byOperator && s.Network.ClusterDomain == "cluster.local" {
		return nil
	}
	service := workerName(j)
	if byOperator {
		service = j.Metadata.Name
	}
	return &corev1.PodDNSConfig{Searches: []string{strings.TrimPrefix(inService(j, "", service), ".")}}
}
