package generators

import (
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// TestWorkloadAlone: on every target the labels and annotations of the workload are on what makes the pods that train,
// in the place of those of metadata, and on nothing else.
func TestWorkloadAlone(t *testing.T) {
	for _, target := range target.All {
		t.Run(target.Framework+"/"+target.Name, func(t *testing.T) {
			workloads := 0
			for _, c := range Generate(withWorkload(t, target)) {
				for _, obj := range c.Objects {
					_, runtime := obj.(*apis.TrainingRuntime) // what is run, and not the run
					is := c.Name == "worker" && !runtime
					if is {
						workloads++
					}
					checkWorkload(t, obj, is)
				}
			}
			if workloads == 0 {
				t.Error("it has no workload")
			}
		})
	}
}

// withWorkload is a job of the target with Jobs beside its workload.
func withWorkload(t *testing.T, target target.Target) *job.Job {
	t.Helper()
	text := strings.Replace(example(target, ""), "metadata: {",
		"metadata: {labels: {shared: all}, annotations: {shared: all}, ", 1) +
		"  workload: {labels: {own: x, shared: own}, annotations: {own: x, shared: own}}\n" +
		"  storage: [{mountPath: /data, dataset: {url: 'https://example.org/d.tar'}}]\n"
	jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return jobs[0]
}

// checkWorkload holds an object, and the templates of pods in it, against whether it is a workload.
func checkWorkload(t *testing.T, obj runtime.Object, is bool) {
	t.Helper()
	m, err := apimeta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"own": "", "shared": "all"}
	if is {
		want = map[string]string{"own": "x", "shared": "own"}
	}
	for key, value := range want {
		if m.GetLabels()[key] != value || m.GetAnnotations()[key] != value {
			t.Errorf("%T %s: want %s=%q, got labels %v, annotations %v", obj, m.GetName(), key, value, m.GetLabels(),
				m.GetAnnotations())
		}
	}
	w := apis.WorkloadOf(obj)
	if w == nil {
		return
	}
	for _, set := range w.PodSets() {
		p, bare := set.Template, set.Path == "" // a pod is its own template
		said := p.Labels["own"] != "" || p.Annotations["own"] != "" || p.Labels["shared"] == "own"
		if said && !bare && !set.Foreign {
			t.Errorf("%T %s: its pods have what is said of the workload: %v, %v", obj, m.GetName(), p.Labels,
				p.Annotations)
		}
	}
}
