package importer_test

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// TestDroppedGroupWaits: a Job whose name no group can have is dropped with what it waits for, and the others stay.
func TestDroppedGroupWaits(t *testing.T) {
	t.Parallel()
	item := func(name, more string) string {
		return "{name: " + name + ", " + more + "template: {spec: {parallelism: 1, completions: 1, template: {spec: " +
			"{restartPolicy: Never, containers: [{name: c, image: 'a/b:1', command: [run]}]}}}}}"
	}
	const long = "evaluates-what-was-saved"
	for _, order := range []string{
		"replicatedJobs: [" + item("worker", "") + ", " +
			item("driver", "dependsOn: [{name: worker, status: Ready}], ") + ", " +
			item(long, "dependsOn: [{name: worker, status: Complete}], ") + "]",
		"startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [" + item("worker", "") + ", " +
			item("driver", "") + ", " + item(long, "") + "]",
	} {
		out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(
			"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec: {" + order + "}\n")}})
		if text := string(out.YAML); !strings.Contains(text, "  - name: driver\n") ||
			!strings.Contains(text, "    after:\n    - group: worker\n") || strings.Contains(text, long) ||
			out.Invalid {
			t.Errorf("imported as\n%s%s", text, lines(out.Notes))
		}
		if !strings.Contains(lines(out.Notes), `"`+long+`": changed: a group of a TrainingJob has at most 20`) {
			t.Errorf("nothing tells of %s:\n%s", long, lines(out.Notes))
		}
	}
}
