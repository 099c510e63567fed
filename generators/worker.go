package generators

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema"
)

// worker makes the training pods, by the target's means.
func worker(job *schema.Job) []runtime.Object { return targetOf(job).workloads(job) }

// rolePodSpec is what sets the pods of one role apart from those of the others.
type rolePodSpec struct {
	component     string
	role          schema.Role
	command, args []string
	env           []corev1.EnvVar // the framework's own
	set           []string        // names of variables that a controller adds
	resources     corev1.ResourceRequirements
	ports         []corev1.ContainerPort
	bare          bool // its controller cannot bear any variables
}

// workerPodSpec is a worker without what its framework adds.
func workerPodSpec(job *schema.Job) rolePodSpec {
	spec := podSpecOf(job, componentWorker)
	if r := &job.Spec.Resources; r.GPU > 0 && r.DeviceClass == "" {
		// A limit alone: the request follows it.
		spec.resources.Limits[corev1.ResourceName(r.GPUResource)] = quantity(r.GPU)
	}
	for name, q := range job.Spec.Resources.Devices {
		spec.resources.Limits[corev1.ResourceName(name)] = q
	}
	return spec
}

// podSpecOf is a pod of a role with what the job says of that role.
func podSpecOf(job *schema.Job, component string) rolePodSpec {
	spec := rolePodSpec{component: component, role: job.Spec.Role(component)}
	spec.resources = asked(&spec.role.Resources)
	return spec
}

// workerTemplate is the pod of a role.
func workerTemplate(job *schema.Job, spec rolePodSpec) corev1.PodTemplateSpec {
	m := metav1.ObjectMeta{Labels: podLabels(job, spec.component), Annotations: evictionAnnotations(job)}
	maps.Copy(m.Labels, gangLabels(job))
	for k, v := range gangAnnotations(job, spec.component) {
		annotate(&m, k, v)
	}
	pod := podSpec(job, &spec.role.RolePods)
	pod.SecurityContext = trainingSecurity(&job.Spec.Security)
	place(job, spec, &pod)
	pod.TerminationGracePeriodSeconds = ptr(seconds(job.Spec.GracePeriod))
	pod.ShareProcessNamespace = seesAgent(job, spec.component)
	container := workerContainer(job, spec)
	pod.Volumes, container.VolumeMounts = workerVolumes(job, spec)
	pod.InitContainers = append(initContainers(job, spec.component),
		sidecars(job, spec.component, container.VolumeMounts)...)
	pod.Containers = []corev1.Container{container}
	if spec.component == componentWorker {
		joinFabric(job, &m, &pod)
		claim(job, &pod)
	}
	return corev1.PodTemplateSpec{ObjectMeta: m, Spec: pod}
}

// place says who places the pods of a role, and on which network.
func place(job *schema.Job, spec rolePodSpec, pod *corev1.PodSpec) {
	p := &job.Spec.Placement
	pod.SchedulerName = job.Spec.SchedulerName()
	pod.PriorityClassName = job.Spec.PodPriority()
	pod.SchedulingGroup = schedulingGroup(job)
	if p.PreemptionPolicy != "" {
		pod.PreemptionPolicy = ptr(corev1.PreemptionPolicy(p.PreemptionPolicy))
	}
	// The handler of accelerators, which other nodes lack.
	if class := job.Spec.RuntimeClassOf(spec.component); class != "" {
		pod.RuntimeClassName = &class
	}
	if job.Spec.Network.Host {
		pod.HostNetwork = true
		pod.DNSPolicy = corev1.DNSClusterFirstWithHostNet // or the pods' names would not resolve
	}
}

func workerContainer(job *schema.Job, spec rolePodSpec) corev1.Container {
	c := corev1.Container{
		Name:            spec.component,
		Image:           spec.role.Image,
		ImagePullPolicy: corev1.PullPolicy(job.Spec.ImagePullPolicy),
		Command:         spec.command,
		Args:            spec.args,
		WorkingDir:      spec.role.WorkingDir,
		Env:             workerEnv(job, spec),
		EnvFrom:         authorEnvFrom(job.Spec.EnvFromOf(spec.component)),
		Ports:           spec.ports,
		Resources:       spec.resources,
		SecurityContext: trainingRights(&job.Spec.Security),
		Lifecycle:       saveHook(job, spec.component),
	}
	if spec.component == componentWorker {
		probe(&c, job.Spec.Probes)
		if m := job.Spec.Metrics; m != nil {
			c.Ports = append(c.Ports, listenPort(job, metricsPort, m.Port))
		}
	}
	return c
}

