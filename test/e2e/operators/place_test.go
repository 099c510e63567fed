package operators

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/internal/render"
	tegen "github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/test/cases"
	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/e2e/objects"
)

const (
	root = "../../.."
	// patience is for what happens within seconds, on a machine that also compiles; stillness is how long a state must
	// last that should not change.
	patience  = 2 * time.Minute
	stillness = 5 * time.Second
	poll      = 250 * time.Millisecond
	// reserved is the label and the taint of the nodes that a place has for itself.
	reserved = "tegen.dev/e2e-operators"
)

// place is where a scenario is tried: a namespace, the nodes, and what was applied.
type place struct {
	*testing.T
	*suite
	program   program
	namespace string // of jobs that the scenario renders; a golden file has its own
	entered   []string
	added     []string // nodes
	mu        sync.Mutex
	applied   []*unstructured.Unstructured
}

func (s *suite) newPlace(t *testing.T, p program) *place {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimPrefix(t.Name(), "TestOperators/")))
	name = strings.Trim(name[:min(len(name), 63-len("e2e-"))], "-")
	at := &place{T: t, suite: s, program: p, namespace: "e2e-" + name}
	t.Cleanup(at.leave)
	return at
}

// Context ends with an interrupt, and not with the scenario.
func (p *place) Context() context.Context { return p.ctx }

// enter makes a namespace. One that is there already is somebody else's.
func (p *place) enter(namespace string) {
	p.Helper()
	if slices.Contains(p.entered, namespace) {
		return
	}
	client := p.client.CoreV1()
	_, err := client.Namespaces().Create(p.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		p.Fatalf("the namespace %s is there already, and the suite deletes only what it makes: delete it "+
			"(kubectl delete namespace %[1]s), or use another cluster", namespace)
	}
	if err != nil {
		p.Fatal(err)
	}
	p.entered = append(p.entered, namespace)
	p.eventually("the account of "+namespace, func() error {
		_, err := client.ServiceAccounts(namespace).Get(p.Context(), "default", metav1.GetOptions{})
		return err
	})
}

// golden is the objects of a fixture, which a golden file or the digests of golden/objects.txt hold, as they are.
func (p *place) golden(name string) []*unstructured.Unstructured {
	p.Helper()
	c := cases.Case{Fixture: name, Overlay: cases.Base}
	text, err := c.Render(root)
	if err != nil {
		p.Fatal(err)
	}
	return p.read(c.String(), text)
}

// rendered is what a job becomes: its spec, in the flow style or indented by two.
func (p *place) rendered(name, spec string) []*unstructured.Unstructured {
	p.Helper()
	text := fmt.Sprintf("apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: %s, namespace: %s}\n"+
		"spec:\n%s", name, p.namespace, spec)
	jobs, err := tegen.Load([]tegen.Source{{Name: name + ".yaml", Data: []byte(text)}})
	if err != nil {
		p.Fatalf("%v\n%s", err, text)
	}
	bundles, err := render.Jobs(jobs, render.Options{})
	if err != nil {
		p.Fatal(err)
	}
	var out strings.Builder
	if err := render.Write(&out, bundles); err != nil {
		p.Fatal(err)
	}
	return p.read(name, []byte(out.String()))
}

func (p *place) read(file string, text []byte) (all []*unstructured.Unstructured) {
	p.Helper()
	list, err := objects.Read(file, text)
	if err != nil {
		p.Fatal(err)
	}
	for _, o := range list {
		all = append(all, o.Unstructured)
	}
	return all
}

