package generators

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// mpiJob is the MPI operator's MPIJob. The operator makes the keys, the host file and the Service, and a launcher in a
// Job of its own.
func mpiJob(j *job.Job) []runtime.Object {
	worker, launcher := patched(j, componentWorker, mpiWorker(j)), patched(j, componentLauncher, mpiLauncher(j))
	spec := apis.MPIJobSpec{
		SlotsPerWorker:         ptr(int32(j.Spec.Slots())),
		LauncherCreationPolicy: launcherCreation(j),
		MPIImplementation:      mpiImplementation[j.Spec.MPI.Implementation],
		SSHAuthMountPath:       keysDir,
		RunPolicy: apis.RunPolicy{
			CleanPodPolicy:          cleanPods(j),
			TTLSecondsAfterFinished: expiry(j),
			ActiveDeadlineSeconds:   deadline(j),
			BackoffLimit:            j.Spec.Failure.Restarts.OrNil(),
			Suspend:                 suspended(j),
			ManagedBy:               managedBy(j),
			SchedulingPolicy:        mpiScheduling(j),
		},
		MPIReplicaSpecs: map[string]apis.ReplicaSpec{
			// A pod a try keeps its logs.
			apis.MPILauncher: {
				Replicas: ptr[int32](1), RestartPolicy: string(corev1.RestartPolicyNever),
				Template: launcher,
			},
			apis.MPIWorker: {
				Replicas:      &j.Spec.Workers.Replicas,
				RestartPolicy: string(corev1.RestartPolicyOnFailure), Template: worker,
			},
		},
	}
	if j.Spec.ImageSSH() {
		imageMPIJob(j, &spec)
	}
	m := workloadMeta(j, j.Metadata.Name, componentWorker)
	expect(j, &m, launcher.Spec, worker.Spec)
	return []runtime.Object{apis.New(apis.MPIJobKind, m, spec)}
}

// mpiImplementation are the API's words; Open MPI is its default.
var mpiImplementation = map[string]string{job.MPIIntel: "Intel", job.MPICH: "MPICH"}

// mpiWorker only serves.
func mpiWorker(j *job.Job) corev1.PodTemplateSpec {
	if j.Spec.ImageSSH() {
		return imageWorker(j)
	}
	spec := workerPodSpec(j)
	spec.command = []string{"sh", sshDir + "/worker.sh"}
	spec.env = sshEnv(j)
	spec.ports = append([]corev1.ContainerPort{sshPort(j)}, byteSchedulerPorts(j)...)
	template := withSSH(j, workerName(j), workerTemplate(j, spec))
	template.Spec.Containers[0].ReadinessProbe = sshReady()
	template.Spec.DNSConfig = mpiDNS(j)
	return template
}

// mpiLauncher holds no accelerator. A launcher hands its own environment on to the processes, so it has the workers'.
func mpiLauncher(j *job.Job) corev1.PodTemplateSpec {
	if j.Spec.ImageSSH() {
		return imageLauncher(j)
	}
	hosts := sshHosts(j, workerName(j))
	spec := podSpecOf(j, componentLauncher)
	spec.command = []string{"sh", sshDir + "/launcher.sh"}
	spec.args = launchCall(j, hosts)
	spec.env = append(append(append(sshEnv(j), launchEnv(j)...), launcherVariables(j)...),
		append(byteSchedulerEnv(j, hosts[0]), mpiEnv(j)...)...)
	return withSSH(j, workerName(j), workerTemplate(j, spec))
}

// launcherCreation is when the launcher is made: a member of a gang with the others, or the gang would wait for it, and
// it for the gang. It waits for workers itself, too: an MPIJob that was suspended has a launcher before it has workers.
func launcherCreation(j *job.Job) string {
	if j.Spec.Gang.Active() {
		return "AtStartup"
	}
	return "WaitForWorkersReady"
}

// mpiScheduling is what the operator makes the PodGroup of; nil where it makes none.
func mpiScheduling(j *job.Job) *apis.SchedulingPolicy {
	if !j.Spec.MakesPodGroup() {
		return nil
	}
	g := j.Spec.Gang
	p := &apis.SchedulingPolicy{
		MinAvailable: ptr(gangSum(j, roles(j))), Queue: g.Queue,
		PriorityClass: j.Spec.PodPriority(),
	}
	if g.Is(job.GangCoscheduling) {
		p.ScheduleTimeoutSeconds = ptr(int32(seconds(g.WaitTimeout)))
		// The operator's own sum would have coscheduling refuse the gang before it looks at nodes, and what it refuses
		// so is not tried again for a new node, but five minutes later.
		p.MinResources = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(*p.MinAvailable),
			resource.DecimalSI)}
	}
	return p
}

// isMPIService: the operator makes one Service, for the launcher and the workers.
func isMPIService(j *job.Job, name string) bool { return name == j.Metadata.Name }

func launcherAndWorkers(j *job.Job) []role {
	return append([]role{{componentLauncher, 1, 1}}, workersOnly(j)...)
}
