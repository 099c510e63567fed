package operators

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// made waits until there are so many pods, whatever becomes of them, and returns them.
func (p *place) made(want int, namespace, selector string) (pods []corev1.Pod) {
	p.Helper()
	p.eventually(fmt.Sprintf("%d pods", want), func() (err error) {
		pods, err = p.pods(namespace, selector)
		if err == nil && len(pods) != want {
			err = fmt.Errorf("there are %d", len(pods))
		}
		return err
	})
	return pods
}

// kept checks that there are so many pods.
func (p *place) kept(want int, namespace, selector string) error {
	pods, err := p.pods(namespace, selector)
	if err == nil && len(pods) != want {
		err = fmt.Errorf("there are %d pods, want %d", len(pods), want)
	}
	return err
}

// number is an integer at a place of an object, whether a file or the cluster has it.
func (p *place) number(o *unstructured.Unstructured, path ...string) int {
	p.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	switch n := value.(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	p.Fatalf("%s %s has no number at %v: %v, %v, %v", o.GetKind(), o.GetName(), path, value, found, err)
	return 0
}

// template is the pod template at a place of an object.
func (p *place) template(o *unstructured.Unstructured, path ...string) (t corev1.PodTemplateSpec) {
	p.Helper()
	tree, found, err := unstructured.NestedMap(o.Object, path...)
	if err != nil || !found {
		p.Fatalf("%s %s has no %v: %v", o.GetKind(), o.GetName(), path, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, &t); err != nil {
		p.Fatal(err)
	}
	return t
}

// each is a scenario for each of some golden files.
func each(name string, run func(p *place, golden string), goldens ...string) (all []scenario) {
	for _, golden := range goldens {
		all = append(all, scenario{name + " of " + golden, func(p *place) { run(p, golden) }})
	}
	return all
}

// admit applies objects after the PriorityClasses that they expect, without which no pod is made, and returns the
// ElasticJob among them. A program's own namespace, in which some golden files are, is left alone.
func (p *place) admit(objects []*unstructured.Unstructured) *unstructured.Unstructured {
	p.Helper()
	job := p.the("ElasticJob", objects)
	_, err := p.client.CoreV1().Namespaces().Get(p.Context(), job.GetNamespace(), metav1.GetOptions{})
	if err == nil {
		p.Skipf("the namespace %s is somebody's", job.GetNamespace())
	}
	for entry := range strings.SplitSeq(job.GetAnnotations()["tegen.dev/expects"], ",") {
		if name, ok := strings.CutPrefix(entry, "PriorityClass/"); ok {
			p.priority(name, 1000)
		}
	}
	p.apply(objects...)
	return job
}
