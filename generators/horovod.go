package generators

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// horovodrun is its arguments, the program's among them (horovod/runner/launch.py).
func horovodrun(j *job.Job, hosts []string) []string {
	h, w, slots := &j.Spec.Horovod, &j.Spec.Workers, j.Spec.Slots()
	processes := func(hosts int32) string { return strconv.FormatInt(int64(hosts)*slots, 10) }
	args := []string{"-np", processes(w.Min)} // of an elastic job, those without which it does not start
	if j.Spec.OverSSH() {
		args = append(args, "-p", strconv.Itoa(int(j.Spec.SSH.Port)))
	}
	switch {
	case j.Spec.Elastic():
		args = append(args,
			"--min-np", processes(w.Min), "--max-np", processes(w.Max),
			"--host-discovery-script", sshDir+"/discover.sh", "--slots-per-host", strconv.FormatInt(slots, 10),
			"--elastic-timeout", strconv.FormatInt(seconds(h.ElasticTimeout), 10),
			// A worker that is made again has the name of the one that failed.
			"--blacklist-cooldown-range", "30", "300")
		if h.ResetLimit > 0 {
			args = append(args, "--reset-limit", strconv.Itoa(int(h.ResetLimit)))
		}
	case j.Spec.Framework == job.FrameworkByteScheduler, !j.Spec.OverSSH():
		args = append(args, "-H", hostList(hosts, slots)) // Horovod 0.16 reads no file
	default:
		args = append(args, "--hostfile", hostfilePath(j))
	}
	if j.Spec.Framework == job.FrameworkHorovod { // ByteScheduler's, 0.16.1, has none of these
		args = append(args, "--start-timeout", strconv.FormatInt(seconds(h.StartTimeout), 10), "--"+h.Controller)
		if i := j.Spec.Network.Interface; i != "" {
			args = append(args, "--network-interfaces", i)
		}
	}
	return append(args, launchedProgram(j)...)
}

// launcherVariables is what horovodrun and the mpirun that it becomes read from the environment.
//
// mpirun cuts a host's name at its first dot before it dials, and the first part of a pod's name does not resolve; that
// of Open MPI 5 dials the whole name, and then misses the host's slots. horovodrun, from 0.16.1 to 0.28.1, has no
// option against it (horovod/runner/mpi_run.py). Open MPI up to 4 reads the one variable, and 5 the other
// (src/util/proc_info.c in PRRTE).
func launcherVariables(j *job.Job) (env []corev1.EnvVar) {
	if j.Spec.Framework == job.FrameworkByteScheduler {
		// The option has two names, --horovod-start-timeout in 0.16.1 and --start-timeout since; the variable has one.
		env = append(env, corev1.EnvVar{
			Name:  job.HorovodStartTimeout,
			Value: strconv.FormatInt(seconds(j.Spec.Horovod.StartTimeout), 10),
		})
	}
	if !j.Spec.Mpirun() {
		return env
	}
	if j.Spec.Target != job.TargetMPIJob { // whose operator adds it
		env = append(env, corev1.EnvVar{Name: job.KeepHostNames4, Value: "1"})
	}
	return append(env, corev1.EnvVar{Name: job.KeepHostNames5, Value: "1"})
}
