package importer_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// TestLiveVolcanoJob: what Volcano v1.15.1 leaves of a rendered Job is the same job, and it says so of its PodGroup.
func TestLiveVolcanoJob(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../golden/torchelastic-vcjob-no-restarts/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := importer.Jobs([]schema.Source{{Name: "golden.yaml", Data: text}})
	live := strings.Replace(string(text), "  schedulerName: volcano\n  minAvailable: 2\n",
		"  schedulerName: volcano\n  queue: default\n  maxRetry: 3\n  minAvailable: 2\n", 1)
	if live == string(text) {
		t.Fatal("the golden file is of another form")
	}
	live += `status:
  conditions:
  - {lastTransitionTime: "2026-11-23T04:04:16Z", status: Pending}
  - {lastTransitionTime: "2026-11-23T04:04:16Z", status: Running}
  controlledResources: {plugin-env: env, plugin-svc: svc}
  minAvailable: 2
  running: 2
  state: {lastTransitionTime: "2026-11-23T04:04:16Z", phase: Running}
  taskStatusCount: {worker: {phase: {Running: 2}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: once-a3f4e41b-3ad6-457f-88dd-4aaa25067f48
  namespace: training
  labels: {app.kubernetes.io/component: worker, tegen.dev/job: once}
  ` + ownedBy("batch.volcano.sh/v1alpha1", "Job", "once") + `
spec: {minMember: 2, minTaskMember: {worker: 2}, queue: default, minResources: {count/pods: "2", cpu: "2"}}
status: {phase: Running, running: 2}
`
	got := importer.Jobs([]schema.Source{{Name: "live.yaml", Data: []byte(live)}})
	if diff := cmp.Diff(string(want.YAML), string(got.YAML)); diff != "" {
		t.Errorf("the job (-golden +live):\n%s", diff)
	}
	const made = "PodGroup training/once-a3f4e41b-3ad6-457f-88dd-4aaa25067f48: translated: Job training/once makes it\n"
	if notes := lines(got.Notes); !strings.HasSuffix(notes, made) || strings.Count(notes, "\n") != 1 {
		t.Errorf("import says\n%swant one line that ends in\n%s", notes, made)
	}
}
