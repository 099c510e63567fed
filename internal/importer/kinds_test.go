package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/importer"
	tegen "github.com/tegen-dev/tegen/schema"
)

// withoutReader are the custom resources that make no job by themselves, with the reason.
var withoutReader = map[schema.GroupKind]string{
	apis.TrainingRuntimeKind.GroupKind():      "it is read by the TrainJob that names it",
	apis.VolcanoPodGroupKind.GroupKind():      "it is read by the pods that name it",
	apis.CoschedulingPodGroupKind.GroupKind(): "it is read by the pods that name it",
	apis.WorkloadBetaKind.GroupKind():         "it makes no pods",
	apis.PodGroupBetaKind.GroupKind():         "it makes no pods",
	apis.ClaimTemplateKind("v1").GroupKind():  "it is read by the pods that claim what it says",
	apis.PodMonitorKind.GroupKind():           "it belongs to the metrics of a job, which is read with its workers",
}

// TestReaders: every kind that tegen renders is read, or stands above. An object without a reader is kept beside.
func TestReaders(t *testing.T) {
	t.Parallel()
	for _, k := range apis.Kinds {
		text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: a}\nspec: {}\n", k.GroupVersion(), k.Kind)
		out := importer.Jobs([]tegen.Source{{Name: "a.yaml", Data: []byte(text)}})
		if len(out.Notes) == 0 {
			t.Errorf("%s: no note on an object with an empty spec", k)
			continue
		}
		first := out.Notes[0]
		read := first.Verdict != importer.Beside && !strings.Contains(first.String(), "this kind is not read")
		if reason := withoutReader[k.GroupKind()]; read == (reason != "") {
			t.Errorf("%s has a reader: %v, and stands without one because: %q\n%s", k, read, reason, first)
		}
	}
}
