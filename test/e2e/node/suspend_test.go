package node

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// stillness is how long nothing may start that is suspended. What would start does so within a second.
const stillness = 5 * time.Second

// TestSuspend is scenario 6: a job that is rendered suspended, whose training starts, stops and goes on by one field.
func TestSuspend(t *testing.T) {
	w := begin(t)
	j := w.job(t, "6 suspend", golden("suspend-checkpoint", "kind"), "")
	j.apply()
	j.took("apply, suspended, to its rendezvous being ready", j.applied, j.awaitReady("rendezvous"))
	j.awaitSuspended("pausable-worker")

	started := j.suspend("pausable-worker", false)
	first := j.awaitWorld(2, started, patience)
	j.took("spec.suspend false to two workers that train", started, first.stepped)
	// A worker that was slow to start may have found the other one training.
	if begun := j.awaitEvent("the first join", patience, started, func(e event) bool { return e.Event == "join" }); begun.Step != 0 {
		t.Errorf("the first world goes on from step %d, before anything was trained", begun.Step)
	}
	j.awaitEvent("ten steps", patience, started, func(e event) bool { return e.Event == "step" && e.Step >= 10 })

	stopped := j.suspend("pausable-worker", true)
	j.took("spec.suspend true to no worker being left", stopped, j.awaitSuspended("pausable-worker"))

	resumed := j.suspend("pausable-worker", false)
	second := j.awaitWorld(2, resumed, patience)
	j.took("spec.suspend false again to two workers that train from the checkpoint", resumed, second.stepped)
	j.checkContinued(second)

	j.stop(second.joins[0].Pod)
	steps := j.awaitDone(2, second.stepped, patience)
	if steps <= second.step {
		t.Errorf("the training ended after step %d, and had gone on from %d", steps, second.step)
	}
	j.awaitComplete("pausable-worker", patience)
	j.deleteByLabel(patience)
}

// suspend changes the one field that suspends a Job, as a person would, and returns when.
func (j *job) suspend(name string, to bool) (at time.Time) {
	j.t.Helper()
	at = time.Now()
	j.kubectl(j.t, "patch", "job", name, "-n", j.namespace, "--type=merge", fmt.Sprintf(`--patch={"spec":{"suspend":%v}}`, to))
	j.logf("patched spec.suspend to %v", to)
	return at
}

// awaitSuspended waits until a Job says that it is suspended and has no workers, returns when, and sees that it stays so.
func (j *job) awaitSuspended(name string) (at time.Time) {
	j.t.Helper()
	eventually(j.t, "Job "+name+" to be suspended", patience, func() error {
		if got := j.condition(name, batchv1.JobSuspended); got != corev1.ConditionTrue {
			return fmt.Errorf("its condition Suspended is %s", got)
		}
		if pods := j.podsOf("worker"); len(pods) > 0 {
			return fmt.Errorf("it has %d pods: %s", len(pods), describePod(&pods[0]))
		}
		return nil
	})
	at = time.Now()
	for ; time.Since(at) < stillness; time.Sleep(poll) {
		if pods := j.podsOf("worker"); len(pods) > 0 {
			j.t.Fatalf("a suspended job has a worker: %s", describePod(&pods[0]))
		}
	}
	return at
}
