package generators_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// TestFixturesCover: there is a fixture, and so a golden file, of every generator, of every target, of every target
// suspended where it can be, and of every gang. TestGangs and TestSupport try each gang on every target.
func TestFixturesCover(t *testing.T) {
	seen := map[string]bool{}
	eachJob(t, func(_ *testing.T, j *job.Job, _ []runtime.Object) {
		s := &j.Spec
		for _, c := range generators.Generate(j) {
			seen["generator "+c.Name] = true
		}
		seen[s.Framework+" "+s.Target] = true
		seen[s.Framework+" "+s.Target+" "+s.ByteScheduler.Mode] = true
		if s.Suspend {
			seen[s.Framework+" "+s.Target+" suspended"] = true
		}
		if s.Gang != nil {
			seen["gang of "+s.Gang.Scheduler] = true
		}
	})
	need := func(what string) {
		if !seen[what] {
			t.Errorf("no fixture of %s", what)
		}
	}
	for _, target := range target.All {
		need(target.Framework + " " + target.Name)
		if target.Carries("suspend") {
			need(target.Framework + " " + target.Name + " suspended")
		}
	}
	need("bytescheduler job byteps")
	for _, g := range (generators.Set{}).All() {
		need("generator " + g.Name)
	}
	for _, d := range job.Dialects {
		need("gang of " + d.Name)
	}
}
