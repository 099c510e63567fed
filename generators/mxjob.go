package generators

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// mxJob is a job of Kubeflow's operator, which gives each pod a Service of its name and the variables of ps-lite
// (kubeflow/trainer v1.8.1, pkg/controller.v1/mxnet).
func mxJob(j *job.Job) []runtime.Object {
	m := workloadMeta(j, j.Metadata.Name, componentWorker)
	spec := apis.MXJobSpec{
		JobMode: "MXTrain",
		RunPolicy: apis.RunPolicy{
			CleanPodPolicy:          cleanPods(j),
			Suspend:                 suspended(j),
			ActiveDeadlineSeconds:   deadline(j),
			TTLSecondsAfterFinished: expiry(j),
		},
		MXReplicaSpecs: map[string]apis.ReplicaSpec{},
	}
	var pods []corev1.PodSpec
	for _, r := range psRoles(j) {
		pod := psPodSpec(j, r.component)
		if r.component == componentScheduler {
			pod.ports = []corev1.ContainerPort{{
				Name: "mxjob-port", ContainerPort: j.Spec.Servers.Port,
				Protocol: corev1.ProtocolTCP,
			}}
		}
		template := mxnetTemplate(j, pod)
		spec.MXReplicaSpecs[strings.ToUpper(r.component[:1])+r.component[1:]] = apis.ReplicaSpec{
			Replicas:      &r.replicas,
			RestartPolicy: "Never", // see psJobs
			Template:      template,
		}
		pods = append(pods, template.Spec)
	}
	expect(j, &m, pods...)
	return []runtime.Object{apis.New(apis.MXJobKind, m, spec)}
}

// mxnetTemplate is the pod of a role, in which its container has the one name that the operators look for.
func mxnetTemplate(j *job.Job, pod rolePodSpec) corev1.PodTemplateSpec {
	return patched(j, pod.component, workerTemplate(j, pod))
}
