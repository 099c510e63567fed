package refs_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/refs"
)

// TestLinks: every kind of reference is followed once, to what is in the set and to what the cluster is said to have,
// and none that does not resolve.
func TestLinks(t *testing.T) {
	const set = `
apiVersion: v1
kind: Service
metadata: {name: peers, namespace: ml}
spec: {clusterIP: None, selector: {job: a}}
---
apiVersion: v1
kind: Service
metadata: {name: store, namespace: ml}
spec: {selector: {job: none-of-these}, ports: [{port: 2379}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: ml}
spec: {}
---
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: ml, annotations: {tegen.dev/expects: Secret/token}}
spec:
  template:
    metadata: {labels: {job: a, pod-group.scheduling.sigs.k8s.io: gone}}
    spec:
      subdomain: peers
      serviceAccountName: default
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
      containers:
      - name: a
        env:
        - {name: RDZV_ENDPOINT, value: "store:2379"}
        - {name: OTHER_ENDPOINT, value: "store.ml.svc:2379"}
        - {name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: t}}}
        - {name: LOST, valueFrom: {secretKeyRef: {name: lost, key: t}}}
`
	objects, err := manifest.Read("set", []byte(set))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range refs.Links(objects) {
		got = append(got, fmt.Sprintf("%s %s %s %s %s", l.From.Name, l.How, l.To.Kind, l.To.Name, l.Port))
	}
	want := []string{
		"a uses PersistentVolumeClaim data ", "a uses Secret token ", "a named by Service peers ",
		"a dials Service store 2379", "peers selects Job a ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("links are\n%q, want\n%q", got, want)
	}
}
