package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
)

// TestGoldenTargets holds docs/targets.md to the table by which plans are made.
func TestGoldenTargets(t *testing.T) {
	golden.Open(t, "../../docs").Compare(t, "targets.md", []byte(Doc()))
}

// builtin are the groups that an API server has by itself.
var builtin = []string{"", "apps", "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io", "scheduling.k8s.io"}

// TestControllers: no fixture has an object of a group, or a gang of a dialect, for which the plan names no controller; and
// no row of the table is there for nothing but what no job can have.
func TestControllers(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/valid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := schema.Load([]schema.Source{{Name: file, Data: text}})
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range jobs {
			concerns := generators.Generate(job)
			planned := Of(job, concerns)
			var crds []string
			for _, c := range planned.Controllers {
				used[c.Name] = true
				crds = append(crds, c.CRDs...)
			}
			for _, c := range concerns {
				for _, obj := range c.Objects {
					of, err := manifest.GVK(obj)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Contains(builtin, of.Group) && !slices.ContainsFunc(crds, func(crd string) bool { return strings.HasSuffix(crd, "."+of.Group) }) {
						t.Errorf("%s: a %s of %s, and the plan names no definition of it", file, of.Kind, of.Group)
					}
				}
			}
			if g := job.Spec.Gang; g != nil && g.Scheduler != schema.GangNone && len(planned.Controllers) == 0 {
				t.Errorf("%s: a gang of %s, and the plan names nobody who places it", file, g.Scheduler)
			}
		}
	}
	for _, n := range controllers {
		if !used[n.Name] {
			t.Errorf("no fixture needs %s", n.Name)
		}
	}
}
