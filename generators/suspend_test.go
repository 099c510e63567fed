package generators_test

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// suspension is the one field, in whatever object, by which a job is held back: of a Job and most custom resources, of
// what training-operator and mpi-operator run, and of bare pods.
var suspension = regexp.MustCompile(`^[A-Za-z]+/[a-z0-9-]+ spec\.(suspend|runPolicy\.suspend|schedulingGates)$`)

// TestSuspendEverywhere: a suspended job and a running one differ in that field and nothing else, for every fixture of
// every target that has one. TestSupport proves that the others refuse suspend with their reason.
func TestSuspendEverywhere(t *testing.T) {
	covered := map[[2]string]bool{}
	eachJob(t, func(t *testing.T, j *job.Job, objs []runtime.Object) {
		target := target.Of(j.Spec.Framework, j.Spec.Target)
		if !target.Carries("suspend") || j.Spec.Gang.Is(job.GangKueue) { // who suspends by itself
			return
		}
		covered[[2]string{target.Framework, target.Name}] = true
		other := *j
		other.Spec.Suspend = !j.Spec.Suspend
		got := changed(t, objs, objects(&other))
		if len(got) == 0 {
			t.Errorf("%s: nothing is suspended", j.Metadata.Name)
		}
		for _, field := range got {
			if !suspension.MatchString(field) {
				t.Errorf("%s: suspending changes %s", j.Metadata.Name, field)
			}
		}
	})
	for _, target := range target.All {
		if target.Carries("suspend") && !covered[[2]string{target.Framework, target.Name}] {
			t.Errorf("%s/%s: no fixture", target.Framework, target.Name)
		}
	}
}
