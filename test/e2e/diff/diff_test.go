// Package diff holds the classes of 'tegen diff' to a real API server and its controllers: each case of
// internal/diff/testdata/cases.yaml is applied before and after its change.
package diff

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/tegen-dev/tegen/internal/diff"
	"github.com/tegen-dev/tegen/internal/diff/cases"
	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/wait"
)

const (
	atOnce   = 12
	patience = 90 * time.Second
	poll     = 100 * time.Millisecond
	// settling is how long controllers have to do what they should not.
	settling = 2 * time.Second
	nodes    = 3
	manager  = "tegen-test"
)

// lab is the cluster of all cases.
type lab struct {
	*cluster.Cluster
	mapper meta.RESTMapper
}

// TestDiff: a change that is refused is refused by the server, what happens to pods is what the class says, and a dump
// of what lives is told apart as the objects in git are.
func TestDiff(t *testing.T) {
	if os.Getenv("TEGEN_E2E") != "1" {
		t.Skip("starts a control plane: set TEGEN_E2E=1, as make e2e does")
	}
	text, err := os.ReadFile("../../../internal/diff/testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := cases.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	l := start(t)
	todo := make(chan int, len(all))
	tried := 0
	for i, c := range all {
		if c.Minor == cases.Newest && c.Status == nil && c.By == "" {
			tried++
			todo <- i
		}
	}
	close(todo)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := range todo {
				t.Run(all[i].Name, func(t *testing.T) { l.try(t, i, all[i]) })
			}
		})
	}
	wg.Wait()
	t.Logf("%d cases of %d were tried", tried, len(all))
}

func start(t *testing.T) *lab {
	c := cluster.Start(t, cluster.Options{})
	ctx := t.Context()
	if _, err := c.Nodes(ctx, nodes, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.StartStorage(ctx, t.TempDir(), t.Output()); err != nil {
		t.Fatal(err)
	}
	grows := []byte(`{"allowVolumeExpansion": true}`)
	if _, err := c.Client().StorageV1().StorageClasses().Patch(ctx, cluster.StorageClass, types.MergePatchType, grows,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	info, err := c.Client().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint(cases.Newest); info.Minor != want {
		t.Errorf("the server is 1.%s, the cases are of 1.%s: look at every rule with a version", info.Minor, want)
	}
	groups, err := restmapper.GetAPIGroupResources(c.Client().Discovery())
	if err != nil {
		t.Fatal(err)
	}
	return &lab{c, restmapper.NewDiscoveryRESTMapper(groups)}
}

// try applies a case's object before and after its change.
func (l *lab) try(t *testing.T, i int, c *cases.Case) {
	namespace := fmt.Sprintf("case-%d", i)
	l.makeNamespace(t, namespace)
	place := func(object map[string]any) *unstructured.Unstructured { return l.placed(t, namespace, object) }
	for _, o := range c.With {
		l.must(t, place(o))
	}
	old := place(c.Old()[0])
	if c.Bound {
		l.provide(t, old)
	}
	if first := c.Earlier(); first != nil {
		l.must(t, place(first))
		l.await(t, place(first))
	}
	l.must(t, old)
	l.await(t, old)
	if c.Bound {
		l.awaitBound(t, old)
	}
	live := l.live(t, old)
	l.same(t, "what lives, after it was applied", live, old)
	before := l.pods(t, namespace)
	if c.Delete {
		l.delete(t, c, old)
	} else {
		next := place(c.New()[0])
		if got := worst(t, append(c.With, live), append(c.With, next.Object)); got != c.Class {
			t.Errorf("of what lives the class is %q, want %q", got, c.Class)
		}
		l.change(t, c, next)
	}
	l.checkPods(t, c, namespace, before)
}

// change applies the object after its change, which the server takes or refuses.
func (l *lab) change(t *testing.T, c *cases.Case, next *unstructured.Unstructured) {
	t.Helper()
	err := l.apply(t.Context(), next)
	switch diff.Class(c.Class) {
	case diff.Refused, diff.Recreate, diff.Data: // in place; a reconciler that is told so deletes what is refused
		if err == nil || !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			t.Errorf("the class is %s, and the server says: %v", c.Class, err)
		}
	default:
		if err != nil {
			t.Fatalf("the class is %s, and the server says: %v", c.Class, err)
		}
		l.same(t, "what lives, after the change", l.live(t, next), next)
	}
}

// same fails where an object that was applied differs from what lives.
func (l *lab) same(t *testing.T, what string, live map[string]any, applied *unstructured.Unstructured) {
	t.Helper()
	r, err := diff.Compare([]map[string]any{live}, []map[string]any{applied.Object}, diff.Options{Minor: cases.Newest})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Jobs) > 0 {
		t.Errorf("%s, differs from what was applied: %+v", what, r.Jobs)
	}
}

