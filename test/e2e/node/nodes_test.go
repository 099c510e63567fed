package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// addNodes joins nodes of the test's own, at the same time, with these labels and taints. At the end of the test they
// are no more.
func (w *world) addNodes(t *testing.T, n int, labels map[string]string, taints ...corev1.Taint) (names []string) {
	t.Helper()
	began := time.Now()
	var joining sync.WaitGroup
	names = make([]string, n)
	errs := make([]error, n)
	for i := range n {
		joining.Go(func() { names[i], errs[i] = w.AddNode(t.Context(), labels, taints) })
	}
	joining.Wait()
	for _, name := range names {
		if name != "" {
			t.Cleanup(func() { w.removeNode(t, name) })
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%v joined after %.1f s", names, time.Since(began).Seconds())
	slices.Sort(names)
	return names
}

// removeNode ends a node, if it was not cut off before, and makes the cluster forget it and its pods.
func (w *world) removeNode(t *testing.T, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	_ = w.CutOff(ctx, name) // the scenario may have been about that
	if err := w.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		t.Errorf("removing Node %s: %v", name, err)
	}
	pods, err := w.client.CoreV1().Pods("").List(ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String()})
	if err != nil {
		t.Errorf("listing the pods of %s: %v", name, err)
		return
	}
	for _, pod := range pods.Items {
		err := w.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("removing pod %s from %s: %v", pod.Name, name, err)
		}
	}
}

// setCapacity makes a node say that it has this many of an extended resource, as a device plugin does.
func (w *world) setCapacity(t *testing.T, node string, resource corev1.ResourceName, n int) (at time.Time) {
	t.Helper()
	has := map[corev1.ResourceName]string{resource: fmt.Sprint(n)}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": has, "allocatable": has}})
	if err != nil {
		t.Fatal(err)
	}
	at = time.Now()
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{},
		"status"); err != nil {
		t.Fatalf("giving %s %d %s: %v", node, n, resource, err)
	}
	return at
}

// nodeOf is where a pod that printed an event was placed.
func (j *testJob) nodeOf(e event) string {
	j.t.Helper()
	for _, pod := range j.pods.states() {
		if pod.UID == e.UID {
			return pod.Spec.NodeName
		}
	}
	j.t.Fatalf("no pod %s", e.Pod)
	return ""
}

// cutOff cuts off a node, and returns when.
func (w *world) cutOff(t *testing.T, name string) (at time.Time) {
	t.Helper()
	at = time.Now()
	if err := w.CutOff(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Logf("cut off %s", name)
	return at
}
