package render

import (
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/schema/job"
)

// adding are options with one generator more.
func adding(t *testing.T, name string, generate func(*job.Job) ([]runtime.Object, error)) Options {
	t.Helper()
	set, err := generators.NewSet(generators.Generator{Name: name, Doc: "for tests", Generate: generate})
	if err != nil {
		t.Fatal(err)
	}
	return Options{Generators: set}
}

func configMap(j *job.Job) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: generators.Meta(j, j.Metadata.Name+"-more", "more")}
}

// TestAdded: the objects of an added generator follow tegen's own, in a file of their own, also in what is generated
// again.
func TestAdded(t *testing.T) {
	o := adding(t, "more", func(j *job.Job) ([]runtime.Object, error) { return []runtime.Object{configMap(j)}, nil })
	bundles, err := Jobs(jobs(t, ""), o)
	if err != nil {
		t.Fatal(err)
	}
	last := bundles[0].Files[len(bundles[0].Files)-1]
	objects := bundles[0].Objects()
	if last.Concern != "more" || !strings.Contains(string(last.YAML), "-more\n") ||
		objects[len(objects)-1].Name != "more" || len(objects) != len(bundles[0].Files) {
		t.Errorf("the last file is %+v, of %d concerns", last, len(objects))
	}
	o.Only = []string{"worker"}
	if bundles, err = Jobs(jobs(t, ""), o); err != nil || len(bundles[0].Files) != 1 ||
		bundles[0].Left[len(bundles[0].Left)-1].Name != "more" {
		t.Errorf("of the workers alone: %+v, %v", bundles, err)
	}
	o.Only = []string{"more"}
	if bundles, err = Jobs(jobs(t, ""), o); err != nil || len(bundles[0].Files) != 1 ||
		bundles[0].Files[0].Concern != "more" || len(bundles[0].Objects()) != 1 {
		t.Errorf("of the added one alone: %+v, %v", bundles, err)
	}
}

// TestAddedWrong: what is wrong with an added generator is an error of the job, which names the generator.
func TestAddedWrong(t *testing.T) {
	changed := func(change func(*corev1.ConfigMap)) func(j *job.Job) runtime.Object {
		return func(j *job.Job) runtime.Object {
			c := configMap(j)
			change(c)
			return c
		}
	}
	cases := map[string]func(j *job.Job) runtime.Object{
		"panic: assignment to entry in nil map (render/added_test.go:": func(*job.Job) runtime.Object {
			var m map[string]int
			m["a"] = 1 //nolint:staticcheck // it panics
			return nil
		},
		"object 1: naming the kind of an object: it is nil": func(*job.Job) runtime.Object { return nil },
		"apiVersion or kind is missing; set them in the object": func(*job.Job) runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{}}
		},
		"has no name; set metadata.name":       changed(func(c *corev1.ConfigMap) { c.Name = "" }),
		"its namespace is not that of the job": changed(func(c *corev1.ConfigMap) { c.Namespace = "other" }),
		"it lacks the labels of the job":       changed(func(c *corev1.ConfigMap) { c.Labels = nil }),
		"it has no namespace; make its":        changed(func(c *corev1.ConfigMap) { c.Namespace = "" }),
		"make its metadata with generators.Ver": func(j *job.Job) runtime.Object {
			return &batchv1.Job{ObjectMeta: generators.Meta(j, j.Metadata.Name+"-more", "more")}
		},
		"the job has another object of this name": func(j *job.Job) runtime.Object {
			return &corev1.Service{ObjectMeta: generators.Meta(j, j.Metadata.Name+"-worker", "worker")}
		},
	}
	for want, object := range cases {
		_, err := Jobs(jobs(t, ""), adding(t, "more", func(j *job.Job) ([]runtime.Object, error) {
			return []runtime.Object{object(j)}, nil
		}))
		if err == nil || !strings.Contains(err.Error(), ":1:1: generator more: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestAddedErrors: each of several errors has a line, and one generator does not hide those of another.
func TestAddedErrors(t *testing.T) {
	set, err := generators.NewSet(
		generators.Generator{Name: "first", Doc: "for tests", Generate: func(*job.Job) ([]runtime.Object, error) {
			return nil, errors.Join(errors.New("one"), errors.New("two"))
		}},
		generators.Generator{Name: "second", Doc: "for tests", Generate: func(*job.Job) ([]runtime.Object, error) {
			return nil, errors.New("three")
		}},
	)
	if err != nil {
		t.Fatal(err)
	}
	bundles, err := Jobs(jobs(t, ""), Options{Generators: set})
	if err == nil || bundles != nil {
		t.Fatalf("%+v, %v", bundles, err)
	}
	for _, want := range []string{"generator first: one\n", "generator first: two\n", "generator second: three"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("without %q: %v", want, err)
		}
	}
}

// TestAddedReferences: an object of an added generator is judged with the others.
func TestAddedReferences(t *testing.T) {
	pod := func(volume string) Options {
		return adding(t, "more", func(j *job.Job) ([]runtime.Object, error) {
			p := &corev1.Pod{ObjectMeta: generators.VersionedMeta(j, j.Metadata.Name+"-more", "more")}
			p.Spec.Volumes = []corev1.Volume{{Name: "a"}}
			p.Spec.Volumes[0].ConfigMap = &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: volume},
			}
			return []runtime.Object{configMap(j), p}, nil
		})
	}
	all := jobs(t, "")
	if _, err := Jobs(all, pod(all[0].Metadata.Name+"-more")); err != nil {
		t.Error(err)
	}
	if _, err := Jobs(jobs(t, ""), pod("nowhere")); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a ConfigMap that is not there: %v", err)
	}
	_, err := Jobs(jobs(t, "", ""), adding(t, "more", func(j *job.Job) ([]runtime.Object, error) {
		return []runtime.Object{&corev1.ConfigMap{ObjectMeta: generators.Meta(j, "same", "more")}}, nil
	}))
	if err == nil || !strings.Contains(err.Error(), "would be rendered by job") {
		t.Errorf("one name in two jobs: %v", err)
	}
}

// TestAddedToCluster: an object without a namespace has the label of the job's.
func TestAddedToCluster(t *testing.T) {
	if _, err := Jobs(jobs(t, ""), adding(t, "more", func(j *job.Job) ([]runtime.Object, error) {
		m := generators.ClusterMeta(j, j.Metadata.Namespace+"-"+j.Metadata.Name, "more")
		return []runtime.Object{&metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Quota"}, ObjectMeta: m,
		}}, nil
	})); err != nil {
		t.Error(err)
	}
}
