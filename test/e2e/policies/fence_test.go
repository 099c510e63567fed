package policies

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// TestFence: a server with the exported rules of a fence accepts what tegen renders behind the fence, and denies what
// tegen refuses there of the pods of a job.
func TestFence(t *testing.T) {
	const namespace = "team-f"
	const environment = "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: f}\nspec: {namespace: " +
		namespace
	l := start(t)
	l.namespace(t, namespace)
	p := place{l, t, namespace}
	fence, err := schema.FenceOf("f.yaml", []byte(environment+", fence: true}"))
	if err != nil {
		t.Fatal(err)
	}
	const mark = "fence of Environment f"
	p.apply(fence.Without(apis.ClusterScoped), parse(t, `{"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {
		"hostPID": true, "containers": [{"name": "a", "image": "a"}]}}`), mark)

	files, err := filepath.Glob(filepath.Join(root, "fixtures", "valid", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, file := range files {
		job := inNamespace(t, file, namespace)
		if job == nil {
			continue // several documents
		}
		for _, o := range renderedWorkloads(job, environment+", fence: true}") { // none of a job that tegen refuses
			err := p.dryRun(o)
			switch {
			case apierrors.IsNotFound(err): // its definition is not on this machine
			case err != nil && strings.Contains(err.Error(), mark):
				t.Errorf("%s: %v", file, err)
			default:
				asked++
			}
		}
	}
	if asked < 150 {
		t.Errorf("the fixtures have %d workloads behind a fence, fewer than 150", asked)
	}
	t.Logf("%d workloads behind the fence", asked)
	for _, c := range []struct{ spec, want string }{
		{"podTemplate: {spec: {hostPID: true}}", "hostPID"},
		{"podTemplate: {spec: {hostIPC: true}}", "hostIPC"},
		{"podTemplate: {spec: {hostNetwork: true}}", "hostNetwork"},
		{"podTemplate: {spec: {nodeName: n}}", "nodeName"},
		{"podTemplate: {spec: {automountServiceAccountToken: true}}", "automountServiceAccountToken"},
		{"podTemplate: {spec: {volumes: [{name: v, hostPath: {path: /}}]}}", "hostPath"},
		{
			"podTemplate: {spec: {containers: [{name: worker, securityContext: {privileged: true, " +
				"allowPrivilegeEscalation: true}}]}}", "privileged",
		},
		{"podTemplate: {spec: {securityContext: {runAsUser: 0}}}", "runAsUser"},
		{"security: {runAsUser: image}", "runAsNonRoot"},
		{"security: {restricted: false}", "seccompProfile"},
	} {
		for _, target := range []string{"job", "jobset", "pods", "pytorchjob", "vcjob"} {
			job := "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, namespace: " + namespace +
				"}\nspec: {image: 'a:1', command: [a], workers: {replicas: 2}, target: " + target + ", " + c.spec +
				"}\n"
			objects := renderedWorkloads([]byte(job), environment+"}")
			if len(objects) == 0 {
				t.Errorf("target %s, %s renders no workload", target, c.spec)
			}
			for _, o := range objects {
				if err := p.dryRun(o); err == nil || !strings.Contains(err.Error(), mark) {
					t.Errorf("target %s, %s: the server says %v", target, c.spec, err)
				}
			}
		}
	}
}

// inNamespace is the job of a file with another namespace, nil if the file has several documents.
func inNamespace(t *testing.T, file, namespace string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "\n---") {
		return nil
	}
	var job map[string]any
	if err := yaml.Unmarshal(text, &job); err != nil {
		t.Fatal(err)
	}
	metadata, _ := job["metadata"].(map[string]any)
	metadata["namespace"] = namespace
	out, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// renderedWorkloads are the objects with pods of a job in an Environment; none if tegen refuses it.
func renderedWorkloads(job []byte, environment string) (out []map[string]any) {
	jobs, err := schema.Load([]schema.Source{
		{Name: "job.yaml", Data: job},
		{Name: "f.yaml", Data: []byte(environment), Environment: schema.AnyEnvironment},
	})
	if err != nil {
		return nil
	}
	bundles, err := render.Jobs(jobs, render.Options{})
	if err != nil {
		return nil
	}
	for _, concern := range bundles[0].Objects() {
		for _, o := range concern.Objects {
			if apis.WorkloadOf(o) == nil {
				continue
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			kind, unknown := manifest.GVK(o)
			if err == nil && unknown == nil {
				content["apiVersion"], content["kind"] = kind.ToAPIVersionAndKind()
				out = append(out, content)
			}
		}
	}
	return out
}

// dryRun asks the server whether it would create an object.
func (p place) dryRun(o map[string]any) error {
	u := &unstructured.Unstructured{Object: normal(p.T, o)}
	gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	if account, ok, _ := unstructured.NestedString(u.Object, "spec", "serviceAccountName"); ok { // of a pod
		_, err := p.Client().CoreV1().ServiceAccounts(p.namespace).Create(p.Context(), &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Name: account},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			p.Fatal(err)
		}
	}
	_, err := p.client.Resource(gvr).Namespace(p.namespace).Create(p.Context(), u,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
