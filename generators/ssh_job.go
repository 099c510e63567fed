package generators

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema"
)

// sshJob is one Indexed Job: every pod runs sshd, and that of index 0 the launcher beside it, since its
// accelerators train like the others'.
func sshJob(job *schema.Job) []runtime.Object {
	return []runtime.Object{hashed(job, workerName(job), func(name string) *batchv1.Job {
		return workerJob(job, name, sshTemplate(job, name))
	})}
}

// sshJobName is the name of that Job, with which its pods' names start.
func sshJobName(job *schema.Job) string {
	if !job.Spec.HashedNames || job.Spec.Target != schema.TargetJob {
		return workerName(job)
	}
	return sshJob(job)[0].(*batchv1.Job).Name
}

// sshTemplate is the same for all pods: the script tells them apart by their index.
func sshTemplate(job *schema.Job, name string) corev1.PodTemplateSpec {
	hosts := sshHosts(job, name)
	spec := workerPodSpec(job)
	spec.env = append(byteSchedulerEnv(job, hosts[0]), mpiEnv(job)...)
	if !job.Spec.OverSSH() {
		call := launchCall(job, []string{"localhost"})
		spec.command, spec.args = call[:1], call[1:]
		spec.ports = byteSchedulerPorts(job)
		return workerTemplate(job, spec)
	}
	spec.command = []string{"sh", sshDir + "/worker.sh"}
	spec.args = launchCall(job, hosts)
	spec.env = append(append(append(sshEnv(job), launchEnv(job)...), launcherVariables(job)...), spec.env...)
	spec.ports = append([]corev1.ContainerPort{sshPort(job)}, byteSchedulerPorts(job)...)
	template := withSSH(job, name, workerTemplate(job, spec))
	template.Spec.Containers[0].ReadinessProbe = sshReady()
	template.Spec.DNSConfig = mpiDNS(job)
	return template
}

// sshHosts are the names of all pods that there may be, by the name of what makes them.
func sshHosts(job *schema.Job, name string) []string {
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

// hostList is host:slots of each, as -H takes it.
func hostList(hosts []string, slots int64) string {
	out := make([]string, len(hosts))
	for i, host := range hosts {
		out[i] = fmt.Sprintf("%s:%d", host, slots)
	}
	return strings.Join(out, ",")
}

// launchedProgram is what each process runs.
func launchedProgram(job *schema.Job) []string {
	command, args := pythonWords(job)
	return append(append([]string{}, command...), args...)
}

// sshService names the pods in DNS.
func sshService(job *schema.Job) []runtime.Object {
	if !job.Spec.OverSSH() {
		return workerService(job)
	}
	return []runtime.Object{headless(job, workerName(job), componentWorker, selector(job, componentWorker),
		port("ssh", job.Spec.SSH.Port))}
}
