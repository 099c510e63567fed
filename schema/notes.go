package schema

// Notes are what somebody who applies the job should know and no mistake of theirs: a sentence each, for standard error.
func (j *Job) Notes() (notes []string) {
	if j.Spec.Framework == FrameworkDLRover && j.Spec.Suspend {
		notes = append(notes, "spec.suspend: DLRover starts the job's master all the same, and workers that run already are not stopped")
	}
	return notes
}
