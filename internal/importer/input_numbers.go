package importer

import "slices"

// counted are fields that hold whole numbers in every kind that is read.
var counted = []string{
	"replicas", "parallelism", "completions", "numNodes", "minReplicas", "maxReplicas", "minAvailable", "minMember",
	"backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes", "maxRestarts", "maxRetry", "slotsPerWorker",
	"activeDeadlineSeconds", "ttlSecondsAfterFinished", "scheduleTimeoutSeconds", "terminationGracePeriodSeconds",
	"podIndex",
}

// noNumber says whether a value that is no whole number stands where the API takes nothing else. One without a value is
// reported as a blank.
func noNumber(v view) bool {
	n := len(v.path)
	if n == 0 || !v.isSet() || v.value == "" || !slices.Contains(counted, v.path[n-1]) || n > 1 && texts[v.path[n-2]] {
		return false
	}
	_, ok := v.number()
	return !ok
}

// reportNoNumber reports such a value; what is printed has something else in its place, and must not be taken for it.
func (d *draft) reportNoNumber(v view) {
	d.note(v, Error, "must be a whole number: put one in its place%s", d.orIntoFields(v))
	suppressCounts(v)
	d.incomplete = true
	v.markTranslated()
}

// numbersOfPods are the fields that say together how many pods there are.
var numbersOfPods = []string{"replicas", "parallelism", "completions"}

// suppressCounts keeps a number of pods that is not known from being told as others that were lost: what is rendered
// in its place is no number of the source's.
func suppressCounts(v view) {
	n := len(v.path)
	if !slices.Contains(numbersOfPods, v.path[n-1]) {
		return
	}
	spec := v.object.view().walk(v.path[:n-1])
	for _, field := range numbersOfPods {
		spec.at(field).markTranslated()
	}
	if n > 3 && v.path[n-3] == "template" { // of a Job of which a set has several
		v.object.view().walk(v.path[:n-3]).at("replicas").markTranslated()
	}
}
