package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// stage is what this package uses of KWOK's API kwok.x-k8s.io/v1alpha1. What is not named here fails the test.
type stage struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		ResourceRef struct{ APIGroup, Kind string } `json:"resourceRef"`
		Selector    struct {
			MatchAnnotations map[string]string `json:"matchAnnotations"`
			MatchExpressions []struct {
				JQ struct {
					Key, Operator string
					Values        []string
				} `json:"jq"`
			} `json:"matchExpressions"`
		} `json:"selector"`
		Delay map[string]int `json:"delay"`
		Steps []struct {
			Patch  struct{ Subresource, Root, Template string } `json:"patch"`
			Delete bool                                         `json:"delete"`
		} `json:"steps"`
	} `json:"spec"`
}

func readStages(t *testing.T) []stage {
	t.Helper()
	var all []stage
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(stages)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(document, []byte("kind: KwokConfiguration")) {
			continue
		}
		var s stage
		if err := strict.UnmarshalStrict(document, &s); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		all = append(all, s)
	}
}

// TestStages holds every stage's template against the status that the API has, which KWOK would patch without a word.
func TestStages(t *testing.T) {
	pod := corev1.Pod{Spec: corev1.PodSpec{
		NodeName: "node-0",
		InitContainers: []corev1.Container{
			{Name: "first", Image: "a"},
			{Name: "sidecar", Image: "b", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		},
		Containers: []corev1.Container{{Name: "main", Image: "c"}, {Name: "other", Image: "d"}},
	}}
	got := map[string]any{}
	for _, s := range readStages(t) {
		name := s.Metadata.Name
		if len(s.Spec.Selector.MatchExpressions) == 0 {
			t.Errorf("%s matches everything", name)
		}
		for _, step := range s.Spec.Steps {
			if step.Delete {
				got[name] = "delete"
				continue
			}
			text := render(t, step.Patch.Template, pod)
			var err error
			switch s.Spec.ResourceRef.Kind {
			case "Pod":
				var status corev1.PodStatus
				err = strict.UnmarshalStrict(text, &status)
				got[name] = []any{
					status.Phase, status.PodIP, len(status.InitContainerStatuses),
					len(status.ContainerStatuses),
				}
			case "Node":
				var status corev1.NodeStatus
				err = strict.UnmarshalStrict(text, &status)
				got[name] = len(status.Conditions)
			}
			if err != nil {
				t.Errorf("%s: %v in\n%s", name, err, text)
			}
		}
	}
	want := map[string]any{
		"node-ready":     4,
		"node-heartbeat": 4,
		"pod-run":        []any{corev1.PodRunning, "10.244.0.1", 2, 2},
		"pod-succeed":    []any{corev1.PodSucceeded, "", 0, 2},
		"pod-fail":       []any{corev1.PodFailed, "", 0, 2},
		"pod-stop":       []any{corev1.PodFailed, "", 0, 2},
		"pod-delete":     "delete",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestOutcomeAnnotation holds the exported names against the stages that read them.
func TestOutcomeAnnotation(t *testing.T) {
	got := map[string]string{}
	for _, s := range readStages(t) {
		for key, value := range s.Spec.Selector.MatchAnnotations {
			got[s.Metadata.Name] = key + "=" + value
		}
	}
	want := map[string]string{
		"pod-succeed": OutcomeAnnotation + "=" + OutcomeSucceeded,
		"pod-fail":    OutcomeAnnotation + "=" + OutcomeFailed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// render does what KWOK does: a text template over the object as JSON.
func render(t *testing.T, text string, object any) []byte {
	t.Helper()
	parsed, err := template.New("").Funcs(template.FuncMap{
		"Now":        func() string { return "2026-01-02T03:04:05Z" },
		"Quote":      strconv.Quote,
		"NodeIPWith": func(any) string { return nodeIP(0) },
		"PodIPWith":  func(...any) string { return "10.244.0.1" },
	}).Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var generic any
	if err := json.Unmarshal(data, &generic); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, generic); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return out.Bytes()
}
