package generators_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/schema/job"
)

func TestNewSet(t *testing.T) {
	none := func(*job.Job) ([]runtime.Object, error) { return nil, nil }
	one := generators.Generator{Name: "team", Doc: "its team", Needs: "env: []", Generate: none}
	s, err := generators.NewSet(one)
	if err != nil {
		t.Fatal(err)
	}
	if names := s.Names(); !slices.Equal(names[:len(names)-1], generators.Set{}.Names()) ||
		names[len(names)-1] != "team" || s.Needs("team") != "env: []" || s.Needs("ssh") == "" ||
		s.Needs("nobody") != "" {
		t.Errorf("%q", names)
	}
	for want, more := range map[string][]generators.Generator{
		`"worker": the name is taken`:        {{Name: "worker", Doc: "a", Generate: none}},
		`"team": the name is taken`:          {one, one},
		`"kustomization": the name is taken`: {{Name: "kustomization", Doc: "a", Generate: none}},
		`"a/b": Name must have`:              {{Name: "a/b", Doc: "a", Generate: none}},
		`"": Name must have`:                 {{Doc: "a", Generate: none}},
		`"team": Doc must be`:                {{Name: "team", Generate: none}},
		`"team": Generate is nil`:            {{Name: "team", Doc: "a"}},
	} {
		if _, err := generators.NewSet(more...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}
