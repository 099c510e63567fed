package generators

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// networksKey is Multus' annotation of the networks that a pod joins beside the cluster's own.
const networksKey = "k8s.v1.cni.cncf.io/networks"

// joinFabric gives a worker what the fabric needs beside its devices and variables: networks, directories of the node,
// and the right to pin memory, which of all processes root's alone make use of.
func joinFabric(j *job.Job, m *metav1.ObjectMeta, pod *corev1.PodSpec) {
	f := j.Fabric()
	if f == nil {
		return
	}
	for k, v := range f.Annotations {
		annotate(m, k, v)
	}
	if networks := j.Networks(); networks != "" {
		annotate(m, networksKey, networks)
	}
	container := &pod.Containers[0]
	for _, at := range slices.Sorted(maps.Keys(f.HostPaths)) {
		name := "fabric-" + strings.ReplaceAll(path.Base(at), ".", "-")
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: f.HostPaths[at]},
		}})
		container.VolumeMounts = append(container.VolumeMounts,
			corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: true})
	}
	if f.LocksMemory() {
		rights := container.SecurityContext
		if rights.Capabilities == nil {
			rights.Capabilities = &corev1.Capabilities{}
		}
		rights.Capabilities.Add = append(rights.Capabilities.Add, "IPC_LOCK")
	}
}

// fabricEnv are the variables of the fabric's libraries, by name. A launcher passes its own on to the processes that it
// starts in workers.
func fabricEnv(j *job.Job, component string) (env []corev1.EnvVar) {
	f := j.Fabric()
	if f == nil || component != componentWorker && component != componentLauncher {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		env = append(env, corev1.EnvVar{Name: name, Value: f.Env[name]})
	}
	return env
}
