package operators

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// What Kubeflow's controllers have in common.

// variables are those of a pod's container as its process sees them: of two of one name the later wins. Those with a
// source have its path in place of a value.
func (p *place) variables(pod corev1.Pod, container string) map[string]string {
	p.Helper()
	all := map[string]string{}
	for _, c := range pod.Spec.Containers {
		if c.Name != container {
			continue
		}
		for _, e := range c.Env {
			all[e.Name] = e.Value
			if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
				all[e.Name] = e.ValueFrom.FieldRef.FieldPath
			}
		}
		return all
	}
	p.Fatalf("pod %s has no container %s", pod.Name, container)
	return nil
}

// have checks the variables of a pod's container, those that are wanted absent with the value "-".
func (p *place) have(pod corev1.Pod, container string, want map[string]string) {
	p.Helper()
	got := p.variables(pod, container)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value, set := got[name]
		switch {
		case want[name] == "-" && set:
			p.Errorf("pod %s: %s is %q, want none", pod.Name, name, value)
		case want[name] != "-" && (!set || value != want[name]):
			p.Errorf("pod %s: %s is %q (set: %v), want %q", pod.Name, name, value, set, want[name])
		}
	}
}

// behind checks that a container's variables begin with ours, in our order.
func (p *place) behind(pod corev1.Pod, container string, ours []string) {
	p.Helper()
	var got []string
	for _, c := range pod.Spec.Containers {
		if c.Name == container {
			for _, e := range c.Env {
				got = append(got, e.Name)
			}
		}
	}
	if len(got) < len(ours) || !slices.Equal(got[:len(ours)], ours) {
		p.Errorf("pod %s: variables are %v, want those of its template before all others: %v", pod.Name, got, ours)
	}
}

// setEnv gives the first container of a role these variables in place of its own, each with a value of nobody's.
func setEnv(p *place, job *unstructured.Unstructured, roles, role string, names ...string) {
	p.Helper()
	path := []string{"spec", roles, role, "template", "spec", "containers"}
	containers, _, _ := unstructured.NestedSlice(job.Object, path...)
	var env []any
	for _, name := range names {
		env = append(env, map[string]any{"name": name, "value": "ours"})
	}
	containers[0].(map[string]any)["env"] = env
	if err := unstructured.SetNestedSlice(job.Object, containers, path...); err != nil {
		p.Fatal(err)
	}
}

// named checks the names of pods, which are sorted.
func (p *place) named(pods []corev1.Pod, want ...string) {
	p.Helper()
	var got []string
	for _, pod := range pods {
		got = append(got, pod.Name)
	}
	if !slices.Equal(got, want) {
		p.Errorf("pods are %v, want %v", got, want)
	}
}

// reached checks that each pod has a headless Service of its name that finds it and no other, which is how these
// controllers give pods their names.
func (p *place) reached(pods []corev1.Pod) {
	p.Helper()
	for _, pod := range pods {
		p.eventually("the Service of "+pod.Name, func() error {
			s, err := p.client.CoreV1().Services(pod.Namespace).Get(p.Context(), pod.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if s.Spec.ClusterIP != corev1.ClusterIPNone {
				return fmt.Errorf("it has the address %s", s.Spec.ClusterIP)
			}
			found, err := p.pods(pod.Namespace, metav1.FormatLabelSelector(metav1.SetAsLabelSelector(s.Spec.Selector)))
			if err == nil && (len(found) != 1 || found[0].Name != pod.Name) {
				err = fmt.Errorf("it selects %d pods by %v", len(found), s.Spec.Selector)
			}
			return err
		})
	}
}

// vanishes waits until an object is gone.
func (p *place) vanishes(o *unstructured.Unstructured) {
	p.Helper()
	p.eventually(fmt.Sprintf("%s %s to be gone", o.GetKind(), o.GetName()), func() error {
		_, err := p.get(p.Context(), o)
		if err == nil {
			return fmt.Errorf("it is there")
		}
		if strings.Contains(err.Error(), "not found") {
			return nil
		}
		return err
	})
}

// restarted says of running pods what a kubelet does whose containers ended and were started anew: KWOK never does.
func (p *place) restarted(count int, pods ...corev1.Pod) {
	p.Helper()
	for _, pod := range pods {
		patch := fmt.Sprintf(`[{"op":"replace","path":"/status/containerStatuses/0/restartCount","value":%d}]`, count)
		if _, err := p.client.CoreV1().Pods(pod.Namespace).Patch(p.Context(), pod.Name, types.JSONPatchType,
			[]byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			p.Fatal(err)
		}
	}
}

// refused applies what a webhook must refuse, in these words.
func (p *place) refused(o *unstructured.Unstructured, words string) {
	p.Helper()
	if ns := o.GetNamespace(); ns != "" {
		p.enter(ns)
	}
	err := p.applyOne(o)
	if err == nil || !strings.Contains(err.Error(), words) {
		p.Errorf("applying %s %s: %v, want a refusal with %q", o.GetKind(), o.GetName(), err, words)
	}
}

// missesDeadline checks what the training operator makes of a deadline of 5 s: it looks at it when something changes,
// and sets no clock.
func (p *place) missesDeadline(job *unstructured.Unstructured, pods int) {
	p.Helper()
	p.running(pods, p.namespace, "")
	time.Sleep(10 * time.Second)
	p.remains("the job", func() error { return p.exist(p.namespace, pods) })
	p.set(job, "now", "metadata", "annotations", "look")
	p.condition(job, "Failed")
	p.gone(p.namespace)
}

// exist checks the number of a namespace's pods.
func (p *place) exist(namespace string, want int) error { return p.selected(namespace, "", want) }

// selected checks how many pods of a namespace a selector finds.
func (p *place) selected(namespace, selector string, want int) error {
	pods, err := p.pods(namespace, selector)
	if err == nil && len(pods) != want {
		err = fmt.Errorf("there are %d: %s", len(pods), podNames(pods))
	}
	return err
}
