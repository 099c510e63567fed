package generators

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/contract"
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
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:        ptr(s.RunAsUser != 0),
			RunAsUser:           &s.RunAsUser,
			RunAsGroup:          &s.RunAsGroup,
			FSGroup:             &s.FSGroup,
			FSGroupChangePolicy: ptr(corev1.FSGroupChangeOnRootMismatch), // or every start walks the whole dataset
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
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

// small is what helper containers need: they copy, unpack and wait.
func small() corev1.ResourceRequirements {
	return fixed(resource.MustParse("500m"), resource.MustParse("512Mi"), resource.MustParse("1Gi"))
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

// expect writes on a workload which objects of others must be there before it: what its pods name and tegen does not
// render. The reference check takes them as given, and people see what to create first.
func expect(m *metav1.ObjectMeta, pod corev1.PodSpec, more ...string) {
	names := slices.Clone(more)
	if pod.PriorityClassName != "" {
		names = append(names, "PriorityClass/"+pod.PriorityClassName)
	}
	if pod.RuntimeClassName != nil {
		names = append(names, "RuntimeClass/"+*pod.RuntimeClassName)
	}
	for _, s := range pod.ImagePullSecrets {
		names = append(names, "Secret/"+s.Name)
	}
	for _, v := range pod.Volumes {
		switch {
		case v.Secret != nil && !isTrue(v.Secret.Optional):
			names = append(names, "Secret/"+v.Secret.SecretName)
		case v.ConfigMap != nil && !isTrue(v.ConfigMap.Optional):
			names = append(names, "ConfigMap/"+v.ConfigMap.Name)
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		names = append(names, expectOfContainer(c)...)
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	annotate(m, contract.Expects, strings.Join(slices.Compact(names), ","))
}

func expectOfContainer(c corev1.Container) (names []string) {
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil && !isTrue(r.Optional) {
			names = append(names, "Secret/"+r.Name)
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil && !isTrue(r.Optional) {
			names = append(names, "ConfigMap/"+r.Name)
		}
	}
	for _, e := range c.EnvFrom {
		if e.SecretRef != nil && !isTrue(e.SecretRef.Optional) {
			names = append(names, "Secret/"+e.SecretRef.Name)
		}
		if e.ConfigMapRef != nil && !isTrue(e.ConfigMapRef.Optional) {
			names = append(names, "ConfigMap/"+e.ConfigMapRef.Name)
		}
	}
	return names
}

func isTrue(b *bool) bool { return b != nil && *b }
