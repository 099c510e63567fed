package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/internal/admission"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
)

// place is a namespace with a policy.
type place struct {
	*lab
	*testing.T
	namespace string
}

func (p place) create(o map[string]any) error {
	u := &unstructured.Unstructured{Object: normal(p.T, o)}
	gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	_, err := p.client.Resource(gvr).Namespace(p.namespace).Create(p.Context(), u, metav1.CreateOptions{})
	return err
}

func (p place) mustCreate(o map[string]any) {
	p.Helper()
	if err := p.create(o); err != nil {
		p.Fatal(err)
	}
}

// patch changes an object, or with a subresource a part of it.
func (p place) patch(o map[string]any, patch, subresource string) error {
	u := &unstructured.Unstructured{Object: o}
	gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	form := types.MergePatchType
	if u.GetKind() == "Pod" { // whose containers have names
		form = types.StrategicMergePatchType
	}
	var below []string
	if subresource != "" {
		below = append(below, subresource)
	}
	_, err := p.client.Resource(gvr).Namespace(p.namespace).Patch(p.Context(), u.GetName(), form, []byte(patch),
		metav1.PatchOptions{}, below...)
	return err
}

// enforce applies a policy and waits until it refuses an object.
func (p place) enforce(text string, violating map[string]any) {
	p.Helper()
	loaded, err := policy.Load([]policy.Source{{Name: "a.cue", Text: []byte(text)}}, render.PolicyTypes())
	if err != nil {
		p.Fatal(err)
	}
	p.apply(loaded, violating, "(a.cue:")
}

// apply exports a policy and waits until the server refuses an object with a message.
func (p place) apply(loaded *policy.Policy, violating map[string]any, message string) {
	p.Helper()
	objects, err := admission.Export(loaded, admission.Options{
		Name: p.namespace, Namespaces: []string{p.namespace}, Actions: []admissionv1.ValidationAction{admissionv1.Deny},
	})
	if err != nil {
		p.Fatal(err)
	}
	api := p.Client().AdmissionregistrationV1()
	for _, o := range objects {
		switch o := o.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			_, err = api.ValidatingAdmissionPolicies().Create(p.Context(), o, metav1.CreateOptions{})
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			_, err = api.ValidatingAdmissionPolicyBindings().Create(p.Context(), o, metav1.CreateOptions{})
		}
		if err != nil {
			p.Fatal(err)
		}
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(poll) {
		violating["metadata"] = map[string]any{"generateName": "new-"}
		if err = p.create(violating); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), message) {
		p.Fatalf("the server says %v", err)
	}
}

func (p place) refused(err error, rule string) {
	p.Helper()
	if err == nil || !strings.Contains(err.Error(), rule) {
		p.Errorf("the server says %v, want a violation of %s", err, rule)
	}
}

func (p place) accepted(err error) {
	p.Helper()
	if err != nil {
		p.Error(err)
	}
}

