package generators

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/contract"
	"github.com/tegen-dev/tegen/internal/podpatch"
	"github.com/tegen-dev/tegen/schema"
)

func worker(job *schema.Job) []runtime.Object {
	if job.Spec.Target == schema.TargetPods {
		return workerPods(job)
	}
	w := workerJob(job, workerName(job))
	if job.Spec.HashedNames {
		// Of all that an API server lets nobody change. The name is part of the c10d endpoint and so of the template: the
		// hash is of the template under the plain name.
		hash := contentHash(w.Spec.Template, w.Spec.PodFailurePolicy, w.Spec.SuccessPolicy, w.Spec.BackoffLimitPerIndex)
		w = workerJob(job, workerName(job)+"-"+hash)
		annotate(&w.ObjectMeta, contract.ContentHash, hash)
	}
	return []runtime.Object{w}
}

// workerJob is an Indexed Job: each worker keeps its index, and with it its name, when its pod is replaced.
func workerJob(job *schema.Job, name string) *batchv1.Job {
	f := &job.Spec.Failure
	w := &batchv1.Job{
		ObjectMeta: meta(job, name, componentWorker),
		Spec: batchv1.JobSpec{
			Completions:          &job.Spec.Workers.Replicas, // equal to parallelism, so that both can be changed while it runs
			Parallelism:          &job.Spec.Workers.Replicas,
			CompletionMode:       ptr(batchv1.IndexedCompletion),
			BackoffLimit:         &f.Restarts,
			PodFailurePolicy:     podFailurePolicy(f),
			PodReplacementPolicy: ptr(batchv1.Failed), // two pods of one index would share a hostname
			Suspend:              &job.Spec.Suspend,
		},
	}
	if min := job.Spec.Workers.Min; min < job.Spec.Workers.Max { // not the replicas, which change while it runs: this field cannot
		// Workers that were waiting for a place when training ended find no rendezvous and fail, though the job is done.
		// Those that trained leave together, within the 300 s of torchrun's exit barrier (pytorch#118891); what is left
		// then gets SIGTERM and gracePeriod.
		w.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: &min}}}
	}
	if f.RestartsPerWorker != nil { // a worker that keeps failing is given up, the others train on
		w.Spec.BackoffLimit, w.Spec.BackoffLimitPerIndex = nil, f.RestartsPerWorker
	}
	if f.Deadline != nil {
		w.Spec.ActiveDeadlineSeconds = ptr(seconds(*f.Deadline))
	}
	if !job.Spec.GitOps { // a reconciler runs a Job again that deleted itself
		w.Spec.TTLSecondsAfterFinished = ptr(int32(seconds(job.Spec.TTLAfterFinished)))
	}
	template := workerTemplate(job, name+"-0")
	template.Spec.RestartPolicy = corev1.RestartPolicyNever // podFailurePolicy requires it
	template.Spec.Subdomain = workerName(job)               // with the Service of that name: <pod>.<subdomain> resolves
	w.Spec.Template = podpatch.Apply(template, job.Spec.PodTemplate)
	expect(job, &w.ObjectMeta, w.Spec.Template.Spec)
	return w
}

func podFailurePolicy(f *schema.Failure) *batchv1.PodFailurePolicy {
	var rules []batchv1.PodFailurePolicyRule
	if f.IgnoreDisruptions { // first, since the first rule that matches decides
		rules = append(rules, batchv1.PodFailurePolicyRule{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			},
		})
	}
	if len(f.FatalExitCodes) > 0 {
		rules = append(rules, batchv1.PodFailurePolicyRule{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: ptr(componentWorker),
				Operator:      batchv1.PodFailurePolicyOnExitCodesOpIn,
				Values:        sorted(f.FatalExitCodes), // the API requires order
			},
		})
	}
	if len(rules) == 0 {
		return nil
	}
	return &batchv1.PodFailurePolicy{Rules: rules}
}

// workerPods are the tutorial's bare pods. Nothing in a pod depends on how many there are but what must, so that one
// more worker leaves the others' objects as they are.
func workerPods(job *schema.Job) []runtime.Object {
	var out []runtime.Object
	for _, i := range podWorkerNumbers(job) {
		template := workerTemplate(job, podWorkerName(job, job.Spec.Workers.FirstIndex))
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		if job.Spec.Failure.Deadline != nil {
			template.Spec.ActiveDeadlineSeconds = ptr(seconds(*job.Spec.Failure.Deadline))
		}
		if job.Spec.Suspend {
			template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "tegen.dev/suspended"}} // a pod cannot be suspended otherwise
		}
		template = podpatch.Apply(template, job.Spec.PodTemplate)
		pod := &corev1.Pod{ObjectMeta: meta(job, podWorkerName(job, i), componentWorker), Spec: template.Spec}
		maps.Copy(pod.Labels, template.Labels)
		maps.Copy(pod.Labels, podWorkerLabels(job, i))
		for k, v := range template.Annotations {
			annotate(&pod.ObjectMeta, k, v)
		}
		expect(job, &pod.ObjectMeta, pod.Spec)
		out = append(out, pod)
	}
	return out
}

