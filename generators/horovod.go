package generators

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema"
)

// horovodJob is one Indexed Job: every pod runs sshd, and that of index 0 the launcher beside it, since its
// accelerators train like the others'.
func horovodJob(job *schema.Job) []runtime.Object {
	return []runtime.Object{hashed(job, workerName(job), func(name string) *batchv1.Job {
		return workerJob(job, name, horovodTemplate(job, name))
	}, jobImmutable)}
}

// horovodJobName is the name of that Job, with which its pods' names start.
func horovodJobName(job *schema.Job) string {
	if !job.Spec.HashedNames || job.Spec.Target != schema.TargetJob {
		return workerName(job)
	}
	return horovodJob(job)[0].(*batchv1.Job).Name
}

// horovodTemplate is the same for all pods: the script tells them apart by their index.
func horovodTemplate(job *schema.Job, name string) corev1.PodTemplateSpec {
	hosts := horovodHosts(job, name)
	spec := workerPodSpec(job)
	spec.env = byteSchedulerEnv(job, hosts[0])
	if !job.Spec.OverSSH() {
		spec.command, spec.args = []string{"horovodrun"}, horovodrun(job, []string{"localhost"})
		spec.ports = byteSchedulerPorts(job)
		return workerTemplate(job, spec)
	}
	spec.command = []string{"sh", sshDir + "/worker.sh"}
	spec.args = append([]string{"horovodrun"}, horovodrun(job, hosts)...)
	spec.env = append(append(append(sshEnv(job), launchEnv(job)...), launcherVariables(job)...), spec.env...)
	spec.ports = append([]corev1.ContainerPort{sshPort(job)}, byteSchedulerPorts(job)...)
	template := withSSH(job, name, workerTemplate(job, spec))
	template.Spec.Containers[0].ReadinessProbe = sshReady()
	return template
}

// horovodHosts are the names of all pods that there may be, by the name of what makes them.
func horovodHosts(job *schema.Job, name string) []string {
	out := make([]string, job.Spec.Workers.Max)
	for i := range out {
		host := fmt.Sprintf("%s-%d", name, i)
		if job.Spec.Target == schema.TargetMPIJob {
			// As the operator's host file has it.
			out[i] = host + "." + job.Metadata.Name + "." + job.Metadata.Namespace + ".svc"
		} else {
			out[i] = inService(job, host, workerName(job))
		}
	}
	return out
}

// horovodrun is its arguments, the program's among them (horovod/runner/launch.py).
func horovodrun(job *schema.Job, hosts []string) []string {
	h, w, slots := &job.Spec.Horovod, &job.Spec.Workers, job.Spec.Slots()
	processes := func(hosts int32) string { return strconv.FormatInt(int64(hosts)*slots, 10) }
	args := []string{"-np", processes(w.Min)} // of an elastic job, those without which it does not start
	if job.Spec.OverSSH() {
		args = append(args, "-p", strconv.Itoa(int(job.Spec.SSH.Port)))
	}
	switch {
	case job.Spec.Elastic():
		args = append(args,
			"--min-np", processes(w.Min), "--max-np", processes(w.Max),
			"--host-discovery-script", sshDir+"/discover.sh", "--slots-per-host", strconv.FormatInt(slots, 10),
			"--elastic-timeout", strconv.FormatInt(seconds(h.ElasticTimeout), 10),
			// A worker that is made again has the name of the one that failed.
			"--blacklist-cooldown-range", "30", "300")
		if h.ResetLimit > 0 {
			args = append(args, "--reset-limit", strconv.Itoa(int(h.ResetLimit)))
		}
	case job.Spec.Framework == schema.FrameworkByteScheduler, !job.Spec.OverSSH():
		args = append(args, "-H", hostList(hosts, slots)) // Horovod 0.16 reads no file
	default:
		args = append(args, "--hostfile", hostfilePath(job))
	}
	if job.Spec.Framework == schema.FrameworkHorovod { // ByteScheduler's, 0.16.1, has none of these
		args = append(args, "--start-timeout", strconv.FormatInt(seconds(h.StartTimeout), 10), "--"+h.Controller)
		if i := job.Spec.Network.Interface; i != "" {
			args = append(args, "--network-interfaces", i)
		}
	}
	return append(args, horovodProgram(job)...)
}

// launcherVariables is what horovodrun and the mpirun that it becomes read from the environment.
//
// mpirun cuts a host's name at its first dot before it dials, and the first part of a pod's name does not resolve; that
// of Open MPI 5 dials the whole name, and then misses the host's slots. horovodrun, from 0.16.1 to 0.28.1, has no
// option against it (horovod/runner/mpi_run.py). Open MPI up to 4 reads the one variable, and 5 the other
// (src/util/proc_info.c in PRRTE).
func launcherVariables(job *schema.Job) (env []corev1.EnvVar) {
	if job.Spec.Framework == schema.FrameworkByteScheduler {
		// The option has two names, --horovod-start-timeout in 0.16.1 and --start-timeout since; the variable has one.
		env = append(env, corev1.EnvVar{
			Name:  schema.HorovodStartTimeout,
			Value: strconv.FormatInt(seconds(job.Spec.Horovod.StartTimeout), 10),
		})
	}
	if !job.Spec.Mpirun() {
		return env
	}
	if job.Spec.Target != schema.TargetMPIJob { // whose operator adds it
		env = append(env, corev1.EnvVar{Name: schema.KeepHostNames4, Value: "1"})
	}
	return append(env, corev1.EnvVar{Name: schema.KeepHostNames5, Value: "1"})
}

// hostList is host:slots of each, as -H takes it.
func hostList(hosts []string, slots int64) string {
	out := make([]string, len(hosts))
	for i, host := range hosts {
		out[i] = fmt.Sprintf("%s:%d", host, slots)
	}
	return strings.Join(out, ",")
}

// horovodProgram is what each process runs.
func horovodProgram(job *schema.Job) []string {
	command, args := pythonWords(job)
	return append(append([]string{}, command...), args...)
}

// horovodService names the pods in DNS.
func horovodService(job *schema.Job) []runtime.Object {
	if !job.Spec.OverSSH() {
		return workerService(job)
	}
	return []runtime.Object{headless(job, workerName(job), componentWorker, selector(job, componentWorker),
		port("ssh", job.Spec.SSH.Port))}
}
