package schema

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/structural"
)

// SaveHook names the script of a preStop hook that has checkpoints written.
const SaveHook = "save"

// afterSave is what a pod needs beyond its checkpoint: as much as torchrun leaves its processes to end.
const afterSave = 30 * time.Second

// Agent is a word of the command line by which a worker's launcher is found among its processes, "" where the program
// is the container's first process.
func (s *Spec) Agent() string {
	switch l := s.Launch(); {
	case s.Framework != FrameworkTorchelastic:
		return ""
	case l != nil && l.Program != "":
		return l.Program
	case s.Torchrun():
		return LauncherTorchrun
	}
	return ""
}

// graceToSave gives a pod the time that its checkpoint takes, where nobody says how long it has.
func (s *Spec) graceToSave(root *structural.Node) {
	if c := s.Checkpoint; c != nil && c.Save != nil && !root.IsSet("spec.gracePeriod") {
		s.GracePeriod = metav1.Duration{Duration: c.Save.Takes.Duration + afterSave}
	}
}

// save checks that a checkpoint has the time that it takes, and that nothing else is to happen at a pod's end.
func (r *validation) save() {
	c := r.Spec.Checkpoint
	if c == nil || c.Save == nil {
		return
	}
	if takes, grace := c.Save.Takes.Duration, r.Spec.GracePeriod.Duration; grace < takes {
		r.fail("spec.checkpoint.save.takes", "order", "the kubelet kills a pod after gracePeriod, %s, and the "+
			"checkpoint takes %s: leave gracePeriod out, or make it longer", grace, takes)
	}
	for i, p := range r.patch().Spec.Containers {
		if p.Name == RoleWorker && p.Lifecycle != nil {
			r.fail(fmt.Sprintf("spec.podTemplate.spec.containers[%d].lifecycle", i), "one-of",
				"checkpoint.save is a hook of its own: leave one of the two out")
		}
	}
}
