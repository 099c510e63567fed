package gang

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestAlike: what filters look at tells pods apart, and the quick comparison and the thorough one agree.
func TestAlike(t *testing.T) {
	asks := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	volume := func(name string, source corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		}
	}
	always := corev1.ContainerRestartPolicyAlways
	for _, tt := range []struct {
		reason string
		change func(*corev1.Pod)
		want   bool
	}{
		{"nothing", func(*corev1.Pod) {}, true},
		{"the name", func(p *corev1.Pod) { p.Name, p.UID = "other", "other" }, true},
		{"arguments", func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"0"} }, true},
		{"an index of a Job", func(p *corev1.Pod) { p.Labels["batch.kubernetes.io/job-completion-index"] = "7" }, true},
		{"an index of Kubeflow", func(p *corev1.Pod) { p.Labels["training.kubeflow.org/replica-index"] = "7" }, true},
		{"the name of a token", volume("kube-api-access-x2b4f", corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{},
		}), true},
		{"scratch", volume("tmp", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), true},
		{"another text of an amount", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = asks("2000m")
		}, true},

		{"a claim", volume("data", corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}), false},
		{"a disk", volume("disk", corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{}}), false},
		{"a volume of a driver", volume("own", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}), false},
		{"the namespace", func(p *corev1.Pod) { p.Namespace = "b" }, false},
		{"a label", func(p *corev1.Pod) { p.Labels["app"] = "other" }, false},
		{"a label more", func(p *corev1.Pod) { p.Labels["role"] = "master" }, false},
		{"a label less", func(p *corev1.Pod) { delete(p.Labels, "app") }, false},
		{"an image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other" }, false},
		{"a port", func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostPort = 1 }, false},
		{"an amount", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = asks("3") }, false},
		{"a limit", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = asks("2") }, false},
		{"another resource", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1")
		}, false},
		{"a claim of a container", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "a"}}
		}, false},
		{"a container", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{})
		}, false},
		{"a sidecar", func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = &always }, false},
		{"overhead", func(p *corev1.Pod) { p.Spec.Overhead = asks("1") }, false},
		{"resources of the pod", func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: asks("1")}
		}, false},
		{"a node selector", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }, false},
		{"a node", func(p *corev1.Pod) { p.Spec.NodeName = "n" }, false},
		{"an affinity", apart, false},
		{"a toleration", func(p *corev1.Pod) { p.Spec.Tolerations[0].Key = "other" }, false},
		{"a spread", better, false},
		{"a claim of the pod", func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a"}}
		}, false},
		{"the priority", func(p *corev1.Pod) { p.Spec.Priority = new(int32) }, false},
		{"the node's network", func(p *corev1.Pod) { p.Spec.HostNetwork = true }, false},
	} {
		pod := func() *corev1.Pod {
			p := worker("p", "g", 2, 0, "", 100)
			p.Spec.Containers = []corev1.Container{{
				Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				Resources: corev1.ResourceRequirements{Requests: asks("2")},
			}}
			p.Spec.InitContainers = []corev1.Container{{Image: "init"}}
			p.Spec.Tolerations = []corev1.Toleration{{Key: "a"}}
			return p
		}
		a, b := pod(), pod()
		tt.change(b)
		x, err := shape(a, numberings)
		if err != nil {
			t.Fatal(err)
		}
		y, err := shape(b, numberings)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(alike(a, b, numberings), alike(b, a, numberings), x == y)
		if got != fmt.Sprint(tt.want, tt.want, tt.want) {
			t.Errorf("%s: alike both ways and by shape %s, want %v", tt.reason, got, tt.want)
		}
	}
}
