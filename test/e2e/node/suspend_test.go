package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/test/e2e/objects"
)

// stillness is how long nothing may start that is suspended. What would start does so within a second.
const stillness = 5 * time.Second

// TestSuspend is scenario 6: a job that is rendered suspended, whose training starts, stops and goes on by one field.
// It names the companion's image by the digest, as a release does.
func TestSuspend(t *testing.T) {
	w := begin(t)
	name, text := readFixture(t, "suspend-checkpoint")
	byDigest := strings.Replace(text, "ghcr.io/acme/tegen-rendezvous:1.0.0",
		"tegen-rendezvous@"+builtDigest(t, "tegen-rendezvous"), 1)
	j := w.job(t, "6 suspend", manifest(t, name, byDigest, "kind"), "")
	j.apply()
	j.took("apply, suspended, to its rendezvous being ready", j.applied, j.awaitReady("rendezvous"))
	j.awaitSuspended("pausable-worker")
	checkBuilt(t, "tegen-rendezvous", j.podsOf("rendezvous"))
	if n := j.seen("worker"); n > 0 {
		t.Errorf("a job that was never started has had %d workers", n)
	}

	started := j.suspend("pausable-worker", false)
	first := j.awaitWorld(2, started, patience)
	j.took("spec.suspend false to two workers that train", started, first.stepped)
	// A worker that was slow to start may have found the other one training.
	if begun := j.awaitEvent("the first join", patience, started,
		func(e event) bool { return e.Event == "join" }); begun.Step != 0 {
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
func (j *testJob) suspend(name string, to bool) (at time.Time) {
	j.t.Helper()
	at = time.Now()
	j.kubectl(j.t, "patch", "job", name, "-n", j.namespace, "--type=merge",
		fmt.Sprintf(`--patch={"spec":{"suspend":%v}}`, to))
	j.logf("patched spec.suspend to %v", to)
	return at
}

// awaitSuspended waits until a Job says that it is suspended and nothing runs but the rendezvous, returns when, and
// sees that it stays so.
func (j *testJob) awaitSuspended(name string) (at time.Time) {
	j.t.Helper()
	eventually(j.t, "Job "+name+" to be suspended", patience, func() error {
		if got := j.condition(name, batchv1.JobSuspended); got != corev1.ConditionTrue {
			return fmt.Errorf("its condition Suspended is %s", got)
		}
		return j.onlyRendezvous()
	})
	at = time.Now()
	j.checkStill(at)
	return at
}

// checkStill sees that a suspended job stays so.
func (j *testJob) checkStill(since time.Time) {
	j.t.Helper()
	workers := j.seen("worker")
	for ; time.Since(since) < stillness; time.Sleep(poll) {
		if err := j.onlyRendezvous(); err != nil {
			j.t.Fatalf("a suspended job does not stay so: %v", err)
		}
	}
	// One that came and went between two looks.
	if n := j.seen("worker") - workers; n > 0 {
		j.t.Errorf("a suspended job has started %d workers", n)
	}
}

// onlyRendezvous complains of pods of another component than the rendezvous that the manifest brings, where it does.
func (j *testJob) onlyRendezvous() error {
	return onlyRendezvous(j.podsOf(""), slices.ContainsFunc(j.objects, func(o *objects.Object) bool {
		return o.GetKind() == "StatefulSet" && o.GetLabels()[componentLabel] == "rendezvous"
	}))
}

// onlyRendezvous complains of pods of another component that have not ended, of a rendezvous that is not ready, and
// where one that is wanted is missing.
func onlyRendezvous(pods []corev1.Pod, wanted bool) error {
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodFailed && pod.Labels[componentLabel] != "rendezvous" {
			continue // a Job keeps those that failed before
		}
		if pod.Labels[componentLabel] != "rendezvous" || !ready(&pod) {
			return errors.New(describePod(&pod))
		}
	}
	if wanted && len(pods) == 0 {
		return errors.New("it has no rendezvous")
	}
	return nil
}

func TestOnlyRendezvous(t *testing.T) {
	t.Parallel()
	pod := func(component string, is corev1.ConditionStatus) (p corev1.Pod) {
		p.Labels = map[string]string{componentLabel: component}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
		return p
	}
	if err := onlyRendezvous([]corev1.Pod{pod("rendezvous", corev1.ConditionTrue)}, true); err != nil {
		t.Error(err)
	}
	if err := onlyRendezvous(nil, false); err != nil {
		t.Error(err)
	}
	failed := pod("worker", corev1.ConditionFalse)
	failed.Status.Phase = corev1.PodFailed
	if err := onlyRendezvous([]corev1.Pod{failed}, false); err != nil {
		t.Error(err)
	}
	for _, pods := range [][]corev1.Pod{
		nil,
		{pod("rendezvous", corev1.ConditionFalse)},
		{pod("rendezvous", corev1.ConditionTrue), pod("worker", corev1.ConditionTrue)},
	} {
		if onlyRendezvous(pods, true) == nil {
			t.Errorf("no complaint of %v", pods)
		}
	}
}
