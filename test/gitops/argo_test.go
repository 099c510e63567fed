package gitops

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A difference that Argo CD saw before its sync ended is none that the sync left.
func TestComparedAfterTheSync(t *testing.T) {
	for _, c := range []struct {
		name, compared string
		want           error
	}{
		{"never", "", errNotYet},
		{"before", "2026-11-23T02:00:09Z", errNotYet},
		{"in the same second", "2026-11-23T02:00:10Z", errSameSecond},
		{"after", "2026-11-23T02:00:11Z", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
				"reconciledAt": c.compared,
				"sync":         map[string]any{"status": "OutOfSync", "revision": "abc"},
				"operationState": map[string]any{
					"phase": "Succeeded", "finishedAt": "2026-11-23T02:00:10Z",
					"syncResult": map[string]any{"revision": "abc"},
				},
			}}}
			if err := unsettled(o, "abc"); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
