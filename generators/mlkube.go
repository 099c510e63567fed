package generators

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// mxJobMlkube is a job of MXNet's first operator, which makes a Job for each pod and a Service for the scheduler's. It
// gives containers their first five variables by number, so that they must come without any
// (deepinsight/mxnet-operator, branch 1.7, pkg/trainer/replicas.go).
func mxJobMlkube(j *job.Job) []runtime.Object {
	m := workloadMeta(j, j.Metadata.Name, componentWorker)
	spec := apis.MxJobSpec{RuntimeID: runtimeID(j), JobMode: j.Spec.MXNet.Mode}
	var pods []corev1.PodSpec
	for _, r := range psRoles(j) {
		pod := psPodSpec(j, r.component)
		pod.bare = true
		template := mxnetTemplate(j, pod)
		// It learns of a failure from the restarted container.
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		replicas := apis.MxReplicaSpec{
			MxReplicaType: strings.ToUpper(r.component), Replicas: &r.replicas,
			Template: &template,
		}
		if r.component == componentScheduler {
			replicas.PsRootPort = &j.Spec.Servers.Port
		}
		spec.ReplicaSpecs = append(spec.ReplicaSpecs, replicas)
		pods = append(pods, template.Spec)
	}
	expect(j, &m, pods...)
	return []runtime.Object{apis.New(apis.MxJobKind(j.Spec.MXNet.Group), m, spec)}
}

// runtimeID is part of the names of an MxJob's Jobs; left to the operator it would be random.
func runtimeID(j *job.Job) string {
	if id := j.Spec.MXNet.RuntimeID; id != "" {
		return id
	}
	return contentHash(j.Metadata.Namespace, j.Metadata.Name)[:4]
}

func isMlkubeService(j *job.Job, name string) bool {
	return j.Spec.ParameterServers() && name == roleName(j, componentScheduler)+"-"+runtimeID(j)+"-0"
}
