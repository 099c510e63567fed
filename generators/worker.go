package generators

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

// worker makes the training pods, by the target's means.
func worker(j *job.Job) []runtime.Object { return targetOf(j).workloads(j) }

// rolePodSpec is what sets the pods of one role apart from those of the others.
type rolePodSpec struct {
	component     string
	role          job.Role
	command, args []string
	env           []corev1.EnvVar // the framework's own
	set           []string        // names of variables that a controller adds
	resources     corev1.ResourceRequirements
	ports         []corev1.ContainerPort
	bare          bool // its controller cannot bear any variables
}

// workerPodSpec is a worker without what its framework adds.
func workerPodSpec(j *job.Job) rolePodSpec {
	spec := podSpecOf(j, componentWorker)
	if r := &j.Spec.Resources; r.GPU > 0 && r.DeviceClass == "" {
		// A limit alone: the request follows it.
		spec.resources.Limits[corev1.ResourceName(r.GPUResource)] = quantity(r.GPU)
	}
	for name, q := range j.Spec.Resources.Devices {
		spec.resources.Limits[corev1.ResourceName(name)] = q
	}
	return spec
}

// podSpecOf is a pod of a role with what the job says of that role.
func podSpecOf(j *job.Job, component string) rolePodSpec {
	spec := rolePodSpec{component: component, role: j.Spec.Role(component)}
	spec.resources = asked(&spec.role.Resources)
	return spec
}

// workerTemplate is the pod of a role.
func workerTemplate(j *job.Job, spec rolePodSpec) corev1.PodTemplateSpec {
	m := metav1.ObjectMeta{Labels: podLabels(j, spec.component), Annotations: evictionAnnotations(j)}
	maps.Copy(m.Labels, gangLabels(j))
	for k, v := range gangAnnotations(j, spec.component) {
		annotate(&m, k, v)
	}
	pod := podSpec(j, &spec.role.RolePods)
	pod.SecurityContext = trainingSecurity(&j.Spec.Security)
	place(j, spec, &pod)
	pod.TerminationGracePeriodSeconds = ptr(seconds(j.Spec.GracePeriod))
	pod.ShareProcessNamespace = seesAgent(j, spec.component)
	container := workerContainer(j, spec)
	pod.Volumes, container.VolumeMounts = workerVolumes(j, spec)
	pod.InitContainers = append(initContainers(j, spec.component),
		sidecars(j, spec.component, container.VolumeMounts)...)
	pod.Containers = []corev1.Container{container}
	if spec.component == componentWorker {
		joinFabric(j, &m, &pod)
		claim(j, &pod)
	}
	return corev1.PodTemplateSpec{ObjectMeta: m, Spec: pod}
}

// place says who places the pods of a role, and on which network.
func place(j *job.Job, spec rolePodSpec, pod *corev1.PodSpec) {
	p := &j.Spec.Placement
	pod.SchedulerName = j.Spec.SchedulerName()
	pod.PriorityClassName = j.Spec.PodPriority()
	pod.SchedulingGroup = schedulingGroup(j)
	if p.PreemptionPolicy != "" {
		pod.PreemptionPolicy = ptr(corev1.PreemptionPolicy(p.PreemptionPolicy))
	}
	// The handler of accelerators, which other nodes lack.
	if class := j.Spec.RuntimeClassOf(spec.component); class != "" {
		pod.RuntimeClassName = &class
	}
	if j.Spec.Network.Host {
		pod.HostNetwork = true
		pod.DNSPolicy = corev1.DNSClusterFirstWithHostNet // or the pods' names would not resolve
	}
}

func workerContainer(j *job.Job, spec rolePodSpec) corev1.Container {
	c := corev1.Container{
		Name:            spec.component,
		Image:           spec.role.Image,
		ImagePullPolicy: corev1.PullPolicy(j.Spec.ImagePullPolicy),
		Command:         spec.command,
		Args:            spec.args,
		WorkingDir:      spec.role.WorkingDir,
		Env:             workerEnv(j, spec),
		EnvFrom:         authorEnvFrom(j.Spec.EnvFromOf(spec.component)),
		Ports:           spec.ports,
		Resources:       spec.resources,
		SecurityContext: trainingRights(&j.Spec.Security),
		Lifecycle:       saveHook(j, spec.component),
	}
	if spec.component == componentWorker {
		probe(&c, j.Spec.Probes)
		if m := j.Spec.Metrics; m != nil {
			c.Ports = append(c.Ports, listenPort(j, metricsPort, m.Port))
		}
	}
	return c
}

func trainingRights(s *job.Security) *corev1.SecurityContext {
	if s.Restricted {
		return containerSecurity(s.ReadOnlyRootFilesystem)
	}
	return &corev1.SecurityContext{ReadOnlyRootFilesystem: &s.ReadOnlyRootFilesystem}
}

