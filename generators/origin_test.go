package generators_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestOrigin: each object that runs pods records which tegen rendered it of which input, in its own metadata and
// nowhere below. No name depends on it. A TrainingRuntime runs none: its TrainJob does.
func TestOrigin(t *testing.T) {
	eachJob(t, func(t *testing.T, j *job.Job, objs []runtime.Object) {
		t.Helper()
		recorded := 0
		for _, obj := range objs {
			annotations := meta(t, obj).GetAnnotations()
			count := strings.Count(text(t, obj), names.Input) + strings.Count(text(t, obj), names.Version)
			switch {
			case annotations[names.Input] == j.Input() && annotations[names.Version] != "" && count == 2:
				recorded++
			case count > 0:
				t.Errorf("%s has them %d times", id(t, obj), count)
			case strings.Contains(text(t, obj), "containers:") && !strings.HasPrefix(id(t, obj), "TrainingRuntime"):
				t.Errorf("%s does not record them", id(t, obj))
			}
		}
		if recorded == 0 {
			t.Error("no object records them")
		}
		again := *j
		again.AddInput("something else")
		for i, obj := range objectsOf(generators.Generate(&again)) {
			if id(t, obj) != id(t, objs[i]) {
				t.Errorf("the name of %s depends on the input", id(t, obj))
			}
		}
	})
}

func objectsOf(concerns []generators.Concern) (all []runtime.Object) {
	for _, c := range concerns {
		all = append(all, c.Objects...)
	}
	return all
}
