package generators_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// role is whose pod it is; the label has a name of its own for some.
func (p pod) role() string {
	switch component := p.labels["app.kubernetes.io/component"]; component {
	case "prefetch", "keygen":
		return job.RoleHelper
	case "rendezvous":
		return job.RoleCompanion
	default:
		return component
	}
}

// saysOtherwise says whether an author wants requests of a container that are not its limits, or none. None of local
// disk is the default. Init containers of tegen's ask for nothing that workers do not.
func saysOtherwise(j *job.Job, p pod, container string) bool {
	role := p.role()
	if slices.ContainsFunc(p.spec.InitContainers, func(c corev1.Container) bool { return c.Name == container }) {
		role = job.RoleWorker
	}
	c := j.Spec.Role(role).Resources
	return c.CPU.None || c.Memory.None || differs(c.Requests) || differs(c.Limits)
}

func differs(a *job.Amounts) bool {
	return a != nil && (!a.CPU.IsZero() || !a.Memory.IsZero() || !a.EphemeralStorage.IsZero())
}

// TestLenience: what an author says of one role, or leaves to his image, loosens no property of other pods.
func TestLenience(t *testing.T) {
	const etcd = "rendezvous: {backend: etcd, store: etcd}"
	for _, c := range []struct {
		says, property string
		damage         func(c *corev1.Container)
	}{
		{"security: {restricted: false}", "restricted", func(c *corev1.Container) { c.SecurityContext = nil }},
		{"security: {runAsUser: image}", "restricted", func(c *corev1.Container) { c.SecurityContext = nil }},
		{
			"resources: {cpu: none}", "limits",
			func(c *corev1.Container) { delete(c.Resources.Limits, corev1.ResourceCPU) },
		},
	} {
		j := load(t, jobText(etcd, c.says))
		objs := objects(j)
		if wrong := properties[c.property](j, objs); len(wrong) > 0 {
			t.Fatalf("%s: wrong before the damage: %q", c.says, wrong)
		}
		c.damage(&all[*appsv1.StatefulSet](objs)[0].Spec.Template.Spec.Containers[0])
		if wrong := properties[c.property](j, objs); len(wrong) == 0 {
			t.Errorf("%s: what is wrong with the etcd is not noticed", c.says)
		}
	}
}
