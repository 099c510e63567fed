package generators

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// podSpec is what every pod of a job has in common: the restricted Pod Security Standard and nothing that training
// does not need. Nodes and taints are each role's own.
func podSpec(j *job.Job, role *job.RolePods) corev1.PodSpec {
	account, _ := serviceAccountName(j)
	spec := corev1.PodSpec{
		ServiceAccountName:           account,
		AutomountServiceAccountToken: ptr(false),
		EnableServiceLinks:           ptr(false), // a namespace of a thousand Services would fill the environment
		SecurityContext:              ownSecurity(&j.Spec.Security),
		NodeSelector:                 role.NodeSelector,
	}
	for _, t := range role.Tolerations {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key:               t.Key,
			Operator:          corev1.TolerationOperator(t.Operator),
			Value:             t.Value,
			Effect:            corev1.TaintEffect(t.Effect),
			TolerationSeconds: t.Seconds,
		})
	}
	for _, name := range j.Spec.ImagePullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return spec
}

// ownSecurity is that of pods with images of tegen's choice: where the author's run as their image's user or as root,
// these do not.
func ownSecurity(s *job.Security) *corev1.PodSecurityContext {
	number := func(id job.ID) int64 {
		if id.Number == nil {
			return nobody
		}
		return *id.Number
	}
	user := number(s.RunAsUser)
	if user == 0 {
		user = nobody
	}
	return podSecurityContext(user, number(s.RunAsGroup), number(s.FSGroup))
}

const nobody = 65534

// trainingSecurity is that of pods with the author's images, which may be left their own user and rights.
func trainingSecurity(s *job.Security) *corev1.PodSecurityContext {
	c := podSecurityContext(0, 0, 0)
	c.RunAsNonRoot, c.RunAsUser, c.RunAsGroup, c.FSGroup = nil, s.RunAsUser.Number, s.RunAsGroup.Number,
		s.FSGroup.Number
	if s.RunAsUser.Number != nil {
		c.RunAsNonRoot = ptr(!s.RunAsUser.Is(0))
	}
	if c.FSGroup == nil {
		c.FSGroupChangePolicy = nil
	}
	if !s.Restricted {
		c.SeccompProfile = nil
	}
	return c
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
func evictionAnnotations(j *job.Job) map[string]string {
	if j.Spec.Disruption.SafeToEvict {
		return nil
	}
	return map[string]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
		"karpenter.sh/do-not-disrupt":                    "true",
	}
}

// fixed are requests that equal limits: the node reserves all that a pod may use.
func fixed(cpu, memory, disk resource.Quantity) corev1.ResourceRequirements {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              cpu,
		corev1.ResourceMemory:           memory,
		corev1.ResourceEphemeralStorage: disk,
	}
	return corev1.ResourceRequirements{Requests: list, Limits: maps.Clone(list)}
}

// asked is what an author's words on resources are in Kubernetes'.
func asked(c *job.Compute) corev1.ResourceRequirements {
	requests, limits := schema.Asked[corev1.ResourceName](c)
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

// askedOr is asked, with amounts for what the author says nothing of.
func askedOr(c job.Compute, cpu, memory, disk resource.Quantity) corev1.ResourceRequirements {
	for own, otherwise := range map[*job.Amount]resource.Quantity{
		&c.CPU: cpu, &c.Memory: memory,
		&c.EphemeralStorage: disk,
	} {
		if own.IsZero() {
			own.Quantity = otherwise
		}
	}
	return asked(&c)
}

// small is what helper containers need: they copy, unpack and wait. With less CPU they only take longer, so none asks
// for more than a worker or a server: one that runs before it would raise what the whole pod asks for. Where a worker
// asks for nothing of a resource, they do not either.
func small(j *job.Job) corev1.ResourceRequirements {
	r := helperAmounts()
	for _, role := range []string{componentWorker, componentServer} {
		own := j.Spec.Role(role).Resources
		requests := own.Limited() // which Kubernetes takes for the request where there is none
		maps.Copy(requests, own.Requested())
		for name := range r.Requests {
			if q, ok := requests[string(name)]; !ok && role == componentWorker {
				delete(r.Requests, name)
				delete(r.Limits, name)
			} else if ok && name == corev1.ResourceCPU && q.Cmp(r.Requests[name]) < 0 {
				r.Requests[name], r.Limits[name] = q, q
			}
		}
	}
	return r
}

func helperAmounts() corev1.ResourceRequirements {
	return fixed(resource.MustParse("500m"), resource.MustParse("512Mi"), resource.MustParse("1Gi"))
}

// helping is what a pod asks for that prepares the job.
func helping(j *job.Job) corev1.ResourceRequirements {
	r, least := helperAmounts().Requests, small(j).Requests
	delete(r, corev1.ResourceEphemeralStorage) // unless the workers request some
	maps.Copy(r, least)
	return askedOr(j.Spec.Roles.Helper.Resources, r[corev1.ResourceCPU], r[corev1.ResourceMemory],
		r[corev1.ResourceEphemeralStorage])
}

func scratch(name string, size resource.Quantity) corev1.Volume { return scratchOf(name, &size) }

// scratchOf is scratch space of any size where that is nil.
func scratchOf(name string, size *resource.Quantity) corev1.Volume {
	return corev1.Volume{
		Name:         name,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: size}},
	}
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName:  secret,
		DefaultMode: ptr[int32](0o440), // the group is the pod's fsGroup
	}}}
}
