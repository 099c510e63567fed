package schema

import (
	"testing"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// Every target and every gang says how far it was tried, and nothing else does.
func TestTried(t *testing.T) {
	targets := map[[2]string]bool{}
	for _, tgt := range target.All {
		key := [2]string{tgt.Framework, tgt.Name}
		targets[key] = true
		if _, ok := target.TriedTargets[key]; !ok {
			t.Errorf("%v: no row in TriedTargets", key)
		}
	}
	for key := range target.TriedTargets {
		if !targets[key] {
			t.Errorf("%v: there is no such target", key)
		}
	}
	for _, d := range job.Dialects {
		if _, ok := target.TriedGangs[d.Name]; !ok {
			t.Errorf("%s: no row in TriedGangs", d.Name)
		}
	}
	if len(target.TriedGangs) != len(job.Dialects) {
		t.Errorf("%d gangs were tried, there are %d", len(target.TriedGangs), len(job.Dialects))
	}
}
