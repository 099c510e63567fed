package generators

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// imageMPIJob leaves to the image what mpiJob sets up of ssh: the MPI operator mounts its keys where the image looks
// for them, and the launcher's line is the author's.
func imageMPIJob(j *job.Job, spec *apis.MPIJobSpec) {
	launcher, worker := spec.MPIReplicaSpecs[apis.MPILauncher], spec.MPIReplicaSpecs[apis.MPIWorker]
	launcher.RestartPolicy = cmp.Or(j.Spec.MPI.LauncherRestart, launcher.RestartPolicy)
	worker.RestartPolicy = cmp.Or(j.Spec.SSH.Restart, worker.RestartPolicy)
	spec.MPIReplicaSpecs[apis.MPILauncher], spec.MPIReplicaSpecs[apis.MPIWorker] = launcher, worker
	spec.SSHAuthMountPath = j.Spec.KeysPath()
	if j.Spec.MPI.LauncherWorks {
		spec.RunLauncherAsWorker = ptr(true)
	}
	if j.Spec.MPI.LauncherStart == job.LauncherTogether {
		spec.LauncherCreationPolicy = "AtStartup"
	}
}

// imageWorker runs sshd, which the operator does by itself where the author says nothing. It has no variables: sshd
// hands none on to what it starts.
func imageWorker(j *job.Job) corev1.PodTemplateSpec {
	spec := workerPodSpec(j)
	spec.command, spec.args = j.Spec.SSH.Command, j.Spec.SSH.Args
	spec.bare = true
	template := workerTemplate(j, spec)
	if j.Spec.Security.Restricted {
		// The one that restricted pods may have. The operator's base image has given it to sshd's file (build/base of
		// mpi-operator), which the kernel starts for nobody who could not have it.
		rights := template.Spec.Containers[0].SecurityContext.Capabilities
		rights.Add = append(rights.Add, "NET_BIND_SERVICE")
	}
	return template
}

// imageLauncher runs the author's line, whose mpirun hands variables of the launcher on.
func imageLauncher(j *job.Job) corev1.PodTemplateSpec {
	spec := podSpecOf(j, componentLauncher)
	spec.command, spec.args = pythonWords(j)
	return workerTemplate(j, spec)
}

// onlyLaunches says whether the pods of a role start what runs in others, and have none of their volumes.
func onlyLaunches(j *job.Job, component string) bool {
	return j.Spec.ImageSSH() && component == componentLauncher
}
