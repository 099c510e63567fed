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
			pod.ports = []corev1.ContainerPort{{
				Name: "mxjob-port", ContainerPort: job.Spec.Servers.Port,
				Protocol: corev1.ProtocolTCP,
			}}
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
