package apis

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/test/health"
)

// TestJobsOfOthers: a Job that tegen did not render has the health that Argo CD gives it without a rule, in every
// state and with either rule for suspended ones.
func TestJobsOfOthers(t *testing.T) {
	kind := schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}
	all := states(t)[kind]
	for _, suspended := range []string{Suspended, Healthy} {
		for _, rule := range Rules(suspended) {
			for _, s := range all {
				if rule.Kind != kind {
					continue
				}
				others := s.DeepCopy()
				others.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "helm"})
				want, said := argosOwnJobHealth(t, others)
				if got, message := health.Argo(t, rule.Lua, others.Object); got != want || message != said {
					t.Errorf("%s of others: %s (%s), want %s (%s)", s.GetName(), got, message, want, said)
				}
			}
		}
	}
	if len(all) < 10 {
		t.Errorf("%d states", len(all))
	}
}

// argosOwnJobHealth is what gitops-engine's pkg/health/health_job.go decides: it asks for the types of conditions
// alone, but of Suspended, which makes a Job that was resumed a complete one.
func argosOwnJobHealth(t *testing.T, u *unstructured.Unstructured) (status, message string) {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]map[string]any{}
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		name, _ := condition["type"].(string)
		by[name] = condition
		if name == "Complete" || name == "Suspended" {
			message, _ = condition["message"].(string)
		}
	}
	failed, _ := by["Failed"]["message"].(string)
	switch {
	case by["Failed"] != nil:
		return Degraded, failed
	case by["Suspended"]["status"] == "True":
		return Suspended, ""
	case by["Suspended"] != nil || by["Complete"] != nil:
		return Healthy, message
	}
	return Progressing, ""
}