func parse(t *testing.T, text string) (o map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

const podText = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "finalizers": ["example.com/a"],
	"labels": {"team": "a"}}, "spec": {"hostNetwork": %t, "containers": [{"name": "a", "image": "a"}]}}`

// TestPods: an API server refuses what a policy forbids, and lets a pod that is older than the policy go.
func TestPods(t *testing.T) {
	l := start(t)
	l.namespace(t, "team-a")
	l.namespace(t, "other")
	p := place{l, t, "team-a"}
	older, good := parse(t, fmt.Sprintf(podText, "older", true)), parse(t, fmt.Sprintf(podText, "good", false))
	p.mustCreate(older)
	p.enforce(`pod: {
		metadata: labels: team!: "a"
		spec: {hostNetwork?: false @message("no host network"), containers: [...{image!: !="b"}]}
		spec: ({nodeName?: _|_} | {hostPID!: true}) @message("no node")
	}`, parse(t, fmt.Sprintf(podText, "new", true)))
	p.refused(p.create(parse(t, fmt.Sprintf(podText, "new", true))), "spec.hostNetwork: no host network (a.cue:3:24)")
	p.mustCreate(good)
	if err := (place{l, t, "other"}).create(parse(t, fmt.Sprintf(podText, "new", true))); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	p.accepted(p.patch(older, `{"metadata": {"finalizers": null}}`, ""))
	err := l.Client().CoreV1().Pods("team-a").Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "good"}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const debug = `{"spec": {"ephemeralContainers": [{"name": "debug", "image": "a"}]}}`
	p.accepted(p.patch(good, debug, "ephemeralcontainers"))
	p.refused(p.patch(good, `{"metadata": {"labels": {"team": null}}}`, ""), "(a.cue:2:21)")
	const image = `{"spec": {"containers": [{"name": "a", "image": %q}]}}`
	p.refused(p.patch(good, fmt.Sprintf(image, "b"), ""), "(a.cue:3:")
	p.accepted(p.patch(good, fmt.Sprintf(image, "c"), ""))
}

// TestWorkloads: templates are checked whatever part of them changes, and an object whose templates have gaps, or that
// is older than the policy, can be changed and deleted.
func TestWorkloads(t *testing.T) {
	l := start(t)
	l.namespace(t, "team-b")
	p := place{l, t, "team-b"}
	const pod = `{"spec": {"hostNetwork": true, "containers": [{"name": "pytorch", "image": %q}]}}`
	torch := parse(t, `{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "older",
		"finalizers": ["example.com/a"]}, "spec": {"pytorchReplicaSpecs": {
		"Master": {"template": `+fmt.Sprintf(pod, "a")+`}, "Worker": {"template": `+fmt.Sprintf(pod, "b")+`}}}}`)
	gaps := []map[string]any{
		parse(t, `{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "no-template",
			"finalizers": ["example.com/a"]}, "spec": {"pytorchReplicaSpecs": {"Worker": {}}}}`),
		parse(t, `{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "no-template",
			"finalizers": ["example.com/a"]}, "spec": {"tasks": [{"name": "a"}]}}`),
		parse(t, `{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "no-spec",
			"finalizers": ["example.com/a"]}}`),
	}
	for _, o := range append(gaps, torch) {
		p.mustCreate(o)
	}
	p.enforce(`pod: {metadata: labels?: "example.com/team"?: "a", spec: {hostNetwork?: false, nodeName?: _|_}}`,
		parse(t, fmt.Sprintf(podText, "new", true)))
	for n := range 12 {
		p.accepted(p.patch(torch, fmt.Sprintf(`{"metadata": {"annotations": {"n": "%d"}}}`, n), ""))
	}
	for _, o := range append(gaps, torch) {
		p.accepted(p.patch(o, `{"metadata": {"finalizers": null}}`, ""))
	}
	for i, o := range gaps {
		o["metadata"] = map[string]any{"name": fmt.Sprintf("again-%d", i)}
		p.accepted(p.create(o))
	}
	deployment := parse(t, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
		"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}},
		"spec": {"containers": [{"name": "a", "image": "a"}]}}}}`)
	p.mustCreate(deployment)
	p.refused(p.patch(deployment, `{"spec": {"template": {"metadata": {"labels": {"example.com/team": "b"}}}}}`, ""),
		"(a.cue:1:")
	p.refused(p.patch(deployment, `{"spec": {"template": {"spec": {"nodeName": "node-9"}}}}`, ""), "(a.cue:1:")
	p.accepted(p.patch(deployment, `{"spec": {"replicas": 2}}`, ""))
}

// TestServed: an API server serves the kinds of objects that a policy can be exported for, and it has those in
// namespaces that tegen takes for such.
func TestServed(t *testing.T) {
	l := start(t)
	_, lists, err := l.Client().Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	namespaced := map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				namespaced[list.GroupVersion+" "+r.Kind] = r.Namespaced
			}
		}
	}
	unserved := []string{"Binding", "ComponentStatus"} // listed, and nothing is stored
	for name, kinds := range render.Kinds() {
		for _, k := range kinds {
			apiVersion, kind := k.ToAPIVersionAndKind()
			inNamespace, served := namespaced[apiVersion+" "+kind]
			_, err := exported(name)
			refused := err != nil && strings.Contains(err.Error(), "an API server has no such objects")
			isCustom := slices.ContainsFunc(apis.Kinds, func(of apis.Kind) bool {
				return of.GroupVersionKind == k.GroupVersionKind
			})
			switch {
			case isCustom:
			case refused == (served && !slices.Contains(unserved, kind)):
				t.Errorf("%s: served is %t, and exporting a rule for it says %v", name, served, err)
			case served && !refused && inNamespace == apis.ClusterScoped(kind):
				t.Errorf("%s: in a namespace is %t", name, inNamespace)
			}
		}
	}
}

// exported are the objects for a rule about a kind.
func exported(kind string) (int, error) {
	text := fmt.Sprintf("object: %q: metadata: labels: team!: string", kind)
	p, err := policy.Load([]policy.Source{{Name: "a.cue", Text: []byte(text)}}, render.PolicyTypes())
	if err != nil {
		return 0, errors.New("not loaded: " + err.Error())
	}
	o := options
	o.Cluster = true
	objects, err := admission.Export(p, o)
	return len(objects), err
}
