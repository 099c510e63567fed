package generators_test

import (
	"maps"
	"testing"

	"github.com/tegen-dev/tegen/internal/names"
)

// TestLabelTracking: where Argo CD tracks what it has applied by a label, it writes the name of its Application into
// app.kubernetes.io/instance of every object, bare pods among them. Selectors find their pods all the same, and so
// does the label of a job's objects.
func TestLabelTracking(t *testing.T) {
	const etcd = "rendezvous: {backend: etcd, store: etcd}"
	for what, spec := range map[string][]string{
		"job":  {etcd},
		"pods": {"target: pods", etcd},
		"ps":   {"framework: mxnet"},
	} {
		t.Run(what, func(t *testing.T) {
			job := load(t, jobText(spec...))
			objs := objects(job)
			for _, obj := range objs {
				labels := maps.Clone(meta(t, obj).GetLabels())
				labels["app.kubernetes.io/instance"] = "applications"
				meta(t, obj).SetLabels(labels)
			}
			for _, wrong := range append(selectors(job, objs), namespaces(job, objs)...) {
				t.Error(wrong)
			}
			for _, p := range pods(objs) {
				if p.labels[names.LabelJob] != job.Metadata.Name {
					t.Errorf("%s: its pods lack the job's label: %v", p.from, p.labels)
				}
			}
		})
	}
}
