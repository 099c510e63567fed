package generators

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

// imageMPIJob leaves to the image what mpiJob sets up of ssh: the MPI operator mounts its keys where the image looks
// for them, and the launcher's line is the author's.
func imageMPIJob(job *schema.Job, spec *apis.MPIJobSpec) {
	launcher, worker := spec.MPIReplicaSpecs[apis.MPILauncher], spec.MPIReplicaSpecs[apis.MPIWorker]
	launcher.RestartPolicy = cmp.Or(job.Spec.MPI.LauncherRestart, launcher.RestartPolicy)
	worker.RestartPolicy = cmp.Or(job.Spec.SSH.Restart, worker.RestartPolicy)
	spec.MPIReplicaSpecs[apis.MPILauncher], spec.MPIReplicaSpecs[apis.MPIWorker] = launcher, worker
	spec.SSHAuthMountPath = job.Spec.KeysPath()
	if job.Spec.MPI.LauncherWorks {
		spec.RunLauncherAsWorker = ptr(true)
	}
	if job.Spec.MPI.LauncherStart == schema.LauncherTogether {
		spec.LauncherCreationPolicy = "AtStartup"
	}
}

// imageWorker runs sshd, which the operator does by itself where the author says nothing. It has no variables: sshd
// hands none on to what it starts.
func imageWorker(job *schema.Job) corev1.PodTemplateSpec {
	spec := workerPodSpec(job)
	spec.command, spec.args = job.Spec.SSH.Command, job.Spec.SSH.Args
	spec.bare = true
	template := workerTemplate(job, spec)
	if job.Spec.Security.Restricted {
		// The one that restricted pods may have. The operator's base image has given it to sshd's file (build/base of
		// mpi-operator), which the kernel starts for nobody who could not have it.
		rights := template.Spec.Containers[0].SecurityContext.Capabilities
		rights.Add = append(rights.Add, "NET_BIND_SERVICE")
	}
	return template
}

// imageLauncher runs the author's line, whose mpirun hands variables of the launcher on.
func imageLauncher(job *schema.Job) corev1.PodTemplateSpec {
	spec := podSpecOf(job, componentLauncher)
	spec.command, spec.args = pythonWords(job)
	return workerTemplate(job, spec)
}

// onlyLaunches says whether the pods of a role start what runs in others, and have none of their volumes.
func onlyLaunches(job *schema.Job, component string) bool {
	return job.Spec.ImageSSH() && component == componentLauncher
}
