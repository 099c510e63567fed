package generators

import (
	"slices"

	"github.com/tegen-dev/tegen/schema/job"
)

// Least says of each component that trains how many of its pods must run before training starts: the gang's minimum of
// workers, or as many as the framework waits for. Of a component that it does not name, all pods must run.
func Least(j *job.Job) map[string]int32 {
	least := map[string]int32{}
	for _, r := range roles(j) {
		least[r.component] += r.least
	}
	if g := j.Spec.Gang; g != nil && g.Scheduler != job.GangNone {
		least[componentWorker] = g.MinAvailable
	}
	return least
}

// Helps says whether the pods of a component serve the training pods and do not train themselves.
func Helps(component string) bool {
	return slices.Contains([]string{componentEtcd, componentCompanion, componentPrefetch}, component)
}
