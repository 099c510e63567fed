package krm

import (
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// TestEnvironmentAmong: an Environment that kustomize renamed is still the one that the Generator names, unless another
// could be meant.
func TestEnvironmentAmong(t *testing.T) {
	for _, c := range []struct {
		what, configured string
		items            []string
		want             string
		found            bool
	}{
		{"none is named", "", []string{"lab"}, "", true},
		{"the named one", "lab", []string{"eu-lab", "lab"}, "lab", true},
		{"a prefix and a suffix", "lab", []string{"eu-lab-2", "eks"}, "eu-lab-2", true},
		{"a prefix of no job", "lab", []string{"collab"}, "lab", false},
		{"a suffix of no job", "lab", []string{"lab-production"}, "lab", false},
		{"two renamed ones", "lab", []string{"eu-lab", "lab-2"}, "lab", false},
		{"another one", "lab", []string{"eks"}, "lab", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			items := []*yaml.Node{yaml.MustParse("apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\n" +
				"metadata: {name: eu-train-2}\n").YNode()}
			for _, name := range c.items {
				items = append(items, yaml.MustParse("apiVersion: tegen.dev/v1alpha1\nkind: Environment\n"+
					"metadata: {name: "+name+"}\n").YNode())
			}
			got, found := config{environment: c.configured}.environmentAmong(items)
			if got != c.want || found != c.found {
				t.Errorf("%q, %v, want %q, %v", got, found, c.want, c.found)
			}
		})
	}
}
