package generators

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/schema/job"
)

// expect writes on a workload which objects of others must be there before it: what its pods name, in a field of the
// schema or in the escape hatch, and no generator renders. The reference check assumes that they exist, and people see
// what to create first.
func expect(j *job.Job, m *metav1.ObjectMeta, pods ...corev1.PodSpec) {
	names := expectOfQueue(m.Labels)
	for _, pod := range pods {
		names = append(names, expectOfPod(j, pod)...)
	}
	expectNames(m, names)
}

func expectOfPod(j *job.Job, pod corev1.PodSpec) (names []string) {
	// Or our PodGroup says so.
	if g := j.Spec.Gang; j.Spec.MakesPodGroup() && g.Queue != "" && pod.SchedulerName != "" {
		names = append(names, volcanoQueue+g.Queue)
	}
	if pod.PriorityClassName != "" {
		names = append(names, "PriorityClass/"+pod.PriorityClassName)
	}
	if pod.RuntimeClassName != nil {
		names = append(names, "RuntimeClass/"+*pod.RuntimeClassName)
	}
	if own, rendered := serviceAccountName(j); pod.ServiceAccountName != "" &&
		pod.ServiceAccountName != defaultAccount && (pod.ServiceAccountName != own || !rendered) &&
		!rendersKeys(j, "ServiceAccount", pod.ServiceAccountName) {
		names = append(names, "ServiceAccount/"+pod.ServiceAccountName)
	}
	for _, s := range pod.ImagePullSecrets {
		names = append(names, "Secret/"+s.Name)
	}
	for _, c := range pod.ResourceClaims {
		if t := c.ResourceClaimTemplateName; t != nil && (!claimsAccelerators(j) || *t != acceleratorsTemplate(j)) {
			names = append(names, "ResourceClaimTemplate/"+*t)
		}
		if c.ResourceClaimName != nil {
			names = append(names, "ResourceClaim/"+*c.ResourceClaimName)
		}
	}
	for _, v := range pod.Volumes {
		names = append(names, expectOfVolume(j, v.VolumeSource)...)
	}
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			names = append(names, expectOfContainer(&list[i])...)
			for _, host := range refs.Addressed(j.Metadata.Namespace, &list[i]) {
				if !rendersService(j, host) {
					names = append(names, "Service/"+host)
				}
			}
		}
	}
	return names
}

// dialling stands for pods that a controller tells an address from a field of its own.
func dialling(address string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--host=" + address}}}}
}

// expectNames adds to what an object expects.
func expectNames(m *metav1.ObjectMeta, expected []string) {
	if len(expected) == 0 {
		return
	}
	if others := m.Annotations[names.Expects]; others != "" {
		expected = append(expected, strings.Split(others, ",")...)
	}
	slices.Sort(expected)
	annotate(m, names.Expects, strings.Join(slices.Compact(expected), ","))
}

func expectOfVolume(j *job.Job, v corev1.VolumeSource) (names []string) {
	if c := v.PersistentVolumeClaim; c != nil && !rendersClaim(j, c.ClaimName) {
		names = append(names, "PersistentVolumeClaim/"+c.ClaimName)
	}
	if s := v.Secret; s != nil && !isTrue(s.Optional) && !rendersKeys(j, "Secret", s.SecretName) {
		names = append(names, "Secret/"+s.SecretName)
	}
	if c := v.ConfigMap; c != nil && !isTrue(c.Optional) && !rendersKeys(j, "ConfigMap", c.Name) {
		names = append(names, "ConfigMap/"+c.Name)
	}
	if v.Projected == nil {
		return names
	}
	for _, p := range v.Projected.Sources {
		if s := p.Secret; s != nil && !isTrue(s.Optional) {
			names = append(names, "Secret/"+s.Name)
		}
		if c := p.ConfigMap; c != nil && !isTrue(c.Optional) {
			names = append(names, "ConfigMap/"+c.Name)
		}
	}
	return names
}

func expectOfContainer(c *corev1.Container) (names []string) {
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

func rendersClaim(j *job.Job, name string) bool {
	return slices.ContainsFunc(j.Spec.Storage, func(v job.Storage) bool {
		return v.Claim == "" &&
			v.ClaimName(j) == name
	})
}

// rendersService says whether a Service of that name is the job's own.
func rendersService(j *job.Job, name string) bool {
	if j.Spec.Rendezvous.Store == job.StoreEtcd && (name == etcdName(j) || name == etcdPeerName(j)) {
		return true
	}
	if j.Spec.Rendezvous.Store == job.StoreCompanion &&
		(name == companionName(j) || name == companionStatusName(j)) {
		return true
	}
	return targetOf(j).owns(j, name)
}
