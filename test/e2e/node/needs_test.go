package node

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/test/e2e/objects"
)

// podSpecs are those of pods and of pod templates, at whatever depth: a JobSet has several.
func podSpecs(t *testing.T, all []*objects.Object) (specs []corev1.PodSpec) {
	t.Helper()
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, v := range value {
				walk(v)
			}
		case map[string]any:
			if _, ok := value["containers"].([]any); ok {
				var spec corev1.PodSpec
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(value, &spec); err != nil {
					t.Fatalf("reading a pod's spec: %v", err)
				}
				specs = append(specs, spec)
				return
			}
			for _, v := range value {
				walk(v)
			}
		}
	}
	for _, o := range all {
		walk(o.Object)
	}
	return specs
}

// images are the names of all images that the nodes will be asked for, sorted.
func images(t *testing.T, all []*objects.Object) (names []string) {
	t.Helper()
	for _, spec := range podSpecs(t, all) {
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			names = append(names, c.Image)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// keys are what containers read of a ConfigMap or Secret: a node starts none where one is missing.
func keys(specs []corev1.PodSpec, kind, name string) (all []string) {
	add := func(of, from, key string) {
		if of == kind && from == name {
			all = append(all, key)
		}
	}
	for _, spec := range specs {
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			for _, env := range c.Env {
				if from := env.ValueFrom; from != nil && from.SecretKeyRef != nil {
					add("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key)
				} else if from != nil && from.ConfigMapKeyRef != nil {
					add("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)
				}
			}
		}
		for _, v := range spec.Volumes {
			if v.Secret != nil {
				for _, item := range v.Secret.Items {
					add("Secret", v.Secret.SecretName, item.Key)
				}
			}
			if v.ConfigMap != nil {
				for _, item := range v.ConfigMap.Items {
					add("ConfigMap", v.ConfigMap.Name, item.Key)
				}
			}
		}
	}
	return all
}

// provideExpected makes what the manifest says must be there (the annotation names.Expects): ConfigMaps and Secrets
// with the keys that containers read. What is there already stays as it is. A Service, a PriorityClass and the like are
// left to the test.
func (j *testJob) provideExpected() {
	j.t.Helper()
	specs := podSpecs(j.t, j.objects)
	for _, o := range j.objects {
		for _, kind := range []string{"ConfigMap", "Secret"} {
			for _, name := range o.Expects(kind) {
				data := map[string]string{}
				for _, key := range keys(specs, kind, name) {
					data[key] = "made for a test"
				}
				j.provide(j.t, j.namespace, kind, name, data)
			}
		}
	}
}

// provide makes a ConfigMap or a Secret in a namespace that was entered, where there is none of that name. It is no
// job's, and outlives them all.
func (w *world) provide(t *testing.T, namespace, kind, name string, data map[string]string) {
	t.Helper()
	var err error
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	switch kind {
	case "ConfigMap":
		_, err = w.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: meta,
			Data:       data,
		}, metav1.CreateOptions{})
	case "Secret":
		_, err = w.client.CoreV1().Secrets(namespace).Create(t.Context(),
			&corev1.Secret{ObjectMeta: meta, StringData: data}, metav1.CreateOptions{})
	default:
		t.Fatalf("a test does not know how to make a %s", kind)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("making %s %s: %v", kind, name, err)
	}
	w.guard.Lock()
	defer w.guard.Unlock()
	w.before[namespace][kind+"/"+name] = true
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	const text = `{"kind": "Job", "metadata": {"name": "a"}, "spec": {"template": {"spec": {
		"initContainers": [{"name": "wait", "image": "curl:1"}],
		"containers": [{"name": "worker", "image": "torch:1", "env": [
			{"name": "A", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
			{"name": "B", "valueFrom": {"configMapKeyRef": {"name": "hub", "key": "address"}}}]},
			{"name": "sidecar", "image": "curl:1"}],
		"volumes": [{"name": "v", "secret": {"secretName": "hub", "items": [{"key": "ca", "path": "ca.crt"}]}}]}}}}`
	o := &objects.Object{Unstructured: &unstructured.Unstructured{}}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	all := []*objects.Object{o}
	if got, want := strings.Join(images(t, all), " "), "curl:1 torch:1"; got != want {
		t.Errorf("got the images %s, want %s", got, want)
	}
	if got, want := strings.Join(keys(podSpecs(t, all), "Secret", "hub"), " "), "token ca"; got != want {
		t.Errorf("got the keys %s, want %s", got, want)
	}
}
