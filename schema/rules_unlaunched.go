package schema

// unlaunched refuses what a program that is told of no rendezvous would never learn.
func (r *validation) unlaunched() {
	w := &r.Spec.Workers
	if !r.Spec.Unlaunched() {
		return
	}
	const never = "the program is told of none with launcher none, so this field has no effect: leave it out, or set " +
		"launcher: entrypoint"
	if n := r.Root.Below("spec", "rendezvous"); r.IsSet("spec.rendezvous") && !n.Merged && !w.Master {
		r.fail("spec.rendezvous", "requires", never)
	}
	if r.IsSet("spec.workers.processes") && w.Processes.IntVal != 1 {
		r.fail("spec.workers.processes", "requires",
			"nothing starts more than the one program with launcher none: leave it out, or set another launcher")
	}
	if w.Min != w.Max {
		r.fail("spec.workers.min", "requires", "an elastic job (min %d, max %d) meets anew when workers come and go, "+
			"and with launcher none nobody tells the program: set another launcher", w.Min, w.Max)
	}
}
