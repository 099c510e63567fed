package node

import (
	"slices"
	"testing"
)

// TestWorker0 is scenario 12: the smallest job, whose workers meet in worker 0. The others go on without any
// other worker; without worker 0 every agent ends, and the pods that follow meet in its replacement.
func TestWorker0(t *testing.T) {
	w := begin(t)
	const name = "resnet-worker"
	j := w.job(t, "12 c10d in worker 0", rendered(t, "minimal", "kind"), "")
	for _, o := range j.objects {
		if o.GetLabels()[componentLabel] == "rendezvous" {
			t.Fatalf("%s %s: the smallest job has a store beside its workers", o.GetKind(), o.GetName())
		}
	}
	j.apply()
	world := j.awaitWorld(3, j.applied, patience)
	j.took("apply to three workers that train", j.applied, world.stepped)

	j.awaitProgress(world)
	other := world.joins[slices.IndexFunc(world.joins, func(e event) bool { return e.Host != name+"-0" })]
	deleted, _ := j.deletePod(other.Pod, 10)
	next := j.awaitWorld(3, deleted, patience)
	j.tookAgain("pod of another worker deleted, grace 10 s,", deleted, next)
	for _, e := range world.joins {
		if next.has(e.UID) != (e.UID != other.UID) {
			t.Errorf("%s was deleted, and of %s it holds that it trains on: %v", other.Pod, e.Pod, next.has(e.UID))
		}
	}
	if failed := j.failures(name); failed != 1 {
		t.Errorf("Job %s counts %d failures after the loss of one worker that is not worker 0", name, failed)
	}

	j.awaitProgress(next)
	first := next.joins[slices.IndexFunc(next.joins, func(e event) bool { return e.Host == name+"-0" })]
	deleted, _ = j.deletePod(first.Pod, 10)
	again := j.awaitWorld(3, deleted, patience)
	j.tookAgain("pod of worker 0 deleted, grace 10 s,", deleted, again)
	for _, e := range next.joins {
		if again.has(e.UID) {
			t.Errorf("%s trains on without the store that its agent met the others in", e.Pod)
		}
	}
	if failed := j.failures(name); failed != 4 {
		t.Errorf("Job %s counts %d failures, want three more after the loss of worker 0 of three", name, failed)
	}

	stopped := j.suspend(name, true)
	j.took("spec.suspend true to no worker being left", stopped, j.awaitSuspended(name))
	resumed := j.suspend(name, false)
	last := j.awaitWorld(3, resumed, patience)
	j.took("spec.suspend false to three workers that train", resumed, last.stepped)
	j.stop(last.joins[1].Pod)
	j.awaitDone(3, last.stepped, patience)
	j.awaitComplete(name, patience)
	j.deleteByLabel(patience)
}
