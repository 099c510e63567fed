package importer_test

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// TestWorkloadAlone: an option of a reconciler for the workload does not become one for its data, and a label of the
// workload none of its pods. What other objects or pods have too is every object's.
func TestWorkloadAlone(t *testing.T) {
	t.Parallel()
	const input = `apiVersion: batch/v1
kind: Job
metadata:
  name: bert
  namespace: nlp
  labels: {team: nlp, queue: night}
  annotations: {argocd.argoproj.io/sync-options: "Force=true,Replace=true", owner: alice}
spec:
  completionMode: Indexed
  template:
    metadata: {labels: {team: nlp}}
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: "x:1", command: [torchrun, train.py], volumeMounts: [{name: d, mountPath: /d}]}
      volumes: [{name: d, persistentVolumeClaim: {claimName: bert-d}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bert-d, namespace: nlp, annotations: {owner: alice}}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
`
	out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(input)}})
	jobs, err := schema.Load([]schema.Source{{Name: "out.yaml", Data: out.YAML}})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.YAML)
	}
	j := jobs[0]
	if got := j.Metadata.Labels; len(got) != 1 || got["team"] != "nlp" {
		t.Errorf("labels of every object %v, want the team's", got)
	}
	if got := j.Metadata.Annotations; len(got) != 1 || got["owner"] != "alice" {
		t.Errorf("annotations of every object %v, want the owner's", got)
	}
	if got := j.Spec.Workload.Labels; len(got) != 1 || got["queue"] != "night" {
		t.Errorf("labels of the workload %v, want the queue's", got)
	}
	options := j.Spec.Workload.Annotations["argocd.argoproj.io/sync-options"]
	if options != "Force=true,Replace=true" || len(j.Spec.Workload.Annotations) != 1 {
		t.Errorf("annotations of the workload %v, want Argo CD's options", j.Spec.Workload.Annotations)
	}
	claim := string(rendered(t, out.YAML))
	claim = claim[strings.Index(claim, "kind: PersistentVolumeClaim"):]
	if claim, _, _ = strings.Cut(claim, "\n---\n"); strings.Contains(claim, "Replace=true") {
		t.Errorf("the claim has the options of the workload:\n%s", claim)
	}
}