func trainingRights(s *schema.Security) *corev1.SecurityContext {
	if s.Restricted {
		return containerSecurity(s.ReadOnlyRootFilesystem)
	}
	return &corev1.SecurityContext{ReadOnlyRootFilesystem: &s.ReadOnlyRootFilesystem}
}

// workerEnv puts what tegen sets first, so that an author's values may refer to it, and lets an author's HOME win.
func workerEnv(job *schema.Job, spec rolePodSpec) []corev1.EnvVar {
	if spec.bare {
		return nil
	}
	env := spec.env
	var own []corev1.EnvVar
	named := map[string]bool{}
	for _, name := range spec.set {
		named[name] = true
	}
	for _, e := range job.Spec.EnvOf(spec.component) {
		named[e.Name] = true
		own = append(own, authorEnv(e))
	}
	add := func(name, value string) {
		if value != "" && !named[name] {
			env = append(env, corev1.EnvVar{Name: name, Value: value})
			named[name] = true
		}
	}
	if job.Spec.Security.RunAsUser.Number != nil && !job.Spec.ImageSSH() {
		add("HOME", "/tmp") // the user has no home; torch and hubs cache there
	}
	add("PYTHONUNBUFFERED", "1")
	add("DIST_BACKEND", job.Spec.Network.Collective)
	add("NCCL_SOCKET_IFNAME", job.Spec.Network.Interface)
	add("GLOO_SOCKET_IFNAME", job.Spec.Network.Interface)
	for _, e := range fabricEnv(job, spec.component) { // after an author's own interface, which wins
		add(e.Name, e.Value)
	}
	if job.Spec.Checkpoint != nil {
		add("CHECKPOINT_DIR", job.Spec.Checkpoint.Path)
	}
	return append(env, own...)
}

func workerVolumes(job *schema.Job, spec rolePodSpec) ([]corev1.Volume, []corev1.VolumeMount) {
	volumes, mounts := scratchSpace(job, spec)
	for i := range job.Spec.Storage {
		if onlyLaunches(job, spec.component) {
			break
		}
		v := &job.Spec.Storage[i]
		volumes = append(volumes, mountable(job, v))
		mounts = append(mounts, corev1.VolumeMount{
			Name: v.Name, MountPath: v.MountPath, SubPath: v.SubPath,
			ReadOnly: v.ReadOnly,
		})
	}
	if s := clientSecret(job); s != "" && !isGroup(job, spec.component) {
		volumes = append(volumes, clientVolume(job, s))
		mounts = append(mounts, corev1.VolumeMount{Name: "tls", MountPath: tlsDir, ReadOnly: true})
	}
	if v, m := proxyVolume(job); v != nil && !isGroup(job, spec.component) {
		volumes, mounts = append(volumes, *v), append(mounts, *m)
	}
	if v, m := scriptVolume(job); v != nil {
		volumes, mounts = append(volumes, *v), append(mounts, *m)
	}
	v, m := codeVolumes(job)
	return append(volumes, v...), append(mounts, m...)
}

// scratchSpace is what a pod of a role has at /dev/shm and /tmp, unless the author wants nothing there.
func scratchSpace(job *schema.Job, spec rolePodSpec) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	r := &job.Spec.Resources
	if shm := r.Shm.OrNil(); shm != nil && !onlyLaunches(job, spec.component) {
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
	if r.Tmp.None || onlyLaunches(job, spec.component) && !job.Spec.Security.ReadOnlyRootFilesystem &&
		!fetchesScript(job) { // who writes elsewhere
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
func mountable(job *schema.Job, v *schema.Storage) corev1.Volume {
	if e := v.EmptyDir; e != nil {
		return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium: corev1.StorageMedium(e.Medium), SizeLimit: e.Size,
		}}}
	}
	return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.ClaimName(job)},
	}}
}

func sorted(codes []int32) []int32 {
	out := slices.Clone(codes)
	slices.Sort(out)
	return out
}

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
