package apis

import (
	"encoding/json"
	"testing"

	v1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// TestSchedulingTypes holds Kubernetes' own gangs against the Go types of the release that go.mod has.
func TestSchedulingTypes(t *testing.T) {
	policy := GroupPolicy{Gang: &GangPolicy{MinCount: 2}}
	meta := metav1.ObjectMeta{Name: "g"}
	for _, c := range []struct{ ours, theirs any }{
		{
			New(WorkloadAlphaKind, meta, WorkloadSpec{
				PodGroupTemplates: []PodGroupTemplate{
					{Name: "pods", SchedulingPolicy: policy, PriorityClassName: "p"},
				},
			}),
			&v1alpha2.Workload{},
		},
		{
			New(PodGroupAlphaKind, meta, PodGroupAlpha{
				SchedulingPolicy: policy,
				PodGroupTemplateRef: &PodGroupTemplateRef{
					Workload: WorkloadTemplateRef{WorkloadName: "g", PodGroupTemplateName: "pods"},
				},
			}),
			&v1alpha2.PodGroup{},
		},
	} {
		text, err := json.Marshal(c.ours)
		if err != nil {
			t.Fatal(err)
		}
		if strict, err := kjson.UnmarshalStrict(text, c.theirs); err != nil || len(strict) > 0 {
			t.Errorf("%s: %v %v", text, err, strict)
		}
	}
}
