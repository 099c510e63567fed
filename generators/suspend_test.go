package generators_test

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema"
)

// suspension is the one field, in whatever object, by which a job is held back: of a Job and most custom resources, of
// what training-operator and mpi-operator run, and of bare pods.
var suspension = regexp.MustCompile(`^[A-Za-z]+/[a-z0-9-]+ spec\.(suspend|runPolicy\.suspend|schedulingGates)$`)

// TestSuspendEverywhere: a suspended job and a running one differ in that field and nothing else, for every fixture of
// every target that has one. TestSupport proves that the others refuse suspend with their reason.
func TestSuspendEverywhere(t *testing.T) {
	covered := map[[2]string]bool{}
	eachJob(t, func(t *testing.T, job *schema.Job, objs []runtime.Object) {
		target := schema.TargetOf(job.Spec.Framework, job.Spec.Target)
		if !target.Carries("suspend") || job.Spec.Gang.Is(schema.GangKueue) { // who suspends by itself
			return
		}
		covered[[2]string{target.Framework, target.Name}] = true
		other := *job
		other.Spec.Suspend = !job.Spec.Suspend
		got := changed(t, objs, objects(&other))
		if len(got) == 0 {
			t.Errorf("%s: nothing is suspended", job.Metadata.Name)
		}
		for _, field := range got {
			if !suspension.MatchString(field) {
				t.Errorf("%s: suspending changes %s", job.Metadata.Name, field)
			}
		}
	})
	for _, target := range schema.Targets {
		if target.Carries("suspend") && !covered[[2]string{target.Framework, target.Name}] {
			t.Errorf("%s/%s: no fixture", target.Framework, target.Name)
		}
	}
}
