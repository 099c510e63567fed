package diff

import "slices"

// ends are the conditions that say that a run has finished, of Jobs, JobSets, TrainJobs and the training operator's
// kinds.
var ends = []string{"Complete", "Completed", "Succeeded", "Failed"}

// finished says whether a server printed that a run is over: nothing of it runs, and nothing can be suspended.
func (o *object) finished() bool {
	if o.is("Pod") {
		return slices.Contains(ends, text(o.status["phase"]))
	}
	return slices.ContainsFunc(items(o.status["conditions"]), func(c any) bool {
		return text(at(c, "status")) == "True" && slices.Contains(ends, text(at(c, "type")))
	})
}
