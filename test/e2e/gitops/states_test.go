package gitops

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/gitops"
	"github.com/tegen-dev/tegen/test/health"
)

// recorded are the kinds whose states are taken from this cluster, by target.
var recorded = []struct {
	target, file, source string
	kind                 schema.GroupVersionResource
}{
	{"job", "job-lab.yaml", "Kubernetes 1.36.3", schema.GroupVersionResource{
		Group: "batch", Version: "v1", Resource: "jobs",
	}},
	{"pods", "pod-lab.yaml", "Kubernetes 1.36.3", schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
	{"jobset", "jobset-lab.yaml", "JobSet v0.12.0", jobSets},
	{"pytorchjob", "pytorchjob-lab.yaml", "Training operator v1.9.4", pyTorchJobs},
}

// states drives a job of each kind through its states, and holds what its controller wrote against
// internal/apis/testdata/health, where other tests run the rules of Argo CD and Flux over it. TEGEN_RECORD=1 writes it.
func states(t *testing.T, lab *gitops.Lab, tegen string) {
	for _, r := range recorded {
		t.Run("states of target "+r.target, func(t *testing.T) {
			t.Parallel()
			s := &recorder{kind: r.kind, target: r.target, place: &place{
				T: t, lab: lab, client: lab.Client(), tegen: tegen, namespace: "states-" + r.target,
				jobs: map[string]string{},
			}}
			if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
			}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&s.text, "# %s: as written in the cluster of test/gitops, without what no rule reads.\n",
				r.source)
			s.drive()
			file := filepath.Join("../../../internal/apis/testdata/health", r.file)
			if os.Getenv("TEGEN_RECORD") == "1" {
				if err := os.WriteFile(file, s.text.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(conditions(t, want), conditions(t, s.text.Bytes())); diff != "" {
				t.Errorf("%s differs (-want +got); TEGEN_RECORD=1 writes it:\n%s", file, diff)
			}
		})
	}
}

// conditions are those of each state with its health. Counts are left out: they depend on when a controller looks.
func conditions(t *testing.T, text []byte) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var o struct {
			Metadata metav1.ObjectMeta
			Status   struct{ Conditions []metav1.Condition }
		}
		if err := yaml.Unmarshal(document, &o); err != nil {
			t.Fatal(err)
		}
		said := []string{o.Metadata.Annotations["argocd"], o.Metadata.Annotations["flux"]}
		for _, c := range o.Status.Conditions {
			said = append(said, fmt.Sprintf("%s=%s", c.Type, c.Status))
		}
		all[o.Metadata.Name] = said
	}
	return all
}

// recorder writes states of one kind down.
type recorder struct {
	*place
	kind   schema.GroupVersionResource
	target string
	text   bytes.Buffer
}

func (s *recorder) drive() {
	workers, restarts := 2, "failure: {restarts: 0}"
	if s.target == "pods" { // of which one is looked at, and which nobody starts again
		workers, restarts = 1, "suspend: false"
	}
	s.apply("suspend: true")
	s.record("suspended", apis.Suspended, "Current")
	applied := s.apply()
	s.running(workers)
	s.record("running", apis.Healthy, "Current")
	s.end(cluster.OutcomeSucceeded)
	s.record("complete", apis.Healthy, "Current")
	s.forget(applied)

	applied = s.apply("placement: {nodeSelector: {disk: none-has-it}}")
	s.record("waits-for-nodes", apis.Progressing, "InProgress")
	s.forget(applied)

	applied = s.apply(restarts)
	s.running(workers)
	s.end(cluster.OutcomeFailed)
	s.record("failed", apis.Degraded, "Failed")
	s.forget(applied)
}

func (s *recorder) apply(fields ...string) *gitops.Objects {
	s.Helper()
	if s.target == "pods" {
		fields = append(fields, "workers: {replicas: 1}")
	}
	s.job("resnet", append(fields, "target: "+s.target)...)
	file := filepath.Join(s.TempDir(), "resnet.yaml")
	if err := os.WriteFile(file, []byte(s.jobs["resnet"]), 0o600); err != nil {
		s.Fatal(err)
	}
	applied, err := s.lab.Apply(s.Context(), command(s.T, s.tegen, "render", file))
	if err != nil {
		s.Fatal(err)
	}
	return applied
}

func (s *recorder) forget(applied *gitops.Objects) {
	s.Helper()
	if err := applied.Delete(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.running(0)
}

// record waits until Argo CD and Flux make of the object what they should, and it changes no more.
func (s *recorder) record(name, argo, flux string) {
	s.Helper()
	var o *unstructured.Unstructured
	since := time.Now()
	s.eventually(name, func() error {
		now := s.the(s.kind)
		if o == nil || now.GetResourceVersion() != o.GetResourceVersion() {
			o, since = now, time.Now()
		}
		if got, message := health.Argo(s, rule(o), o.Object); got != argo {
			return fmt.Errorf("Argo CD would show %s (%s)", got, message)
		}
		if h := apis.HealthOf(o.GroupVersionKind().GroupKind()); h != nil {
			current, failed := h.CEL()
			if got := health.Flux(s, failed, current, o.Object); got != flux {
				return fmt.Errorf("Flux would say %s", got)
			}
		}
		if changed := time.Since(since); changed < 2*time.Second {
			return fmt.Errorf("it changed %v ago", changed)
		}
		return nil
	})
	s.write(o, name, argo, flux)
}

func rule(o *unstructured.Unstructured) string {
	for _, r := range apis.Rules(apis.Suspended) {
		if r.Kind == o.GroupVersionKind().GroupKind() {
			return r.Lua
		}
	}
	return ""
}

var (
	times  = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	hashed = regexp.MustCompile(`resnet-(worker-)?[0-9a-f]{8}`)
)

// write adds what rules read of an object, with one time in place of all, and names without their hashes.
func (s *recorder) write(o *unstructured.Unstructured, name, argo, flux string) {
	s.Helper()
	annotations := map[string]any{"argocd": argo}
	if apis.HealthOf(o.GroupVersionKind().GroupKind()) != nil { // others Flux judges by itself
		annotations["flux"] = flux
	}
	for _, field := range []string{"hostIP", "hostIPs", "podIP", "podIPs"} {
		unstructured.RemoveNestedField(o.Object, "status", field)
	}
	spec := map[string]any{}
	for _, path := range [][]string{
		{"suspend"}, {"parallelism"}, {"runPolicy", "suspend"}, {"restartPolicy"}, {"schedulingGates"},
	} {
		value, ok, err := unstructured.NestedFieldNoCopy(o.Object, append([]string{"spec"}, path...)...)
		if err != nil {
			s.Fatal(err)
		}
		if ok {
			if err := unstructured.SetNestedField(spec, value, path...); err != nil {
				s.Fatal(err)
			}
		}
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "spec": spec, "status": o.Object["status"],
		"metadata": map[string]any{
			"name": name, "annotations": annotations,
			"labels": map[string]any{"app.kubernetes.io/managed-by": o.GetLabels()["app.kubernetes.io/managed-by"]},
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	if bytes.Contains(s.text.Bytes(), []byte("\nkind: ")) {
		s.text.WriteString("---\n")
	}
	text = times.ReplaceAll(text, []byte("2026-11-22T10:00:00Z"))
	s.text.Write(hashed.ReplaceAll(text, []byte("resnet")))
}