// workerTemplate is a worker's pod; first is the name of the first worker.
func workerTemplate(job *schema.Job, first string) corev1.PodTemplateSpec {
	annotations := evictionAnnotations(job)
	for k, v := range gangAnnotations(job) {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[k] = v
	}
	pod := podSpec(job)
	place(job, &pod)
	pod.TerminationGracePeriodSeconds = ptr(seconds(job.Spec.GracePeriod))
	container := workerContainer(job, first)
	pod.Volumes, container.VolumeMounts = workerVolumes(job)
	pod.InitContainers = initContainers(job)
	pod.Containers = []corev1.Container{container}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels(job, componentWorker), Annotations: annotations},
		Spec:       pod,
	}
}

// place says where workers may run.
func place(job *schema.Job, pod *corev1.PodSpec) {
	p := &job.Spec.Placement
	pod.SchedulerName = schedulerName(job)
	pod.PriorityClassName = p.PriorityClass
	if p.PreemptionPolicy != "" {
		pod.PreemptionPolicy = ptr(corev1.PreemptionPolicy(p.PreemptionPolicy))
	}
	if p.RuntimeClass != "" {
		pod.RuntimeClassName = &p.RuntimeClass
	}
	pod.NodeSelector = p.NodeSelector
}

func workerContainer(job *schema.Job, first string) corev1.Container {
	r := &job.Spec.Resources
	command, args := program(job)
	c := corev1.Container{
		Name:            componentWorker,
		Image:           job.Spec.Image,
		ImagePullPolicy: corev1.PullPolicy(job.Spec.ImagePullPolicy),
		Command:         command,
		Args:            args,
		Env:             workerEnv(job, first),
		Resources:       fixed(r.CPU, r.Memory, r.EphemeralStorage),
		SecurityContext: containerSecurity(job.Spec.Security.ReadOnlyRootFilesystem),
	}
	if r.GPU > 0 {
		c.Resources.Limits[corev1.ResourceName(r.GPUResource)] = quantity(r.GPU) // a limit alone: the request follows it
	}
	if z := &job.Spec.Rendezvous; z.Store == schema.StoreWorker {
		c.Ports = []corev1.ContainerPort{{Name: "rendezvous", ContainerPort: c10dPort(job), Protocol: corev1.ProtocolTCP}}
	}
	return c
}

// workerEnv puts what tegen sets first, so that an author's values may refer to it, and lets an author's HOME win.
func workerEnv(job *schema.Job, first string) []corev1.EnvVar {
	var own []corev1.EnvVar
	named := map[string]bool{}
	for _, e := range job.Spec.Env {
		named[e.Name] = true
		own = append(own, authorEnv(e))
	}
	env := rendezvousEnv(job, first)
	add := func(name, value string) {
		if value != "" && !named[name] {
			env = append(env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	add("HOME", "/tmp") // the user has no home; torch and hubs cache there
	add("PYTHONUNBUFFERED", "1")
	add("DIST_BACKEND", job.Spec.Network.Collective)
	add("NCCL_SOCKET_IFNAME", job.Spec.Network.Interface)
	add("GLOO_SOCKET_IFNAME", job.Spec.Network.Interface)
	if job.Spec.Checkpoint != nil {
		add("CHECKPOINT_DIR", job.Spec.Checkpoint.Path)
	}
	return append(env, own...)
}

func authorEnv(e schema.Env) corev1.EnvVar {
	v := corev1.EnvVar{Name: e.Name}
	switch {
	case e.Value != nil:
		v.Value = *e.Value
	case e.Secret != nil:
		v.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: e.Secret.Name}, Key: e.Secret.Key, Optional: optional(e.Secret),
		}}
	case e.ConfigMap != nil:
		v.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: e.ConfigMap.Name}, Key: e.ConfigMap.Key, Optional: optional(e.ConfigMap),
		}}
	}
	return v
}

func optional(r *schema.KeyRef) *bool {
	if !r.Optional {
		return nil
	}
	return ptr(true)
}

func workerVolumes(job *schema.Job) ([]corev1.Volume, []corev1.VolumeMount) {
	volumes := []corev1.Volume{
		{Name: "dshm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium: corev1.StorageMediumMemory, SizeLimit: &job.Spec.Resources.Shm, // counts against the container's memory
		}}},
		scratch("tmp", job.Spec.Resources.EphemeralStorage),
	}
	mounts := []corev1.VolumeMount{{Name: "dshm", MountPath: "/dev/shm"}, {Name: "tmp", MountPath: "/tmp"}}
	for i := range job.Spec.Storage {
		v := &job.Spec.Storage[i]
		volumes = append(volumes, mountable(job, v))
		mounts = append(mounts, corev1.VolumeMount{Name: v.Name, MountPath: v.MountPath, SubPath: v.SubPath, ReadOnly: v.ReadOnly})
	}
	if s := clientSecret(job); s != "" {
		volumes = append(volumes, secretVolume("tls", s))
		mounts = append(mounts, corev1.VolumeMount{Name: "tls", MountPath: tlsDir, ReadOnly: true})
	}
	if v, m := scriptVolume(job); v != nil {
		volumes, mounts = append(volumes, *v), append(mounts, *m)
	}
	return volumes, mounts
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
