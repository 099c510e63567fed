package generators_test

import (
	"slices"
	"testing"

	"github.com/tegen-dev/tegen/schema"
)

// TestFixturesCover: there is a fixture, and so a golden file, of every target, of every target suspended where it can
// be, and of every gang on target job, on jobset and on a custom resource.
func TestFixturesCover(t *testing.T) {
	seen := map[string]bool{}
	eachJob(t, func(_ *testing.T, job *schema.Job) {
		s := &job.Spec
		seen[s.Framework+" "+s.Target] = true
		seen[s.Framework+" "+s.Target+" "+s.ByteScheduler.Mode] = true
		if s.Suspend {
			seen[s.Framework+" "+s.Target+" suspended"] = true
		}
		if s.Gang == nil {
			return
		}
		on := s.Target
		if !slices.Contains([]string{schema.TargetJob, schema.TargetPods, schema.TargetJobSet}, on) {
			on = "a custom resource"
		}
		seen[s.Gang.Scheduler+" on "+on] = true
	})
	need := func(what string) {
		if !seen[what] {
			t.Errorf("no fixture of %s", what)
		}
	}
	for _, target := range schema.Targets {
		need(target.Framework + " " + target.Name)
		if target.Carries("suspend") {
			need(target.Framework + " " + target.Name + " suspended")
		}
	}
	need("bytescheduler job byteps")
	for _, scheduler := range []string{schema.GangKoordinator, schema.GangCoscheduling, schema.GangVolcano, schema.GangKueue, schema.GangKubernetes, schema.GangTegen} {
		for _, on := range []string{schema.TargetJob, schema.TargetJobSet, "a custom resource"} {
			need(scheduler + " on " + on)
		}
	}
}
