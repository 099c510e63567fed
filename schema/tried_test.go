package schema

import "testing"

// Every target and every gang says how far it was tried, and nothing else does.
func TestTried(t *testing.T) {
	targets := map[[2]string]bool{}
	for _, target := range Targets {
		key := [2]string{target.Framework, target.Name}
		targets[key] = true
		if _, ok := TriedTargets[key]; !ok {
			t.Errorf("%v: no row in TriedTargets", key)
		}
	}
	for key := range TriedTargets {
		if !targets[key] {
			t.Errorf("%v: there is no such target", key)
		}
	}
	for _, d := range Dialects {
		if _, ok := TriedGangs[d.Name]; !ok {
			t.Errorf("%s: no row in TriedGangs", d.Name)
		}
	}
	if len(TriedGangs) != len(Dialects) {
		t.Errorf("%d gangs were tried, there are %d", len(TriedGangs), len(Dialects))
	}
}
