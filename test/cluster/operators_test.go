package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckOperators(t *testing.T) {
	known := strings.Join(Operators(), ", ")
	tests := []struct {
		reason string
		names  []string
		want   string
	}{
		{"none", nil, ""},
		{"all", Operators(), ""},
		{"an unknown one", []string{JobSet, "Jobset"}, `operator "Jobset" is unknown; known are ` + known},
		{"a program that is no operator", []string{etcd}, `operator "etcd" is unknown; known are ` + known},
		{"one twice", []string{JobSet, JobSet}, "operator jobset is named twice"},
	}
	for _, tt := range tests {
		got := ""
		if err := CheckOperators(tt.names...); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.reason, diff)
		}
	}
}

// TestOperatorsAreBuilt: an operator is a program of one of the mod files.
func TestOperatorsAreBuilt(t *testing.T) {
	for _, name := range Operators() {
		if !slices.ContainsFunc(packages, func(p program) bool { return p.name == name }) {
			t.Errorf("operator %s: packages has no program of that name", name)
		}
	}
}

func TestWebhooksAreMoved(t *testing.T) {
	webhook := func(resource string) map[string]any {
		return map[string]any{
			"name":         "v.kb.io",
			"rules":        []any{map[string]any{"resources": []any{resource}}},
			"clientConfig": map[string]any{"service": map[string]any{"name": "webhook-service", "path": "/validate"}},
		}
	}
	moved := func(resource string) map[string]any {
		w := webhook(resource)
		w["clientConfig"] = map[string]any{"url": "https://127.0.0.1:1/validate", "caBundle": []byte("authority")}
		return w
	}
	ofPods := moved("pods")
	ofPods["objectSelector"] = map[string]any{
		"matchExpressions": []any{map[string]any{"key": "operator/name", "operator": "Exists"}},
	}
	for resource, want := range map[string]map[string]any{"pods": ofPods, "jobsets": moved("jobsets")} {
		got := webhook(resource)
		webhookSource{address: "127.0.0.1:1", authority: []byte("authority"), pods: "operator/name"}.move(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", resource, diff)
		}
	}
}

func TestWebhooksOfOneKind(t *testing.T) {
	webhook := map[string]any{"clientConfig": map[string]any{"service": map[string]any{
		"path": "/validate-kubeflow-org-v1-mxjob",
	}}}
	for kind, want := range map[string]bool{"": true, "MXJob": true, "PyTorchJob": false, "Job": false} {
		if got := (webhookSource{kind: kind}).asks(webhook); got != want {
			t.Errorf("kind %q: asked %v, want %v", kind, got, want)
		}
	}
}
