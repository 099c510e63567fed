package generators

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// The label by which Trainer finds the Job of the training pods, and the one by which its tools find runtimes of torch
// (kubeflow/trainer v2.3.0, pkg/constants/constants.go and manifests/base/runtimes).
const (
	trainJobStep      = "trainer.kubeflow.org/trainjob-ancestor-step"
	trainJobFramework = "trainer.kubeflow.org/framework"
)

// torchTrainJob is a TrainJob and the TrainingRuntime that it runs on, which has the pods' template. The runtime comes
// first, since the webhook refuses a TrainJob without one. Its controller makes a JobSet of both, sets torchrun's
// variables to a static rendezvous with node 0, and keeps a copy of the runtime: a TrainJob that exists never changes.
func torchTrainJob(j *job.Job) []runtime.Object {
	return objects(hashedAll(j, func(suffix string) []named {
		name := j.Metadata.Name + suffix
		return []named{trainingRuntime(j, name), trainJob(j, name)}
	})...)
}

func trainJob(j *job.Job, name string) *apis.TrainJob {
	w := &j.Spec.Workers
	spec := apis.TrainJobSpec{
		RuntimeRef: apis.TrainRuntimeRef{
			APIGroup: apis.TrainingRuntimeKind.Group,
			Kind:     apis.TrainingRuntimeKind.Kind, Name: name,
		},
		Trainer:               &apis.Trainer{NumNodes: &w.Replicas},
		Suspend:               suspended(j),
		ManagedBy:             managedBy(j),
		ActiveDeadlineSeconds: deadline(j),
	}
	torch := j.Spec.Framework == job.FrameworkTorchelastic && !j.Spec.Unlaunched()
	if n := w.Processes; n.IntVal > 0 && torch {
		spec.Trainer.NumProcPerNode = &n
	} // left out, Trainer counts accelerators, or CPUs where there are none
	t := apis.New(apis.TrainJobKind, workloadMeta(j, name, componentWorker), spec)
	expectNames(&t.ObjectMeta, expectOfQueue(t.Labels))
	return t
}

// trainingRuntime names Job and container as the controller's torch plugin does when it builds PET_MASTER_ADDR. It has
// no time to live: the controller runs a failed TrainJob again whose JobSet is gone. JAX's variables are our own: the
// controller has a policy for them since v2.2.0 alone, an older API server drops its field without a word, and its port
// cannot be chosen.
func trainingRuntime(j *job.Job, name string) *apis.TrainingRuntime {
	worker, framework := workerPodSpec(j), "torch"
	worker.command, worker.args = program(j)
	policy := &apis.MLPolicy{NumNodes: &j.Spec.Workers.Replicas, Torch: &apis.TorchPolicy{}}
	if j.Spec.Framework == job.FrameworkJAX {
		worker, framework, policy.Torch = jaxWorker(j, inService(j, name+"-node-0-0", name)), "jax", nil
	}
	set := jobSetSpec(replicated("node", workerJobSpec(j, workerTemplate(j, worker))))
	set.ReplicatedJobs[0].Template.Labels = map[string]string{trainJobStep: "trainer"}
	r := apis.New(apis.TrainingRuntimeKind, meta(j, name, componentWorker), apis.TrainingRuntimeSpec{
		MLPolicy:       policy,
		PodGroupPolicy: podGroupPolicy(j),
		Template:       apis.JobSetTemplate{Spec: set},
	})
	if j.Spec.Unlaunched() {
		r.Spec.MLPolicy.Torch = nil
	} else {
		r.Labels[trainJobFramework] = framework
	}
	t := &r.Spec.Template
	t.Metadata.Labels = podLabels(j, componentWorker) // the JobSet's, so that it is found among the job's objects
	if g := j.Spec.Gang; g.Is(job.GangVolcano) && g.Queue != "" {
		annotate(&t.Metadata, "scheduling.volcano.sh/queue-name", g.Queue)
	}
	expect(j, &r.ObjectMeta, t.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec)
	expectNames(&r.ObjectMeta, expectOfVolcano(j))
	return r
}

// podGroupPolicy is the gang in Trainer's form: a PodGroup of all nodes, named after the TrainJob. Other dialects
// stand on the pods.
func podGroupPolicy(j *job.Job) *apis.PodGroupPolicy {
	g := j.Spec.Gang
	switch {
	case g.Is(job.GangCoscheduling):
		return &apis.PodGroupPolicy{Coscheduling: &apis.CoschedulingPolicy{
			ScheduleTimeoutSeconds: int32(seconds(g.WaitTimeout)),
		}}
	case g.Is(job.GangVolcano):
		return &apis.PodGroupPolicy{Volcano: &apis.VolcanoPolicy{NetworkTopology: volcanoTopology(j)}}
	}
	return nil
}
