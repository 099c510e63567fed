package generators_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// load reads the one job of a YAML text, completed as every command of the product completes it. Its objects record no
// digest of the input, which every change of a job changes; TestOrigin holds that record.
func load(t testing.TB, text string) *job.Job {
	t.Helper()
	jobs := loadAll(t, schema.Source{Name: "job.yaml", Data: []byte(text)})
	if len(jobs) != 1 {
		t.Fatalf("%d jobs in the text, want 1", len(jobs))
	}
	return jobs[0].WithoutInput()
}

func loadAll(t testing.TB, sources ...schema.Source) []*job.Job {
	t.Helper()
	jobs, err := schema.Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func source(t testing.TB, file string) schema.Source {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return schema.Source{Name: file, Data: text}
}

// jobText is a TrainingJob that lacks nothing, with more lines of spec, which may replace those listed here.
func jobText(spec ...string) string { return namedJob("resnet", spec...) }

func namedJob(name string, spec ...string) string {
	defaults := []string{"image: example.org/train:1.0", "command: [python, train.py]", "workers: {replicas: 2}"}
	text := "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: " + name + ", namespace: ml}\nspec:\n"
	for _, line := range defaults {
		key, _, _ := strings.Cut(line, ":")
		if !slices.ContainsFunc(spec, func(own string) bool { return strings.HasPrefix(own, key+":") }) {
			text += "  " + line + "\n"
		}
	}
	for _, line := range spec {
		text += "  " + strings.ReplaceAll(line, "\n", "\n  ") + "\n"
	}
	return text
}

// objects are all objects of a job, in order.
func objects(j *job.Job, only ...string) []runtime.Object {
	var out []runtime.Object
	for _, c := range generators.Generate(j, only...) {
		out = append(out, c.Objects...)
	}
	return out
}

// find returns the object of a type and name.
func find[T runtime.Object](t testing.TB, objs []runtime.Object, name string) T {
	t.Helper()
	var names []string
	for _, obj := range objs {
		if o, ok := obj.(T); ok {
			if meta(t, obj).GetName() == name {
				return o
			}
			names = append(names, meta(t, obj).GetName())
		}
	}
	var none T
	t.Fatalf("no %T named %q, only %q", none, name, names)
	return none
}

// all returns the objects of a type.
func all[T runtime.Object](objs []runtime.Object) []T {
	var out []T
	for _, obj := range objs {
		if o, ok := obj.(T); ok {
			out = append(out, o)
		}
	}
	return out
}

func meta(t testing.TB, obj runtime.Object) metav1.Object {
	t.Helper()
	m, err := apimeta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// pod is what an object makes pods of, or a Pod itself.
type pod struct {
	from      string
	namespace string
	labels    map[string]string
	spec      corev1.PodSpec
}

func pods(objs []runtime.Object) []pod {
	var out []pod
	for _, obj := range objs {
		w := apis.WorkloadOf(obj)
		if w == nil {
			continue
		}
		for _, set := range w.PodSets() {
			spec := set.Template.Spec
			if set.Foreign {
				spec = corev1.PodSpec{} // no matter of ours
			}
			from := w.GetName() + "/" + set.Path
			if kind := reflect.TypeOf(obj).Elem().Name(); apis.IsBuiltIn(kind) {
				from = kind + "/" + w.GetName()
			}
			out = append(out, pod{from, w.GetNamespace(), set.Template.Labels, spec})
		}
	}
	return out
}

func (p pod) containers() []corev1.Container {
	return slices.Concat(p.spec.InitContainers, p.spec.Containers)
}

// trainers are the names that targets give a worker's container.
var trainers = containersOf(job.RoleWorker)

// containersOf are the names that targets give the container of a role.
func containersOf(role string) (names []string) {
	for _, target := range target.All {
		spec := job.Spec{Framework: target.Framework, Target: target.Name}
		names = append(names, spec.ContainerOf(role))
	}
	return names
}

// worker is the training container of the first worker.
func worker(t testing.TB, objs []runtime.Object) corev1.Container {
	t.Helper()
	for _, p := range pods(objs) {
		for _, c := range p.spec.Containers {
			if slices.Contains(trainers, c.Name) {
				return c
			}
		}
	}
	t.Fatal("no worker container")
	return corev1.Container{}
}

// env is a container's environment as one map; a reference reads as its field path or key.
func env(t testing.TB, c corev1.Container) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, e := range c.Env {
		if _, ok := out[e.Name]; ok {
			t.Errorf("container %s sets %s twice", c.Name, e.Name)
		}
		switch {
		case e.ValueFrom == nil:
			out[e.Name] = e.Value
		case e.ValueFrom.FieldRef != nil:
			out[e.Name] = e.ValueFrom.FieldRef.FieldPath
		case e.ValueFrom.SecretKeyRef != nil:
			out[e.Name] = "secret " + e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		case e.ValueFrom.ConfigMapKeyRef != nil:
			out[e.Name] = "configmap " + e.ValueFrom.ConfigMapKeyRef.Name + "/" + e.ValueFrom.ConfigMapKeyRef.Key
		}
	}
	return out
}

// id is Kind/name of an object.
func id(t testing.TB, obj runtime.Object) string {
	t.Helper()
	gvk, err := manifest.GVK(obj)
	if err != nil {
		t.Fatal(err)
	}
	return gvk.Kind + "/" + meta(t, obj).GetName()
}

// text is an object's YAML.
func text(t testing.TB, obj runtime.Object) string {
	t.Helper()
	out, err := manifest.Append(nil, obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// texts is the YAML of every object by Kind/name.
func texts(t testing.TB, objs []runtime.Object) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, obj := range objs {
		if _, ok := out[id(t, obj)]; ok {
			t.Errorf("%s is rendered twice", id(t, obj))
		}
		out[id(t, obj)] = text(t, obj)
	}
	return out
}

// changed lists what differs between two renders: Kind/name, and the field within the object; an object that only one
// of them has is listed with a sign before it.
func changed(t testing.TB, before, after []runtime.Object) []string {
	t.Helper()
	was, is := texts(t, before), texts(t, after)
	var out []string
	for id, old := range was {
		now, ok := is[id]
		if !ok {
			out = append(out, "-"+id)
			continue
		}
		if old == now {
			continue
		}
		for _, path := range differences(values(t, old), values(t, now), "") {
			out = append(out, id+" "+path)
		}
	}
	for id := range is {
		if _, ok := was[id]; !ok {
			out = append(out, "+"+id)
		}
	}
	slices.Sort(out)
	return out
}

func values(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func differences(a, b any, at string) []string {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	if l, ok := a.([]any); ok {
		if r, ok := b.([]any); ok && len(l) == len(r) {
			var out []string
			for i := range l {
				out = append(out, differences(l[i], r[i], fmt.Sprintf("%s[%d]", at, i))...)
			}
			return out
		}
	}
	l, ok := a.(map[string]any)
	r, also := b.(map[string]any)
	if !ok || !also {
		return []string{strings.TrimPrefix(at, ".")}
	}
	keys := map[string]bool{}
	for k := range l {
		keys[k] = true
	}
	for k := range r {
		keys[k] = true
	}
	var out []string
	for k := range keys {
		out = append(out, differences(l[k], r[k], at+"."+k)...)
	}
	slices.Sort(out)
	return out
}
