package schema

// Notes are what somebody who applies the job should know and no mistake of theirs: a sentence each, for standard error.
func (j *Job) Notes() (notes []string) {
	if j.Spec.Framework == FrameworkDLRover && j.Spec.Suspend {
		notes = append(notes, "spec.suspend: DLRover starts the job's master all the same, and workers that run already are not stopped")
	}
	if j.Spec.ParameterServers() && j.Spec.Target == TargetJob && j.Spec.Failure.Deadline == nil {
		notes = append(notes, "spec.failure.deadline: none is set, and when a pod is lost those of the other roles wait in vain, with their accelerators, until somebody deletes the job")
	}
	return notes
}
