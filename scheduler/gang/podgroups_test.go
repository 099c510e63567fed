package gang

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

func TestPodGroupSpec(t *testing.T) {
	spec := func(minimum int, layers ...gangcache.Layer) gangcache.Spec {
		return gangcache.Spec{
			Min: minimum, Mode: gangcache.Strict, Policy: gangcache.WaitingAndRunning, Waiting: time.Minute,
			Layers: layers,
		}
	}
	rack := gangcache.Layer{Label: "rack", Required: true}
	for _, c := range []struct {
		reason, spec string
		want         gangcache.Spec
		problem      string // a part of the error, "" for none
	}{
		{"pods on their own", `{schedulingPolicy: {basic: {}}}`, spec(1), ""},
		{"a gang", `{schedulingPolicy: {gang: {minCount: 4}}}`, spec(4), ""},
		{
			"a gang that gathers",
			`{schedulingPolicy: {gang: {minCount: 4}}, schedulingConstraints: {topology: [{key: rack}]}}`,
			spec(4, rack), "",
		},
		{
			"no constraints", `{schedulingPolicy: {gang: {minCount: 4}}, schedulingConstraints: {topology: []}}`,
			spec(4), "",
		},
		{"no minimum", `{schedulingPolicy: {gang: {}}}`, spec(1), "minCount must be a number from 1"},
		{
			"a constraint of another kind",
			`{schedulingPolicy: {gang: {minCount: 4}}, schedulingConstraints: {topology: [{level: rack}]}}`,
			spec(4), "each needs a key",
		},
		{
			"no list", `{schedulingPolicy: {gang: {minCount: 4}}, schedulingConstraints: {topology: rack}}`, spec(4),
			"accessor error",
		},
		{
			"too many",
			`{schedulingPolicy: {gang: {minCount: 4}}, schedulingConstraints:
				{topology: [{key: a}, {key: b}, {key: c}, {key: d}, {key: e}]}}`,
			spec(4), "4 keys at most",
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			text := "spec: " + strings.ReplaceAll(c.spec, "\t", " ")
			if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
				t.Fatal(err)
			}
			path := []string{"spec", "schedulingPolicy", "gang", "minCount"}
			if n, ok, _ := unstructured.NestedFloat64(u.Object, path...); ok { // clients decode it as a whole number
				if err := unstructured.SetNestedField(u.Object, int64(n), path...); err != nil {
					t.Fatal(err)
				}
			}
			got, err := newPodGroups(&coordinator{waiting: time.Minute}).spec(u)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			switch {
			case c.problem == "" && err != nil:
				t.Error(err)
			case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("error %v, want one with %q", err, c.problem)
			}
		})
	}
}
