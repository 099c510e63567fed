package generators

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

// sshJob is one Indexed Job: every pod runs sshd, and that of index 0 the launcher beside it, since its
// accelerators train like the others'.
func sshJob(j *job.Job) []runtime.Object {
	return []runtime.Object{hashed(j, workerName(j), func(name string) *batchv1.Job {
		return workerJob(j, name, sshTemplate(j, name))
	})}
}

// sshJobName is the name of that Job, with which its pods' names start.
func sshJobName(j *job.Job) string {
	if !j.Spec.HashedNames || j.Spec.Target != job.TargetJob {
		return workerName(j)
	}
	return sshJob(j)[0].(*batchv1.Job).Name
}

// sshTemplate is the same for all pods: the script tells them apart by their index.
func sshTemplate(j *job.Job, name string) corev1.PodTemplateSpec {
	hosts := sshHosts(j, name)
	spec := workerPodSpec(j)
	spec.env = append(byteSchedulerEnv(j, hosts[0]), mpiEnv(j)...)
	if !j.Spec.OverSSH() {
		call := launchCall(j, []string{"localhost"})
		spec.command, spec.args = call[:1], call[1:]
		spec.ports = byteSchedulerPorts(j)
		return workerTemplate(j, spec)
	}
	spec.command = []string{"sh", sshDir + "/worker.sh"}
	spec.args = launchCall(j, hosts)
	spec.env = append(append(append(sshEnv(j), launchEnv(j)...), launcherVariables(j)...), spec.env...)
	spec.ports = append([]corev1.ContainerPort{sshPort(j)}, byteSchedulerPorts(j)...)
	template := withSSH(j, name, workerTemplate(j, spec))
	template.Spec.Containers[0].ReadinessProbe = sshReady()
	template.Spec.DNSConfig = mpiDNS(j)
	return template
}

// sshHosts are the names of all pods that there may be, by the name of what makes them.
func sshHosts(j *job.Job, name string) []string {
	out := make([]string, j.Spec.Workers.Max)
	for i := range out {
		host := fmt.Sprintf("%s-%d", name, i)
		if j.Spec.Target == job.TargetMPIJob {
			// As the operator's host file has it.
			out[i] = host + "." + j.Metadata.Name + "." + j.Metadata.Namespace + ".svc"
		} else {
			out[i] = inService(j, host, workerName(j))
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
func launchedProgram(j *job.Job) []string {
	command, args := pythonWords(j)
	return append(append([]string{}, command...), args...)
}

// sshService names the pods in DNS.
func sshService(j *job.Job) []runtime.Object {
	if !j.Spec.OverSSH() {
		return workerService(j)
	}
	return []runtime.Object{headless(j, workerName(j), componentWorker, selector(j, componentWorker),
		port("ssh", j.Spec.SSH.Port))}
}
