package generators

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/schema"
)

// podSpec is what every pod of a job has in common: the restricted Pod Security Standard and nothing that training
// does not need.
func podSpec(job *schema.Job) corev1.PodSpec {
	account, _ := serviceAccountName(job)
	s := &job.Spec.Security
	spec := corev1.PodSpec{
		ServiceAccountName:           account,
		AutomountServiceAccountToken: ptr(false),
		EnableServiceLinks:           ptr(false), // a namespace of a thousand Services would fill the environment
		SecurityContext:              podSecurityContext(s.RunAsUser, s.RunAsGroup, s.FSGroup),
	}
	for _, t := range job.Spec.Placement.Tolerations { // of every pod: where all nodes are tainted, helpers need a place too
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key:               t.Key,
			Operator:          corev1.TolerationOperator(t.Operator),
			Value:             t.Value,
			Effect:            corev1.TaintEffect(t.Effect),
			TolerationSeconds: t.Seconds,
		})
	}
	for _, name := range job.Spec.ImagePullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return spec
}

func podSecurityContext(user, group, fsGroup int64) *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot:        ptr(user != 0),
		RunAsUser:           &user,
		RunAsGroup:          &group,
		FSGroup:             &fsGroup,
		FSGroupChangePolicy: ptr(corev1.FSGroupChangeOnRootMismatch), // or every start walks the whole dataset
		SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func containerSecurity(readOnlyRoot bool) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr(false),
		ReadOnlyRootFilesystem:   &readOnlyRoot,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// evictionAnnotations tell autoscalers to leave a pod where it is. Annotation values are strings, always.
func evictionAnnotations(job *schema.Job) map[string]string {
	if job.Spec.Disruption.SafeToEvict {
		return nil
	}
	return map[string]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
		"karpenter.sh/do-not-disrupt":                    "true",
	}
}

// fixed are requests that equal limits: what a pod is promised is what it gets.
func fixed(cpu, memory, disk resource.Quantity) corev1.ResourceRequirements {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              cpu,
		corev1.ResourceMemory:           memory,
		corev1.ResourceEphemeralStorage: disk,
	}
	return corev1.ResourceRequirements{Requests: list, Limits: maps.Clone(list)}
}

// small is what helper containers need: they copy, unpack and wait. With less CPU they only take longer, so none asks for
// more than a worker or a server: one that runs before it would raise what the whole pod asks for.
func small(job *schema.Job) corev1.ResourceRequirements {
	cpu := resource.MustParse("500m")
	for _, own := range []resource.Quantity{job.Spec.Resources.CPU, job.Spec.Servers.CPU} {
		if own.Cmp(cpu) < 0 {
			cpu = own
		}
	}
	return fixed(cpu, resource.MustParse("512Mi"), resource.MustParse("1Gi"))
}

func scratch(name string, size resource.Quantity) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}}
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName:  secret,
		DefaultMode: ptr[int32](0o440), // the group is the pod's fsGroup
	}}}
}
