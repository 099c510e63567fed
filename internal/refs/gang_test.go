package refs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/refs"
)

// TestPodGroups: pods that name a PodGroup find one of their scheduler's, and no other's of that name.
func TestPodGroups(t *testing.T) {
	for _, tc := range []struct {
		name, field, to string
		join            func(m *metav1.ObjectMeta, pod *corev1.PodSpec)
		group           runtime.Object
	}{
		{
			"coscheduling", "spec.template.metadata.labels[scheduling.x-k8s.io/pod-group]",
			"PodGroup.scheduling.x-k8s.io",
			func(m *metav1.ObjectMeta, _ *corev1.PodSpec) { m.Labels["scheduling.x-k8s.io/pod-group"] = "g" },
			apis.New(apis.CoschedulingPodGroupKind, named("g"), apis.CoschedulingPodGroup{MinMember: 4}),
		},
		{
			"koordinator", "spec.template.metadata.labels[pod-group.scheduling.sigs.k8s.io]",
			"PodGroup.scheduling.sigs.k8s.io",
			func(m *metav1.ObjectMeta, _ *corev1.PodSpec) { m.Labels["pod-group.scheduling.sigs.k8s.io"] = "g" },
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
				"metadata": map[string]any{"name": "g", "namespace": "training"},
			}},
		},
		{
			"volcano", "spec.template.metadata.annotations[scheduling.k8s.io/group-name]",
			"PodGroup.scheduling.volcano.sh",
			func(m *metav1.ObjectMeta, _ *corev1.PodSpec) {
				m.Annotations = map[string]string{"scheduling.k8s.io/group-name": "g"}
			},
			apis.New(apis.VolcanoPodGroupKind, named("g"), apis.VolcanoPodGroup{MinMember: 4}),
		},
		{
			"kubernetes", "spec.template.spec.schedulingGroup.podGroupName", "PodGroup",
			func(_ *metav1.ObjectMeta, pod *corev1.PodSpec) {
				pod.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr("g")}
			},
			apis.New(apis.PodGroupBetaKind, named("g"), apis.PodGroupBeta{}),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBundle()
			tc.join(&b.job.Spec.Template.ObjectMeta, &b.job.Spec.Template.Spec)
			b.add(apis.New(apis.JobSetKind, named("g"), apis.JobSetSpec{})) // of that name, but no PodGroup
			want := []string{"Job training/imagenet: " + tc.field + ": " + tc.to +
				" training/g: no object of that name is in the set; " +
				"without it the pods stay pending; add it, or list " + tc.to +
				"/g in the annotation tegen.dev/expects if the cluster has it"}
			var got []string
			for _, broken := range refs.Check(b.objects()) {
				got = append(got, broken.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("without it (-want +got):\n%s", diff)
			}
			b.expect(tc.to + "/g")
			if got := refs.Check(b.objects()); got != nil {
				t.Errorf("the cluster has it: %v", got)
			}
			b.expect("")
			b.add(tc.group)
			if got := refs.Check(b.objects()); got != nil {
				t.Errorf("the set has it: %v", got)
			}
		})
	}
}
