package generators

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// completionIndex is the field of a pod of an Indexed Job that holds its number.
const completionIndex = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

// meetingWorker is a worker that knows the first one's address, at which all of them meet.
func meetingWorker(j *job.Job, first string) rolePodSpec {
	if j.Spec.Framework == job.FrameworkJAX {
		return jaxWorker(j, first)
	}
	return torchWorker(j, first)
}

// jaxWorker is a worker of JAX. The first serves the coordinator.
func jaxWorker(j *job.Job, first string) rolePodSpec {
	spec := workerPodSpec(j)
	spec.command, spec.args = program(j)
	if j.Spec.RanksBySlice() {
		spec.command, spec.args = pythonWords(j)
		spec.command = rankBySlice(j, spec.command)
	}
	spec.env = jaxEnv(j, first)
	spec.ports = []corev1.ContainerPort{{
		Name: "coordinator", ContainerPort: j.Spec.JAX.Port, Protocol: corev1.ProtocolTCP,
	}}
	return spec
}

// jaxEnv tells a process who it is. JAX reads the address itself since 0.3.14; number and count are for the program to
// pass, under the names that Kubeflow Trainer gives them too (v2.3.0, pkg/runtime/framework/plugins/jax/jax.go).
func jaxEnv(j *job.Job, first string) []corev1.EnvVar {
	env := append(sliceEnv(j), corev1.EnvVar{
		Name: "JAX_COORDINATOR_ADDRESS", Value: fmt.Sprintf("%s:%d", first, j.Spec.JAX.Port),
	})
	count := corev1.EnvVar{Name: "JAX_NUM_PROCESSES", Value: strconv.Itoa(int(j.Spec.Workers.Replicas))}
	switch {
	case j.Spec.RanksBySlice():
		// JAX counts devices of one partition as near to each other; read since 0.7.1
		env = append(env, count, corev1.EnvVar{Name: "JAX_PARTITION_INDEX", ValueFrom: fieldOf(jobIndex)})
	case !j.Spec.Sliced():
		env = append(env, count, corev1.EnvVar{Name: "JAX_PROCESS_ID", ValueFrom: fieldOf(completionIndex)})
	} // of slices of TPUs JAX knows count and number itself
	return append(env, jaxDevices(j)...)
}

// jaxDevices names all accelerators of the worker, as JAX would find them itself. With all four values known it asks no
// cluster for them; asking Kubernetes, where the image has its client for Python, ends in an error, since these pods
// have no token (jax/_src/clusters/k8s_cluster.py). TPUs are found by what GKE sets.
func jaxDevices(j *job.Job) []corev1.EnvVar {
	const name = "JAX_LOCAL_DEVICE_IDS" // read since 0.4.32
	own := slices.ContainsFunc(j.Spec.Env, func(e job.Env) bool { return e.Name == name })
	if own || j.Spec.TPU() {
		return nil
	}
	ids := []string{"0"}
	if r := &j.Spec.Resources; strings.HasSuffix(r.GPUResource, "/gpu") {
		for i := int64(1); i < r.GPU; i++ {
			ids = append(ids, strconv.FormatInt(i, 10))
		}
	}
	return []corev1.EnvVar{{Name: name, Value: strings.Join(ids, ",")}}
}

// fieldOf is a variable's value that is a field of its pod.
func fieldOf(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}
}
