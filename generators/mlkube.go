package generators

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

// mxJobMlkube is a job of MXNet's first operator, which makes a Job for each pod and a Service for the scheduler's. It
// gives containers their first five variables by number, so that they must come without any
// (deepinsight/mxnet-operator, branch 1.7, pkg/trainer/replicas.go).
func mxJobMlkube(job *schema.Job) []runtime.Object {
	m := workloadMeta(job, job.Metadata.Name, componentWorker)
	spec := apis.MxJobSpec{RuntimeID: runtimeID(job), JobMode: job.Spec.MXNet.Mode}
	var pods []corev1.PodSpec
	for _, r := range psRoles(job) {
		pod := psPodSpec(job, r.component)
		pod.bare = true
		template := mxnetTemplate(job, pod)
		// It learns of a failure from the restarted container.
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		replicas := apis.MxReplicaSpec{
			MxReplicaType: strings.ToUpper(r.component), Replicas: &r.replicas,
			Template: &template,
		}
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
