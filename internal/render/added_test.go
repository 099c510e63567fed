package render

import (
	"errors"
	"fmt"
	gort "runtime"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/diff"
	"github.com/tegen-dev/tegen/internal/policy"
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

func partial(apiVersion, kind string, m metav1.ObjectMeta) runtime.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: m,
	}
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
		"object 1: it is nil; leave it out": func(*job.Job) runtime.Object { return nil },
		"object 1: it is a nil *v1.ConfigMap; leave it out": func(*job.Job) runtime.Object {
			return (*corev1.ConfigMap)(nil)
		},
		"panic: strings: negative Repeat count (render/added_test.go:": func(*job.Job) runtime.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", -1)}}
		},
		"it is a list, *v1.PodList; return its items": func(*job.Job) runtime.Object { return &corev1.PodList{} },
		"it called runtime.Goexit; return an error":   func(*job.Job) runtime.Object { gort.Goexit(); return nil },
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
		"ClusterRole ml/j0-more: its kind has no namespace; make its metadata with generators.ClusterMeta": func(
			j *job.Job,
		) runtime.Object {
			return &rbacv1.ClusterRole{ObjectMeta: generators.Meta(j, j.Metadata.Name+"-more", "more")}
		},
		"ConfigMap j0-more: it has no namespace; make its metadata with generators.Meta": func(
			j *job.Job,
		) runtime.Object {
			return &corev1.ConfigMap{ObjectMeta: generators.ClusterMeta(j, j.Metadata.Name+"-more", "more")}
		},
		"its name is not valid": changed(func(c *corev1.ConfigMap) { c.Name = "A_b" }),
		"tegen.dev/v1alpha1 is for the input of tegen": func(j *job.Job) runtime.Object {
			return partial("tegen.dev/v1alpha1", "TrainingJob", generators.Meta(j, "a", "more"))
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
			two := errors.Join(errors.New("two"), fmt.Errorf("%w or %w", errors.New("four"), errors.New("five")))
			return nil, errors.Join(errors.New("one"), two, errors.New(""))
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
	for _, want := range []string{
		"generator first: one\n", "generator first: two\n", "first: four or five\n",
		"generator first: it returned an error without text\n", "generator second: three",
	} {
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
		return []runtime.Object{partial("example.com/v1", "Quota", m)}, nil
	})); err != nil {
		t.Error(err)
	}
}

// TestAddedChangesJob: a generator that changes the job is an error, and none runs after it: tegen's own objects share
// memory with the job.
func TestAddedChangesJob(t *testing.T) {
	for name, change := range map[string]func(j *job.Job){
		"a slice":      func(j *job.Job) { slices.Sort(j.Spec.Command) },
		"a map":        func(j *job.Job) { j.Metadata.Labels["a"] = "b" },
		"a field":      func(j *job.Job) { j.Spec.Workers.Replicas++ },
		"a role":       func(j *job.Job) { j.Spec.Groups[0].RuntimeClass = "kata" },
		"the policy":   func(j *job.Job) { j.WithoutPolicy() },
		"the input":    func(j *job.Job) { j.WithoutInput() },
		"before panic": func(j *job.Job) { j.Spec.Image = "a"; panic("b") },
	} {
		all := jobs(t, "")
		all[0].Metadata.Labels, all[0].Origin.Policy = map[string]string{}, &policy.Policy{}
		all[0].Spec.Command, all[0].Spec.Groups = []string{"b", "a"}, []job.Group{{Name: "eval"}}
		_, err := added(all[0], []generators.Generator{
			{Name: "more", Generate: func(j *job.Job) ([]runtime.Object, error) { change(j); return nil, nil }},
			{Name: "next", Generate: func(*job.Job) ([]runtime.Object, error) { return nil, errors.New("it ran") }},
		}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "generator more: it changed the job; copy what it changes") ||
			strings.Contains(err.Error(), "it ran") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAddedUnselected: a generator does not run if spec.generators names others.
func TestAddedUnselected(t *testing.T) {
	o := adding(t, "more", func(*job.Job) ([]runtime.Object, error) { panic("it ran") })
	o.Only = []string{"worker"}
	if bundles, err := Jobs(jobs(t, ""), o); err != nil || len(bundles[0].Files) != 1 {
		t.Errorf("%+v, %v", bundles, err)
	}
}

// TestAddedGroups: kinds of two API groups may have the same name, and their objects too.
func TestAddedGroups(t *testing.T) {
	name := func(j *job.Job) metav1.ObjectMeta { return generators.Meta(j, j.Metadata.Name+"-worker", "worker") }
	if _, err := Jobs(jobs(t, ""), adding(t, "more", func(j *job.Job) ([]runtime.Object, error) {
		return []runtime.Object{partial("serving.knative.dev/v1", "Service", name(j))}, nil
	})); err != nil {
		t.Error(err)
	}
}

// TestAddedImage: an image of another tag changes no pod template of an added component, not even one with the labels
// of VersionedMeta. A Job with the training image has a name with the hash of its template. An API server accepts both.
func TestAddedImage(t *testing.T) {
	o := adding(t, "more", func(j *job.Job) ([]runtime.Object, error) {
		var made []runtime.Object
		for _, image := range []string{"more:1", j.Spec.Image} {
			var template corev1.PodTemplateSpec
			template.Labels = generators.VersionedMeta(j, "", "more").Labels
			template.Spec.Containers = []corev1.Container{{Name: "more", Image: image}}
			name := j.Metadata.Name + "-" + generators.ContentHash(template)
			made = append(made, &batchv1.Job{
				ObjectMeta: generators.VersionedMeta(j, name, "more"), Spec: batchv1.JobSpec{Template: template},
			})
		}
		return made, nil
	})
	o.Only = []string{"more"}
	var states [2][]map[string]any
	for i, image := range []string{"train:1", "train:2"} {
		all := jobs(t, "")
		all[0].Spec.Image = image
		bundles, err := Jobs(all, o)
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.SplitSeq(string(bundles[0].Files[0].YAML), "---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			states[i] = append(states[i], object)
		}
	}
	r, err := diff.Compare(states[0], states[1], diff.Options{})
	if err != nil || r.Counts[diff.Refused] != 0 || len(r.Counts) == 0 || r.Counts[diff.InPlace] != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	labels := generators.VersionedMeta(jobs(t, "")[0], "a", job.RoleWorker).Labels
	if labels["app.kubernetes.io/version"] != "1" {
		t.Errorf("the labels of a worker are %v", labels)
	}
}
