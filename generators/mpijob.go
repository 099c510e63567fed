package generators

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

// mpiJob is the MPI operator's MPIJob. The operator makes the keys, the host file and the Service, and a launcher in a
// Job of its own.
func mpiJob(job *schema.Job) []runtime.Object {
	worker, launcher := patched(job, componentWorker, mpiWorker(job)), patched(job, componentLauncher, mpiLauncher(job))
	spec := apis.MPIJobSpec{
		SlotsPerWorker:         ptr(int32(job.Spec.Slots())),
		LauncherCreationPolicy: launcherCreation(job),
		MPIImplementation:      mpiImplementation[job.Spec.MPI.Implementation],
		SSHAuthMountPath:       keysDir,
		RunPolicy: apis.RunPolicy{
			CleanPodPolicy:          cleanPods(job),
			TTLSecondsAfterFinished: expiry(job),
			ActiveDeadlineSeconds:   deadline(job),
			BackoffLimit:            job.Spec.Failure.Restarts.OrNil(),
			Suspend:                 suspended(job),
			ManagedBy:               managedBy(job),
			SchedulingPolicy:        mpiScheduling(job),
		},
		MPIReplicaSpecs: map[string]apis.ReplicaSpec{
			// A pod a try keeps its logs.
			apis.MPILauncher: {
				Replicas: ptr[int32](1), RestartPolicy: string(corev1.RestartPolicyNever),
				Template: launcher,
			},
			apis.MPIWorker: {
				Replicas:      &job.Spec.Workers.Replicas,
				RestartPolicy: string(corev1.RestartPolicyOnFailure), Template: worker,
			},
		},
	}
	if job.Spec.ImageSSH() {
		imageMPIJob(job, &spec)
	}
	m := workloadMeta(job, job.Metadata.Name, componentWorker)
	expect(job, &m, launcher.Spec, worker.Spec)
	return []runtime.Object{apis.New(apis.MPIJobKind, m, spec)}
}

// mpiImplementation are the API's words; Open MPI is its default.
var mpiImplementation = map[string]string{schema.MPIIntel: "Intel", schema.MPICH: "MPICH"}

// mpiWorker only serves.
func mpiWorker(job *schema.Job) corev1.PodTemplateSpec {
	if job.Spec.ImageSSH() {
		return imageWorker(job)
	}
	spec := workerPodSpec(job)
	spec.command = []string{"sh", sshDir + "/worker.sh"}
	spec.env = sshEnv(job)
	spec.ports = append([]corev1.ContainerPort{sshPort(job)}, byteSchedulerPorts(job)...)
	template := withSSH(job, workerName(job), workerTemplate(job, spec))
	template.Spec.Containers[0].ReadinessProbe = sshReady()
	template.Spec.DNSConfig = mpiDNS(job)
	return template
}

// mpiLauncher holds no accelerator. A launcher hands its own environment on to the processes, so it has the workers'.
func mpiLauncher(job *schema.Job) corev1.PodTemplateSpec {
	if job.Spec.ImageSSH() {
		return imageLauncher(job)
	}
	hosts := sshHosts(job, workerName(job))
	spec := podSpecOf(job, componentLauncher)
	spec.command = []string{"sh", sshDir + "/launcher.sh"}
	spec.args = launchCall(job, hosts)
	spec.env = append(append(append(sshEnv(job), launchEnv(job)...), launcherVariables(job)...),
		append(byteSchedulerEnv(job, hosts[0]), mpiEnv(job)...)...)
	return withSSH(job, workerName(job), workerTemplate(job, spec))
}

// launcherCreation is when the launcher is made: a member of a gang with the others, or the gang would wait for it, and
// it for the gang. It waits for workers itself, too: an MPIJob that was suspended has a launcher before it has workers.
func launcherCreation(job *schema.Job) string {
	if job.Spec.Gang.Active() {
		return "AtStartup"
	}
	return "WaitForWorkersReady"
}

// mpiScheduling is what the operator makes the PodGroup of; nil where it makes none.
func mpiScheduling(job *schema.Job) *apis.SchedulingPolicy {
	if !job.Spec.MakesPodGroup() {
		return nil
	}
	g := job.Spec.Gang
	p := &apis.SchedulingPolicy{
		MinAvailable: ptr(gangSum(job, roles(job))), Queue: g.Queue,
		PriorityClass: job.Spec.PodPriority(),
	}
	if g.Is(schema.GangCoscheduling) {
		p.ScheduleTimeoutSeconds = ptr(int32(seconds(g.WaitTimeout)))
		// The operator's own sum would have coscheduling refuse the gang before it looks at nodes, and what it refuses
		// so is not tried again for a new node, but five minutes later.
		p.MinResources = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(*p.MinAvailable),
			resource.DecimalSI)}
	}
	return p
}

// isMPIService: the operator makes one Service, for the launcher and the workers.
func isMPIService(job *schema.Job, name string) bool { return name == job.Metadata.Name }

func launcherAndWorkers(job *schema.Job) []role {
	return append([]role{{componentLauncher, 1, 1}}, workersOnly(job)...)
}
