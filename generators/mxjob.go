package generators

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

// mxJob is a job of Kubeflow's operator, which gives each pod a Service of its name and the variables of ps-lite
// (kubeflow/trainer v1.8.1, pkg/controller.v1/mxnet).
func mxJob(job *schema.Job) []runtime.Object {
	m := workloadMeta(job, job.Metadata.Name, componentWorker)
	spec := apis.MXJobSpec{
		JobMode: "MXTrain",
		RunPolicy: apis.RunPolicy{
			CleanPodPolicy:          cleanPods(job),
			Suspend:                 suspended(job),
			ActiveDeadlineSeconds:   deadline(job),
			TTLSecondsAfterFinished: expiry(job),
		},
		MXReplicaSpecs: map[string]apis.ReplicaSpec{},
	}
	var pods []corev1.PodSpec
	for _, r := range psRoles(job) {
		pod := psPodSpec(job, r.component)
		if r.component == componentScheduler {
			pod.ports = []corev1.ContainerPort{{Name: "mxjob-port", ContainerPort: job.Spec.Servers.Port, Protocol: corev1.ProtocolTCP}}
		}
		template := mxnetTemplate(job, pod)
		spec.MXReplicaSpecs[strings.ToUpper(r.component[:1])+r.component[1:]] = apis.ReplicaSpec{
			Replicas:      &r.replicas,
			RestartPolicy: "Never", // see psJobs
			Template:      template,
		}
		pods = append(pods, template.Spec)
	}
	expect(job, &m, pods...)
	return []runtime.Object{apis.New(apis.MXJobKind, m, spec)}
}

// mxnetTemplate is the pod of a role, in which its container has the one name that the operators look for.
func mxnetTemplate(job *schema.Job, pod rolePodSpec) corev1.PodTemplateSpec {
	return patched(job, pod.component, workerTemplate(job, pod))
}

// mxJobMlkube is a job of MXNet's first operator, which makes a Job for each pod and a Service for the scheduler's. It
// gives containers their first five variables by number, so that they must come without any (deepinsight/mxnet-operator,
// branch 1.7, pkg/trainer/replicas.go).
func mxJobMlkube(job *schema.Job) []runtime.Object {
	m := workloadMeta(job, job.Metadata.Name, componentWorker)
	spec := apis.MxJobSpec{RuntimeID: runtimeID(job), JobMode: job.Spec.MXNet.Mode}
	var pods []corev1.PodSpec
	for _, r := range psRoles(job) {
		pod := psPodSpec(job, r.component)
		pod.bare = true
		template := mxnetTemplate(job, pod)
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure // it learns of a failure from the restarted container
		replicas := apis.MxReplicaSpec{MxReplicaType: strings.ToUpper(r.component), Replicas: &r.replicas, Template: &template}
		if r.component == componentScheduler {
			replicas.PsRootPort = &job.Spec.Servers.Port
		}
		spec.ReplicaSpecs = append(spec.ReplicaSpecs, replicas)
		pods = append(pods, template.Spec)
	}
	expect(job, &m, pods...)
	return []runtime.Object{apis.New(apis.MxJobKind(job.Spec.MXNet.Group), m, spec)}
}

// runtimeID is part of the names of an MxJob's Jobs; left to the operator it would be random.
func runtimeID(job *schema.Job) string {
	if id := job.Spec.MXNet.RuntimeID; id != "" {
		return id
	}
	return contentHash(job.Metadata.Namespace, job.Metadata.Name)[:4]
}

func isMlkubeService(job *schema.Job, name string) bool {
	return job.Spec.ParameterServers() && name == roleName(job, componentScheduler)+"-"+runtimeID(job)+"-0"
}
