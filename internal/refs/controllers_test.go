package refs_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestControllerFacts(t *testing.T) {
	for _, tc := range controllerCases {
		t.Run(tc.name, tc.run)
	}
}

var controllerCases = []refCase{{
	name:   "ordinals.start",
	reason: "a StatefulSet may count from another number than 0",
	resolves: func(b *bundle) {
		b.etcd.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
		b.env("X_ADDR", "etcd-7.etcd")
	},
	breaks: func(b *bundle) { b.etcd.Spec.Ordinals = nil },
	want:   []string{worker + "env[X_ADDR]: Pod training/etcd-7"},
}, {
	name:   "init containers",
	reason: "they run with the same volumes and names, and a sidecar may serve the port",
	resolves: func(b *bundle) {
		b.service.Spec.Ports[0].TargetPort = intstr.FromString("web")
		b.job.Spec.Template.Spec.InitContainers = []corev1.Container{{
			Name: "wait", Command: []string{"sh", "-c", "until nc -z etcd.training.svc 2379; do sleep 1; done"},
			Ports: []corev1.ContainerPort{{Name: "web"}},
		}}
	},
	breaks: func(b *bundle) {
		b.job.Spec.Template.Spec.InitContainers[0].Command[2] = "nc -z etcd0.training.svc 2379"
	},
	want: []string{jobPod + "initContainers[wait].command[2]: Service training/etcd0"},
}, {
	name:   "NotIn over ordinals",
	reason: "some pod of four is neither 0 nor 1; of two, none is",
	resolves: func(b *bundle) {
		b.add(&policyv1.PodDisruptionBudget{
			ObjectMeta: named("rest"),
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"job-name": "imagenet"},
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{
						Key: "batch.kubernetes.io/job-completion-index", Operator: metav1.LabelSelectorOpNotIn,
						Values: []string{"0", "1"},
					},
				},
			}},
		})
	},
	breaks: func(b *bundle) { b.job.Spec.Completions = ptr(int32(2)) },
	want: []string{"PodDisruptionBudget training/rest: spec.selector: pods " +
		"training/batch.kubernetes.io/job-completion-index notin (0,1),job-name=imagenet"},
}, {
	name:   "objects of others",
	reason: "a volume without tegen's label may be bound to anyone's claim, and generated names are not names yet",
	resolves: func(b *bundle) {
		b.add(&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv"},
			Spec:       corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "a", Name: "b"}},
		})
		for range 2 {
			b.add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "run-"}}, &metav1.Status{})
		}
	},
	breaks: func(b *bundle) { b.more[1].(*corev1.Pod).Spec.ServiceAccountName = "x" },
	want:   []string{"Pod default/run-*: spec.serviceAccountName: ServiceAccount default/x"},
}}
