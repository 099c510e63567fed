package operators

import (
	"slices"
	"testing"

	"github.com/tegen-dev/tegen/schema/target"
)

// TestTried: what docs/support.md says was run by a program, this suite has scenarios for, and it has no program that
// the document is silent about.
func TestTried(t *testing.T) {
	elsewhere := []string{"Kubernetes", "tegen-scheduler"} // test/e2e's other suites run these
	var named []string
	add := func(of string, tried target.Tried) {
		for _, r := range tried.Runs {
			named = append(named, r.Program)
			has := slices.ContainsFunc(programs, func(p program) bool {
				return p.name == r.Program && len(p.scenarios) > 0
			})
			if !has && !slices.Contains(elsewhere, r.Program) {
				t.Errorf("%s: no scenario tries %s", of, r.Program)
			}
		}
	}
	for target, tried := range target.TriedTargets {
		add(target[0]+", "+target[1], tried)
	}
	for gang, tried := range target.TriedGangs {
		add(gang, tried)
	}
	for _, p := range programs {
		if !slices.Contains(named, p.name) {
			t.Errorf("%s is tried, and docs/support.md does not say so", p.name)
		}
	}
}
