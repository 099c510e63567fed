package dochead

import (
	"strings"
	"testing"
)

// TestClass holds each form of a head to its class. A form that is Broken names the key and the fix.
func TestClass(t *testing.T) {
	whole := []string{"apiVersion", "kind", "metadata", "spec"}
	for _, c := range []struct {
		version, kind string
		keys          []string
		want          Class
		says          string
	}{
		{"tegen.dev/v1alpha1", "TrainingJob", whole, Input, ""},
		{"tegen.dev/v1alpha1", "Environment", whole, Input, ""},
		{"tegen.dev/v9", "TrainingJob", whole, Input, ""}, // the schema refuses the version
		{"tegen.dev/", "Environment", whole, Input, ""},
		{"tegen.dev", "TrainingJob", whole, Input, ""},
		{"tegen.dev/v1alpha1", "Generator", whole, Config, ""},
		{"tegen.dev/v1alpha1", "Check", whole, Config, ""},

		{"tegen.dev/v1alpha1", "TrainingJobs", whole, Broken, `kind: .*did you mean "TrainingJob"`},
		{"tegen.dev/v1alpha1", "trainingjob", whole, Broken, `kind: .*did you mean "TrainingJob"`},
		{"tegen.dev/v1alpha1", "TrainingJobList", whole, Broken, `kind: .*did you mean "TrainingJob"`},
		{"tegen.dev/v1beta1", "Environmnt", whole, Broken, `kind: .*did you mean "Environment"`},
		{"tegen.dev/v1alpha1", "Generater", whole, Broken, `kind: .*did you mean "Generator"`},
		{"tegen.dev/v1alpha1", "Policy", whole, Broken, `kind: must be one of`},
		{"Tegen.dev/v1alpha1", "TrainingJob", whole, Broken, "apiVersion: must be tegen.dev/v1alpha1"},
		{"tegen.dv/v1alpha1", "TrainingJob", whole, Broken, "apiVersion: must be tegen.dev/v1alpha1"},
		{"tegen.io/v1", "TrainingJob", whole, Broken, "apiVersion: must be tegen.dev/v1alpha1"},
		{"batch.tegen.dev/v1", "Environment", whole, Broken, "apiVersion: must be tegen.dev/v1alpha1"},
		{"tegn.dev/v1alpha1", "TrainingJbo", whole, Broken, "for kind TrainingJob"},
		{"v1alpha1", "TrainingJob", whole, Broken, "apiVersion: must be tegen.dev/v1alpha1"},
		{"v1", "Environment", whole, Broken, "apiVersion: must be tegen.dev/v1alpha1"},
		{"", "TrainingJob", []string{"apiVersoin", "kind"}, Broken, `is "apiVersoin" a misspelling of it?`},
		{"", "ConfigMap", []string{"kind", "data"}, Broken, "apiVersion: required field is missing"},
		{"tegen.dev/v1alpha1", "", []string{"apiVersion", "Kind"}, Broken, `is "Kind" a misspelling of it?`},
		{"v1", "", []string{"apiVersion", "data"}, Broken, "kind: required field is missing"},
		{"", "", nil, Broken, "apiVersion: required field is missing"},

		{"v1", "ConfigMap", whole, Foreign, ""},
		{"v1", "Event", whole, Foreign, ""},
		{"batch/v1", "Job", whole, Foreign, ""},
		{"tekton.dev/v1", "Task", whole, Foreign, ""},
		{"tekton.dev/v1", "Environment", whole, Foreign, ""},
		{"sagemaker.services.k8s.aws/v1alpha1", "TrainingJob", whole, Foreign, ""},
		{"kubeflow.org/v1", "PyTorchJob", whole, Foreign, ""},
		{"tegen.de/v1", "Thing", whole, Foreign, ""},
	} {
		h := Head{Keys: c.keys, APIVersion: c.version, Kind: c.kind}
		key, message := h.Problem()
		text := key + ": " + message
		if got := h.Class(); got != c.want || (got == Broken) != (message != "") {
			t.Errorf("%q %q is of class %d, want %d: %s", c.version, c.kind, got, c.want, text)
		}
		for part := range strings.SplitSeq(c.says, ".*") {
			if !strings.Contains(text, part) {
				t.Errorf("%q %q: %s, want %s", c.version, c.kind, text, c.says)
			}
		}
	}
}
