package schema

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// MultiKueue starts a job in another cluster of its queue.
const MultiKueue = "kueue.x-k8s.io/multikueue"

// unmanaged are APIs without the field managedBy.
func unmanaged(kind string) lacks { return lacks{"managedBy": kind + " has no field of that name"} }

// managedBy checks that there is somebody to start the job.
func (r *validation) managedBy() {
	s := &r.Spec
	switch by := s.ManagedBy; {
	case by == "":
	case by == MultiKueue && !s.Gang.Is(GangKueue):
		r.fail("spec.managedBy", "requires", "Kueue starts only jobs of a queue: set gang.scheduler kueue with "+
			"gang.queue, or leave it out")
	case by != MultiKueue && s.Target != TargetJob && s.Target != TargetJobSet:
		// the patterns of these CustomResourceDefinitions, beside the name of their own controller
		r.fail("spec.managedBy", "target", "target %s takes %s alone; targets %s, %s take any", s.Target, MultiKueue,
			TargetJob, TargetJobSet)
	}
}

// elsewhereNotes tell what MultiKueue leaves behind. Its adapters create the job and its Workload in the worker
// cluster, and nothing that its pods use (kueue, pkg/controller/jobs, *_multikueue_adapter.go); its setup asks for
// namespaces and LocalQueues of the same names there.
func (s *Spec) elsewhereNotes(namespace string) []string {
	if s.ManagedBy != MultiKueue || s.Gang == nil {
		return nil
	}
	needs := []string{"namespace " + namespace, "LocalQueue " + s.Gang.Queue}
	add := func(used bool, what string) {
		if used {
			needs = append(needs, what)
		}
	}
	add(s.Target == TargetTrainJob, "its TrainingRuntime")
	add(s.OwnAccount(), "its ServiceAccount")
	add(s.Target == TargetJob, "its headless Service")
	add(s.OverSSH(), "its ConfigMap and keys of ssh")
	add(s.has(RoleEtcd) || s.has(RoleCompanion), "the store where its workers meet")
	add(s.Resources.DeviceClass != "", "its ResourceClaimTemplate")
	add(len(s.Storage) > 0, "its volumes with their data")
	kind := rowOf(s).workload()
	return []string{fmt.Sprintf("spec.managedBy: Kueue copies the %s alone to a worker cluster, where it cannot "+
		"start without the rest: %s. Apply to each worker cluster all that is rendered but the %s, and create there "+
		"what its annotation %s names", kind, strings.Join(needs, ", "), kind, names.Expects)}
}