// apply does what kubectl apply --server-side does, in namespaces that it makes.
func (p *place) apply(objects ...*unstructured.Unstructured) {
	p.Helper()
	for _, o := range objects {
		if ns := o.GetNamespace(); ns != "" {
			p.enter(ns)
		} else if o.GetKind() == "Namespace" {
			p.enter(o.GetName())
		}
		if err := p.applyOne(o); err != nil {
			p.Fatalf("applying %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func (p *place) applyOne(o *unstructured.Unstructured) error {
	client, err := p.on(o)
	if err != nil {
		return err
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.applied = append(p.applied, o)
	p.mu.Unlock()
	_, err = client.Patch(p.Context(), o.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: "tegen-e2e", Force: new(true), FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// delete deletes in the order opposite to that of applying, and waits for nothing.
func (p *place) delete(ctx context.Context, objects ...*unstructured.Unstructured) {
	p.Helper()
	for _, o := range slices.Backward(objects) {
		client, err := p.on(o)
		if err == nil {
			err = client.Delete(ctx, o.GetName(), metav1.DeleteOptions{
				PropagationPolicy: new(metav1.DeletePropagationBackground),
			})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			p.Errorf("deleting %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// get is an object as it is in the cluster.
func (p *place) get(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client, err := p.on(o)
	if err != nil {
		return nil, err
	}
	return client.Get(ctx, o.GetName(), metav1.GetOptions{})
}

// live is get, which must succeed.
func (p *place) live(o *unstructured.Unstructured) *unstructured.Unstructured {
	p.Helper()
	got, err := p.get(p.Context(), o)
	if err != nil {
		p.Fatal(err)
	}
	return got
}

// the is the one object of a kind among some.
func (p *place) the(kind string, among []*unstructured.Unstructured) *unstructured.Unstructured {
	p.Helper()
	var found []*unstructured.Unstructured
	for _, o := range among {
		if o.GetKind() == kind {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		p.Fatalf("there are %d of kind %s, want one", len(found), kind)
	}
	return found[0]
}

// needs skips a scenario that is of another program too, where that is not there.
func (p *place) needs(other program) {
	p.Helper()
	if absent := p.absent(p.T, other); absent != "" {
		p.Skipf("needs %s: the cluster does not serve %s", other.name, absent)
	}
}

// list is all objects of a kind in a namespace.
func (p *place) list(gvk schema.GroupVersionKind, namespace string) []unstructured.Unstructured {
	p.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	client, err := p.on(o)
	if err != nil {
		p.Fatal(err)
	}
	all, err := client.List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return all.Items
}

// set changes one field of an object in the cluster, as a commit of one line does.
func (p *place) set(o *unstructured.Unstructured, value any, path ...string) {
	p.Helper()
	if err := p.trySet(o, value, path...); err != nil {
		p.Fatalf("setting %s of %s: %v", strings.Join(path, "."), o.GetName(), err)
	}
}

// trySet is set, which the cluster may refuse.
func (p *place) trySet(o *unstructured.Unstructured, value any, path ...string) error {
	p.Helper()
	patch := map[string]any{}
	if err := unstructured.SetNestedField(patch, value, path...); err != nil {
		p.Fatal(err)
	}
	text, err := json.Marshal(patch)
	if err != nil {
		p.Fatal(err)
	}
	client, err := p.on(o)
	if err != nil {
		p.Fatal(err)
	}
	_, err = client.Patch(p.Context(), o.GetName(), types.MergePatchType, text, metav1.PatchOptions{})
	return err
}

// pods are those of a namespace that select, a label selector, matches and that are not being deleted.
func (p *place) pods(namespace, selector string) (all []corev1.Pod, err error) {
	list, err := p.client.CoreV1().Pods(namespace).List(p.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			all = append(all, pod)
		}
	}
	slices.SortFunc(all, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// workers selects the pods that train.
const workers = "app.kubernetes.io/component=worker"

// running waits until so many pods run, and returns them.
func (p *place) running(want int, namespace, selector string) (pods []corev1.Pod) {
	p.Helper()
	p.eventually(fmt.Sprintf("%d pods that run", want), func() error {
		all, err := p.pods(namespace, selector)
		if err != nil {
			return err
		}
		pods = nil
		for _, pod := range all {
			if pod.Status.Phase == corev1.PodRunning {
				pods = append(pods, pod)
			}
		}
		if len(pods) != want {
			return fmt.Errorf("%d of %d pods run", len(pods), len(all))
		}
		return nil
	})
	return pods
}

// remains checks for a while that check has no complaint, which it must not have now either.
func (p *place) remains(what string, check func() error) {
	p.Helper()
	for end := time.Now().Add(stillness); time.Now().Before(end); time.Sleep(poll) {
		if p.Context().Err() != nil {
			p.Fatal("interrupted")
		}
		if err := check(); err != nil {
			p.Fatalf("%s does not last: %v", what, err)
		}
	}
}

// end has running pods end as succeeded or failed, on nodes that KWOK plays.
func (p *place) end(outcome string, pods ...corev1.Pod) {
	p.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, cluster.OutcomeAnnotation, outcome)
	for _, pod := range pods {
		if _, err := p.client.CoreV1().Pods(pod.Namespace).Patch(p.Context(), pod.Name, types.MergePatchType,
			[]byte(patch), metav1.PatchOptions{}); err != nil {
			p.Fatal(err)
		}
	}
}

// nodes adds nodes for the time of the scenario, which KWOK plays. With owner they are for jobs that tolerate the taint
// reserved=owner and select the label; without for all.
func (p *place) nodes(count, accelerators int, owner string) {
	p.Helper()
	o := cluster.NodeOptions{
		Count: count, GPUs: accelerators, Prefix: "e2e-" + fmt.Sprint(time.Now().UnixNano()),
		Labels: map[string]string{"type": "kwok"},
		Other:  corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("10Ti")},
	}
	if owner != "" {
		o.Labels[reserved] = owner
		o.Taints = []corev1.Taint{{Key: reserved, Value: owner, Effect: corev1.TaintEffectNoSchedule}}
	}
	names, err := p.cluster.AddNodes(p.Context(), o)
	p.added = append(p.added, names...)
	if err != nil {
		p.Fatal(err)
	}
}

// eventually waits until check has no complaint.
func (p *place) eventually(what string, check func() error) {
	p.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if p.Context().Err() != nil {
			p.Fatalf("waiting for %s: interrupted", what)
		}
		if time.Now().After(deadline) {
			p.Fatalf("waiting for %s: not within %v: %v", what, patience, err)
		}
		time.Sleep(poll)
	}
}

// condition waits until an object has a condition that is True.
func (p *place) condition(o *unstructured.Unstructured, word string) {
	p.Helper()
	p.eventually(fmt.Sprintf("%s %s to be %s", o.GetKind(), o.GetName(), word), func() error {
		live, err := p.get(p.Context(), o)
		if err != nil {
			return err
		}
		all, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, entry := range all {
			if c, ok := entry.(map[string]any); ok && c["type"] == word && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("it has %v", all)
	})
}
