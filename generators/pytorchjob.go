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
	"github.com/tegen-dev/tegen/schema/job"
)

// pyTorchJob is the job of Kubeflow's training operator, which makes pods and Services <job>-worker-<i> and sets
// torchrun's variables by itself (kubeflow/trainer release-1.9, pkg/controller.v1/pytorch).
func pyTorchJob(j *job.Job) []runtime.Object {
	spec := workerPodSpec(j)
	spec.command, spec.args = program(j)
	spec.env, spec.set = pyTorchEnv(j), []string{"PYTHONUNBUFFERED"}
	if j.Spec.Rendezvous.Store == job.StoreWorker {
		spec.ports = []corev1.ContainerPort{{
			Name: "pytorchjob-port", ContainerPort: c10dPort(j),
			Protocol: corev1.ProtocolTCP,
		}}
	}
	if j.Spec.WithoutRendezvous() {
		spec.ports = nil // the operator adds the port that it tells the workers
	}
	template := patched(j, componentWorker, workerTemplate(j, spec))
	m := workloadMeta(j, j.Metadata.Name, componentWorker)
	if j.Spec.WithoutRendezvous() {
		expect(j, &m, template.Spec)
	} else {
		expect(j, &m, template.Spec, dialling(pyTorchEndpoint(j)))
	}
	return []runtime.Object{apis.New(apis.PyTorchJobKind, m, apis.PyTorchJobSpec{
		RunPolicy: apis.RunPolicy{
			CleanPodPolicy:          cleanPods(j),
			TTLSecondsAfterFinished: expiry(j),
			ActiveDeadlineSeconds:   deadline(j),
			BackoffLimit:            j.Spec.Failure.Restarts.OrNil(),
			SchedulingPolicy:        pyTorchGang(j),
			Suspend:                 suspended(j),
			ManagedBy:               managedBy(j),
		},
		ElasticPolicy:       pyTorchElastic(j),
		PyTorchReplicaSpecs: pyTorchReplicas(j, template),
		NprocPerNode:        j.Spec.Workers.Processes.String(),
	})}
}

// pyTorchReplicas are the workers, of which the first may be the Master.
func pyTorchReplicas(j *job.Job, template corev1.PodTemplateSpec) map[string]apis.ReplicaSpec {
	role := func(replicas int32) apis.ReplicaSpec {
		return apis.ReplicaSpec{
			Replicas: &replicas,
			// Not ExitCode, which ends the job at any code below 128: torchrun exits with 1 whatever happened to its
			// processes.
			RestartPolicy: "OnFailure",
			Template:      template,
		}
	}
	n := j.Spec.Workers.Replicas
	switch {
	case !j.Spec.Workers.Master:
		return map[string]apis.ReplicaSpec{"Worker": role(n)}
	case n == 1:
		return map[string]apis.ReplicaSpec{"Master": role(1)}
	}
	return map[string]apis.ReplicaSpec{"Master": role(1), "Worker": role(n - 1)}
}

// pyTorchElastic is the rendezvous, which becomes PET_ variables; a job that is not elastic has one too.
func pyTorchElastic(j *job.Job) *apis.PyTorchElasticPolicy {
	z, w := &j.Spec.Rendezvous, &j.Spec.Workers
	if j.Spec.WithoutRendezvous() { // a Master's variables are set only where there is no elastic policy
		return nil
	}
	host, text, _ := strings.Cut(pyTorchEndpoint(j), ":")
	number, _ := strconv.ParseInt(text, 10, 32) // schema.Load read it
	policy := &apis.PyTorchElasticPolicy{
		MinReplicas: &w.Min,
		MaxReplicas: &w.Max,
		RDZVBackend: z.Backend,
		RDZVHost:    host,
		RDZVPort:    ptr(int32(number)),
		RDZVID:      fixedRun(j), // without it every job is called none (pytorch#82160)
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
	pairs := confPairs(j)
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		policy.RDZVConf = append(policy.RDZVConf, apis.PyTorchConf{Key: k, Value: pairs[k]})
	}
	return policy
}

// pyTorchEndpoint is what workers dial; worker 0 is known by its own hostname, which is its Service's name too.
func pyTorchEndpoint(j *job.Job) string { return endpoint(j, workerName(j)+"-0") }

// pyTorchEnv is what the operator does not set: it adds PET_ variables behind these.
func pyTorchEnv(j *job.Job) (env []corev1.EnvVar) {
	if j.Spec.WithoutRendezvous() {
		return nil
	}
	env = append(env, ownStore(j)...)
	if j.Spec.Launcher == job.LauncherEntrypoint {
		env = append(env, tutorialEnv(j, pyTorchEndpoint(j), fixedRun(j))...)
	}
	return env
}

// pyTorchGang is what an operator started with --gang-scheduler-name makes its PodGroup of; others ignore it.
func pyTorchGang(j *job.Job) *apis.SchedulingPolicy {
	g := j.Spec.Gang
	if g == nil || g.Scheduler != job.GangVolcano && g.Scheduler != job.GangCoscheduling {
		return nil
	}
	policy := &apis.SchedulingPolicy{
		MinAvailable: &g.MinAvailable, Queue: g.Queue,
		PriorityClass: j.Spec.PodPriority(),
	}
	if g.Scheduler == job.GangCoscheduling {
		policy.ScheduleTimeoutSeconds = ptr(int32(seconds(g.WaitTimeout)))
	}
	return policy
}
