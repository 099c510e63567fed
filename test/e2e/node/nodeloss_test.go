package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pool is where the jobs of the fixture node-loss are placed, and nobody else.
const pool, poolValue = "pool", "training"

// TestNodeLoss is scenario 4: one of two nodes is lost, with a worker of each of two jobs, without notice. The job
// that torchrun starts by itself and the one behind proxies go through it together, so their times compare.
func TestNodeLoss(t *testing.T) {
	w := begin(t)
	nodes := w.addNodes(t, 2, map[string]string{pool: poolValue}, corev1.Taint{
		Key: pool, Value: poolValue,
		Effect: corev1.TaintEffectNoSchedule,
	})
	jobs := []*testJob{
		w.job(t, "4 node loss, torchrun", rendered(t, "node-loss", "base"), "two-nodes-torch"),
		w.job(t, "4 node loss, torchrun behind proxies", rendered(t, "node-loss", "base"), "two-nodes-proxy"),
	}
	for _, j := range jobs {
		j.apply()
	}
	before := map[*testJob]generation{}
	// A torchrun that no proxy waits for ends where the nodes do not know its new Service yet.
	failed := map[*testJob]int32{}
	for _, j := range jobs {
		before[j] = j.awaitSpread(nodes)
		failed[j] = j.failures(j.name + "-worker")
	}
	// Rank 0 has the store of the workers' process group, and writes the checkpoint.
	lost := jobs[0].nodeOf(before[jobs[0]].joins[0])
	for _, j := range jobs {
		j.awaitEvent("ten steps", patience, j.applied, func(e event) bool { return e.Event == "step" && e.Step >= 10 })
	}

	cut := w.cutOff(t, lost)
	gone := map[*testJob]*corev1.Pod{}
	for _, j := range jobs {
		gone[j] = j.awaitSurvivor(before[j], lost, cut)
	}
	for _, j := range jobs {
		j.awaitGivenUp(gone[j], cut)
	}
	// Until somebody says that the node is off, as Kubernetes has it: before, it is unknown whether its pods still run.
	off := time.Now()
	w.kubectl(t, "taint", "node", lost, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	for _, j := range jobs {
		j.awaitNoRoom(gone[j])
	}
	removed := time.Now()
	w.kubectl(t, "delete", "node", lost, "--wait=false")
	for _, j := range jobs {
		two := j.awaitWorld(2, off, patience)
		j.took("Node removed to two workers that train again", removed, two.stepped)
		j.checkContinued(two)
		if now := j.failures(j.name + "-worker"); now > failed[j] {
			t.Errorf("%s counts %d failures, %d before, and has lost nothing but a node", j.name, now, failed[j])
		}
	}
}

// awaitSpread waits until a worker trains on each of these nodes.
func (j *testJob) awaitSpread(nodes []string) generation {
	j.t.Helper()
	g := j.awaitWorld(len(nodes), j.applied, patience)
	j.took("apply to a worker on each of two nodes that train", j.applied, g.stepped)
	var on []string
	for _, e := range g.joins {
		on = append(on, j.nodeOf(e))
	}
	slices.Sort(on)
	if diff := cmp.Diff(nodes, on); diff != "" {
		j.t.Fatalf("the workers of %s are not spread over the nodes (-want +got):\n%s", j.name, diff)
	}
	return g
}

// awaitSurvivor waits until the worker that was not on the lost node trains alone, and returns the pod that was there.
func (j *testJob) awaitSurvivor(before generation, lost string, cut time.Time) (gone *corev1.Pod) {
	j.t.Helper()
	alone := j.awaitWorld(1, cut, patience)
	j.checkContinued(alone)
	for _, e := range before.joins {
		switch {
		case j.nodeOf(e) == lost:
			gone = j.pod(e.Pod)
			// Rank 0 has more to lose, and which rank of the others the node has is chance.
			j.took(fmt.Sprintf("lost node, with rank %d, to the survivor training again", e.Rank), cut, alone.stepped)
		case e.UID != alone.joins[0].UID:
			j.t.Errorf("%s trains alone, not %s, which was not on the node that was lost", alone.joins[0].Pod, e.Pod)
		}
	}
	return gone
}

// awaitGivenUp waits until a pod of a lost node is deleted, half a minute after the node is known to be unreachable, as
// the fixture's tolerations say; Kubernetes' own take five minutes. It stays, since no kubelet says that it has ended,
// and no other has its place (podReplacementPolicy Failed): two that write one checkpoint would be worse than one too
// few.
func (j *testJob) awaitGivenUp(gone *corev1.Pod, cut time.Time) {
	j.t.Helper()
	eventually(j.t, "pod "+gone.Name+" to be given up", patience, func() error {
		pod := j.pod(gone.Name)
		i := slices.IndexFunc(pod.Status.Conditions,
			func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
		if pod.DeletionTimestamp == nil || i < 0 || pod.Status.Conditions[i].Reason != "DeletionByTaintManager" {
			return errors.New(describePod(pod))
		}
		return nil
	})
	j.took("lost node to its pod being given up", cut, time.Now())
	j.awaitSteps(1, time.Now(), patience)
	pods := slices.DeleteFunc(j.podsOf("worker"), func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	if len(pods) != 2 {
		j.t.Errorf("%s has %d workers, want one that trains and one in an unknown state", j.name, len(pods))
	}
}

// awaitNoRoom waits for the pod that replaces one of a lost node. It has to wait: the constraint of the fixture spreads
// workers over the nodes that exist, and the lost one does as long as its Node is there.
func (j *testJob) awaitNoRoom(gone *corev1.Pod) {
	j.t.Helper()
	eventually(j.t, "a pod in the place of "+gone.Name+" that has no room", patience, func() error {
		var seen []string
		for _, pod := range j.podsOf("worker") {
			for _, c := range pod.Status.Conditions {
				if pod.UID != gone.UID && pod.Spec.NodeName == "" && c.Type == corev1.PodScheduled &&
					strings.Contains(c.Message, "didn't match pod topology spread constraints") {
					return nil
				}
			}
			seen = append(seen, describePod(&pod))
		}
		return fmt.Errorf("there are %q", seen)
	})
}

// failures are the pods that a Job counts as failed.
func (j *testJob) failures(name string) int32 {
	j.t.Helper()
	of, err := j.client.BatchV1().Jobs(j.namespace).Get(j.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		j.t.Fatalf("reading Job %s: %v", name, err)
	}
	return of.Status.Failed
}