func worst(t *testing.T, live, next []map[string]any) string {
	t.Helper()
	r, err := diff.Compare(live, next, diff.Options{Minor: cases.Newest})
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Worst)
}

// delete deletes the object; a claim's volume goes where the class is data.
func (l *lab) delete(t *testing.T, c *cases.Case, o *unstructured.Unstructured) {
	t.Helper()
	volume, _, _ := unstructured.NestedString(l.live(t, o), "spec", "volumeName")
	background := metav1.DeletePropagationBackground
	err := l.on(t, o).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		t.Fatal(err)
	}
	if c.Class != string(diff.Data) {
		return
	}
	if volume == "" {
		t.Fatalf("%s had no volume", o.GetName())
	}
	eventually(t, "the volume to go with its claim", func() error {
		_, err := l.Client().CoreV1().PersistentVolumes().Get(t.Context(), volume, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

// checkPods holds the pods to what the case says of those that were there.
func (l *lab) checkPods(t *testing.T, c *cases.Case, namespace string, before map[types.UID]bool) {
	t.Helper()
	if c.Pods == "" {
		return
	}
	if len(before) == 0 {
		t.Fatal("there was no pod before the change: nothing was tried")
	}
	if c.Pods == "kept" {
		time.Sleep(settling)
	}
	eventually(t, "pods to be "+c.Pods, func() error {
		left := 0
		for uid := range l.pods(t, namespace) {
			if before[uid] {
				left++
			}
		}
		if c.Pods == "kept" && left == len(before) || c.Pods == "gone" && left == 0 ||
			c.Pods == "some" && left > 0 && left < len(before) {
			return nil
		}
		return fmt.Errorf("%d of %d pods are left", left, len(before))
	})
}

// pods are those of a namespace that are not being deleted.
func (l *lab) pods(t *testing.T, namespace string) map[types.UID]bool {
	t.Helper()
	list, err := l.Client().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[types.UID]bool{}
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			all[p.UID] = true
		}
	}
	return all
}

// await waits until the controllers have done what an object asks for: its pods run, and no others.
func (l *lab) await(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	want, known := podsOf(o)
	if !known {
		return
	}
	eventually(t, fmt.Sprintf("%d pods of %s", want, o.GetName()), func() error {
		list, err := l.Client().CoreV1().Pods(o.GetNamespace()).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		running := 0
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running != want || len(list.Items) != want && o.GetKind() != "Pod" {
			return fmt.Errorf("%d of %d pods run", running, len(list.Items))
		}
		return settled(l.live(t, o))
	})
}

// settled says what a Job's status still lacks: a Job that is suspended says so once its pods are gone.
func settled(live map[string]any) error {
	if live["kind"] != "Job" {
		return nil
	}
	suspend, _, _ := unstructured.NestedBool(live, "spec", "suspend")
	conditions, _, _ := unstructured.NestedSlice(live, "status", "conditions")
	active, _, _ := unstructured.NestedInt64(live, "status", "active")
	if suspend && (active != 0 || !strings.Contains(fmt.Sprint(conditions), "Suspended")) {
		return errors.New("the Job is not known to be suspended")
	}
	return nil
}

// podsOf is how many pods of an object run.
func podsOf(o *unstructured.Unstructured) (n int, known bool) {
	number := func(field string) int {
		n, found, _ := unstructured.NestedInt64(o.Object, "spec", field)
		if !found {
			n = 1
		}
		return int(n)
	}
	suspend, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	gates, _, _ := unstructured.NestedSlice(o.Object, "spec", "schedulingGates")
	switch o.GetKind() {
	case "Job":
		if by, _, _ := unstructured.NestedString(o.Object, "spec", "managedBy"); suspend || by != "" {
			return 0, true
		}
		return number("parallelism"), true
	case "Pod":
		if len(gates) > 0 {
			return 0, true
		}
		return 1, true
	case "Deployment", "StatefulSet":
		if paused {
			return 0, true
		}
		return number("replicas"), true
	case "DaemonSet":
		return nodes, true
	}
	return 0, false
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	wait.Until(t, what, patience, poll, check)
}

// on is where an object lies.
func (l *lab) on(t *testing.T, o *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	gvk := o.GroupVersionKind()
	m, err := l.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return l.Dynamic().Resource(m.Resource)
	}
	return l.Dynamic().Resource(m.Resource).Namespace(o.GetNamespace())
}
