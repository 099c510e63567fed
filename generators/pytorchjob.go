package generators

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

// pyTorchJob is the job of Kubeflow's training operator, which makes pods and Services <job>-worker-<i> and sets
// torchrun's variables by itself (kubeflow/trainer release-1.9, pkg/controller.v1/pytorch).
func pyTorchJob(job *schema.Job) []runtime.Object {
	spec := workerPodSpec(job)
	spec.command, spec.args = program(job)
	spec.env, spec.set = pyTorchEnv(job), []string{"PYTHONUNBUFFERED"}
	if job.Spec.Rendezvous.Store == schema.StoreWorker {
		spec.ports = []corev1.ContainerPort{{
			Name: "pytorchjob-port", ContainerPort: c10dPort(job),
			Protocol: corev1.ProtocolTCP,
		}}
	}
	if job.Spec.WithoutRendezvous() {
		spec.ports = nil // the operator adds the port that it tells the workers
	}
	template := patched(job, componentWorker, workerTemplate(job, spec))
	m := workloadMeta(job, job.Metadata.Name, componentWorker)
	if job.Spec.WithoutRendezvous() {
		expect(job, &m, template.Spec)
	} else {
		expect(job, &m, template.Spec, dialling(pyTorchEndpoint(job)))
	}
	return []runtime.Object{apis.New(apis.PyTorchJobKind, m, apis.PyTorchJobSpec{
		RunPolicy: apis.RunPolicy{
			CleanPodPolicy:          cleanPods(job),
			TTLSecondsAfterFinished: expiry(job),
			ActiveDeadlineSeconds:   deadline(job),
			BackoffLimit:            job.Spec.Failure.Restarts.OrNil(),
			SchedulingPolicy:        pyTorchGang(job),
			Suspend:                 suspended(job),
			ManagedBy:               managedBy(job),
		},
		ElasticPolicy:       pyTorchElastic(job),
		PyTorchReplicaSpecs: pyTorchReplicas(job, template),
		NprocPerNode:        job.Spec.Workers.Processes.String(),
	})}
}

// pyTorchReplicas are the workers, of which the first may be the Master.
func pyTorchReplicas(job *schema.Job, template corev1.PodTemplateSpec) map[string]apis.ReplicaSpec {
	role := func(replicas int32) apis.ReplicaSpec {
		return apis.ReplicaSpec{
			Replicas: &replicas,
			// Not ExitCode, which ends the job at any code below 128: torchrun exits with 1 whatever happened to its
			// processes.
			RestartPolicy: "OnFailure",
			Template:      template,
		}
	}
	n := job.Spec.Workers.Replicas
	switch {
	case !job.Spec.Workers.Master:
		return map[string]apis.ReplicaSpec{"Worker": role(n)}
	case n == 1:
		return map[string]apis.ReplicaSpec{"Master": role(1)}
	}
	return map[string]apis.ReplicaSpec{"Master": role(1), "Worker": role(n - 1)}
}

// pyTorchElastic is the rendezvous, which becomes PET_ variables; a job that is not elastic has one too.
func pyTorchElastic(job *schema.Job) *apis.PyTorchElasticPolicy {
	z, w := &job.Spec.Rendezvous, &job.Spec.Workers
	if job.Spec.WithoutRendezvous() { // a Master's variables are set only where there is no elastic policy
		return nil
	}
	host, text, _ := strings.Cut(pyTorchEndpoint(job), ":")
	number, _ := strconv.ParseInt(text, 10, 32) // schema.Load read it
	policy := &apis.PyTorchElasticPolicy{
		MinReplicas: &w.Min,
		MaxReplicas: &w.Max,
		RDZVBackend: z.Backend,
		RDZVHost:    host,
		RDZVPort:    ptr(int32(number)),
		RDZVID:      fixedRun(job), // without it every job is called none (pytorch#82160)
		MaxRestarts: &z.MaxRestarts,
	}
	if a := w.Autoscale; a != nil {
		policy.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &a.CPU,
				},
			},
		}}
	}
	pairs := confPairs(job)
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		policy.RDZVConf = append(policy.RDZVConf, apis.PyTorchConf{Key: k, Value: pairs[k]})
	}
	return policy
}

// pyTorchEndpoint is what workers dial; worker 0 is known by its own hostname, which is its Service's name too.
func pyTorchEndpoint(job *schema.Job) string { return endpoint(job, workerName(job)+"-0") }

// pyTorchEnv is what the operator does not set: it adds PET_ variables behind these.
func pyTorchEnv(job *schema.Job) (env []corev1.EnvVar) {
	if job.Spec.WithoutRendezvous() {
		return nil
	}
	env = append(env, ownStore(job)...)
	if job.Spec.Launcher == schema.LauncherEntrypoint {
		env = append(env, tutorialEnv(job, pyTorchEndpoint(job), fixedRun(job))...)
	}
	return env
}

// pyTorchGang is what an operator started with --gang-scheduler-name makes its PodGroup of; others ignore it.
func pyTorchGang(job *schema.Job) *apis.SchedulingPolicy {
	g := job.Spec.Gang
	if g == nil || g.Scheduler != schema.GangVolcano && g.Scheduler != schema.GangCoscheduling {
		return nil
	}
	policy := &apis.SchedulingPolicy{
		MinAvailable: &g.MinAvailable, Queue: g.Queue,
		PriorityClass: job.Spec.PodPriority(),
	}
	if g.Scheduler == schema.GangCoscheduling {
		policy.ScheduleTimeoutSeconds = ptr(int32(seconds(g.WaitTimeout)))
	}
	return policy
}
