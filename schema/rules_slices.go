package schema

import (
	"fmt"
	"slices"
)

var slicesRules = []rule{
	{(*validation).slices, "workers.slices workers.replicas workers.min workers.max"},
	{(*validation).slicesEnvironment, "framework workers.slices env podTemplate roles"},
	{
		(*validation).slicesProgram,
		"framework workers.slices command script resources.gpu resources.gpuResource",
	},
}

// Sliced says whether the workers are several slices.
func (s *Spec) Sliced() bool { return s.Workers.Slices > 1 }

// RanksBySlice says whether a shell reckons the number of a process from those of its slice and of its pod. JAX does it
// itself where the accelerators are TPUs, and torchrun gives out ranks of its own.
func (s *Spec) RanksBySlice() bool { return s.Sliced() && s.Framework == FrameworkJAX && !s.TPU() }

// slices holds their number against the workers.
func (r *validation) slices() {
	const at = "spec.workers.slices"
	w := &r.Spec.Workers
	switch {
	case w.Slices < 2 || w.Replicas == 0:
	case w.Replicas%w.Slices != 0:
		r.fail(at, "order", "%d does not divide spec.workers.replicas %d: every slice must be whole", w.Slices,
			w.Replicas)
	case w.Min != w.Max:
		r.fail(at, "requires", "an elastic job (min %d, max %d) has one slice, since its workers come and go: leave "+
			"it out, or make them equal", w.Min, w.Max)
	}
}

// SliceVariables are what tells a worker which slice it is of; JAX reads the last one.
var SliceVariables = []string{"SLICE_ID", "NUM_SLICES", "JAX_PARTITION_INDEX"}

// slicesEnvironment refuses variables that tegen sets.
func (r *validation) slicesEnvironment() {
	if !r.Spec.Sliced() {
		return
	}
	check := func(at, name string) {
		if slices.Contains(SliceVariables, name) && (r.Spec.RanksBySlice() || name != SliceVariables[2]) {
			r.fail(at, "reserved", "%s is set by tegen: see spec.workers.slices", name)
		}
	}
	for i, e := range r.Spec.Env {
		check(fmt.Sprintf("spec.env[%d].name", i), e.Name)
	}
	for at, name := range r.patchedEnv() {
		check(at+".name", name)
	}
}

// slicesProgram needs a program where a shell starts it: it does not know the image's own.
func (r *validation) slicesProgram() {
	if r.Spec.RanksBySlice() && len(r.Spec.Command) == 0 && r.Spec.Script == nil {
		r.fail("spec", "requires", "nothing to run, and of several slices a shell starts the program, which does not "+
			"know the image's entrypoint: give a command or a script")
	}
}

// sliceTopology gives each slice of the workers a domain of its own, where the gang's scheduler can place slices and
// nobody says otherwise. JobSet's own way has a domain for each Job anyway.
func (s *Spec) sliceTopology() {
	t := s.Topology()
	if t != nil && s.Sliced() && t.Slice == 0 && t.Required() && s.Gang.Is(GangKueue, GangKoordinator, GangTegen) &&
		s.Workers.Replicas%s.Workers.Slices == 0 {
		t.Slice = s.Workers.SliceSize()
	}
}