// workerEnv puts what tegen sets first, so that an author's values may refer to it, and lets an author's HOME win.
func workerEnv(j *job.Job, spec rolePodSpec) []corev1.EnvVar {
	if spec.bare {
		return nil
	}
	env := spec.env
	var own []corev1.EnvVar
	named := map[string]bool{}
	for _, name := range spec.set {
		named[name] = true
	}
	for _, e := range j.Spec.EnvOf(spec.component) {
		named[e.Name] = true
		own = append(own, authorEnv(e))
	}
	add := func(name, value string) {
		if value != "" && !named[name] {
			env = append(env, corev1.EnvVar{Name: name, Value: value})
			named[name] = true
		}
	}
	if j.Spec.Security.RunAsUser.Number != nil && !j.Spec.ImageSSH() {
		add("HOME", "/tmp") // the user has no home; torch and hubs cache there
	}
	add("PYTHONUNBUFFERED", "1")
	add("DIST_BACKEND", j.Spec.Network.Collective)
	add("NCCL_SOCKET_IFNAME", j.Spec.Network.Interface)
	add("GLOO_SOCKET_IFNAME", j.Spec.Network.Interface)
	for _, e := range fabricEnv(j, spec.component) { // after an author's own interface, which wins
		add(e.Name, e.Value)
	}
	if j.Spec.Checkpoint != nil {
		add("CHECKPOINT_DIR", j.Spec.Checkpoint.Path)
	}
	return append(env, own...)
}

func workerVolumes(j *job.Job, spec rolePodSpec) ([]corev1.Volume, []corev1.VolumeMount) {
	volumes, mounts := scratchSpace(j, spec)
	for i := range j.Spec.Storage {
		if onlyLaunches(j, spec.component) {
			break
		}
		v := &j.Spec.Storage[i]
		volumes = append(volumes, mountable(j, v))
		mounts = append(mounts, corev1.VolumeMount{
			Name: v.Name, MountPath: v.MountPath, SubPath: v.SubPath,
			ReadOnly: v.ReadOnly,
		})
	}
	if s := clientSecret(j); s != "" && !isGroup(j, spec.component) {
		volumes = append(volumes, clientVolume(j, s))
		mounts = append(mounts, corev1.VolumeMount{Name: "tls", MountPath: tlsDir, ReadOnly: true})
	}
	if v, m := proxyVolume(j); v != nil && !isGroup(j, spec.component) {
		volumes, mounts = append(volumes, *v), append(mounts, *m)
	}
	if v, m := scriptVolume(j); v != nil {
		volumes, mounts = append(volumes, *v), append(mounts, *m)
	}
	v, m := codeVolumes(j)
	return append(volumes, v...), append(mounts, m...)
}

// scratchSpace is what a pod of a role has at /dev/shm and /tmp, unless the author wants nothing there.
func scratchSpace(j *job.Job, spec rolePodSpec) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	r := &j.Spec.Resources
	if shm := r.Shm.OrNil(); shm != nil && !onlyLaunches(j, spec.component) {
		// Other roles may have less than a worker.
		if memory, limited := spec.resources.Limits[corev1.ResourceMemory]; limited && memory.Cmp(*shm) < 0 {
			shm = &memory
		}
		volumes = append(volumes,
			corev1.Volume{Name: "dshm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				Medium: corev1.StorageMediumMemory, SizeLimit: shm, // counts against the container's memory
			}}})
		mounts = append(mounts, corev1.VolumeMount{Name: "dshm", MountPath: "/dev/shm"})
	}
	if r.Tmp.None || onlyLaunches(j, spec.component) && !j.Spec.Security.ReadOnlyRootFilesystem &&
		!fetchesScript(j) { // who writes elsewhere
		return volumes, mounts
	}
	size := r.Tmp.OrNil()
	if disk, limited := spec.resources.Limits[corev1.ResourceEphemeralStorage]; limited &&
		(size == nil || disk.Cmp(*size) < 0) {
		size = &disk
	}
	return append(volumes, scratchOf("tmp", size)), append(mounts, corev1.VolumeMount{Name: "tmp", MountPath: "/tmp"})
}

// mountable is a volume as a pod names it.
func mountable(j *job.Job, v *job.Storage) corev1.Volume {
	if e := v.EmptyDir; e != nil {
		return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium: corev1.StorageMedium(e.Medium), SizeLimit: e.Size,
		}}}
	}
	return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.ClaimName(j)},
	}}
}

func sorted(codes []int32) []int32 {
	out := slices.Clone(codes)
	slices.Sort(out)
	return out
}

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
