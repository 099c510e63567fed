package node

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// await waits until events are found to be enough.
func (j *testJob) await(what string, within time.Duration, found func([]event) bool) {
	j.t.Helper()
	if err := j.waitFor(j.t.Context(), within, found); err != nil {
		j.t.Fatalf("waiting for %s of %s: %v", what, j.name, err)
	}
}

// awaitEvent waits for the first event that matches, and is after a time by its own clock.
func (j *testJob) awaitEvent(what string, within time.Duration, after time.Time, match func(event) bool) (found event) {
	j.t.Helper()
	j.await(what, within, func(events []event) bool {
		i := slices.IndexFunc(events, func(e event) bool { return e.at().After(after) && match(e) })
		if i >= 0 {
			found = events[i]
		}
		return i >= 0
	})
	return found
}

// awaitWorld waits until a world of this size has joined after a time, and every rank of it has made the same step: the
// sum of each is right, or nothing is waited for any more.
func (j *testJob) awaitWorld(size int, after time.Time, within time.Duration) (g generation) {
	j.t.Helper()
	j.await(fmt.Sprintf("%d ranks that train", size), within, func(events []event) (ok bool) {
		g, ok = formed(events, size, after)
		return ok
	})
	j.logf("%d ranks train, from step %d; masters: %s", size, g.step, g.joins[0].Master)
	return g
}

// awaitSteps waits for a step after a time that every rank of a world of this size made.
func (j *testJob) awaitSteps(size int, after time.Time, within time.Duration) (at time.Time) {
	j.t.Helper()
	j.await(fmt.Sprintf("%d ranks that make a step", size), within, func(events []event) (ok bool) {
		at, ok = stepped(events, size, after)
		return ok
	})
	return at
}

// checkContinued is the proof of a checkpoint: a world goes on where the one before it was. The step that is written
// last and the step that is printed last differ by one where a rank is killed between the two.
func (j *testJob) checkContinued(g generation) {
	j.t.Helper()
	last := lastStep(j.all(), g.joined)
	if g.step < 1 || g.step < last-1 || g.step > last+1 {
		j.t.Fatalf("%s goes on from step %d; the last that was made before is %d", j.name, g.step, last)
	}
	for _, e := range g.joins {
		if e.Step != g.step {
			j.t.Fatalf("rank %d goes on from step %d, others from %d", e.Rank, e.Step, g.step)
		}
	}
}

// stop asks a training to end: all workers do, after the same step.
func (j *testJob) stop(pod string) {
	j.t.Helper()
	j.exec(pod, "touch", "/tmp/stop")
	j.logf("asked %s to stop", pod)
}

// awaitLine waits for a line of a worker that matches.
func (j *testJob) awaitLine(what string, within time.Duration, pod string, match *regexp.Regexp) (found line) {
	j.t.Helper()
	j.await(what, within, func([]event) bool {
		for from, lines := range j.lines { // whose lock is held
			if from.pod != pod {
				continue
			}
			if i := slices.IndexFunc(lines, func(l line) bool { return match.MatchString(l.text) }); i >= 0 {
				found = lines[i]
				return true
			}
		}
		return false
	})
	return found
}
