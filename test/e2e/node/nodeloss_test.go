package node

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// pool is where the jobs of the fixture node-loss are placed, and nobody else.
const pool, poolValue = "pool", "training"

// TestNodeLoss is scenario 4: one of two nodes is lost, with a worker of each of two jobs, and nobody is told. The job that
// tegen-rendezvous starts and the one that torchrun starts go through it together, so their times compare.
func TestNodeLoss(t *testing.T) {
	w := begin(t)
	nodes := w.addNodes(t, 2, map[string]string{pool: poolValue}, corev1.Taint{Key: pool, Value: poolValue, Effect: corev1.TaintEffectNoSchedule})
	jobs := []*job{
		w.job(t, "4 node loss, tegen-rendezvous run", golden("node-loss", "base"), "two-nodes-tegen"),
		w.job(t, "4 node loss, torchrun", golden("node-loss", "base"), "two-nodes-torch"),
	}
	for _, j := range jobs {
		j.apply()
	}
	var lost string
	before := map[*job]generation{}
	for _, j := range jobs {
		two := j.awaitWorld(2, j.applied, patience)
		j.took("apply to a worker on each of two nodes that train", j.applied, two.stepped)
		on := []string{j.nodeOf(two.joins[0]), j.nodeOf(two.joins[1])}
		if lost == "" {
			lost = on[0] // rank 0 has the store of the workers' process group, and writes the checkpoint
		}
		slices.Sort(on)
		if diff := cmp.Diff(nodes, on); diff != "" {
			t.Fatalf("the workers of %s are not spread over the nodes (-want +got):\n%s", j.name, diff)
		}
		before[j] = two
	}
	for _, j := range jobs {
		j.awaitEvent("ten steps", patience, j.applied, func(e event) bool { return e.Event == "step" && e.Step >= 10 })
	}

	cut := w.cutOff(t, lost)
	for _, j := range jobs {
		alone := j.awaitWorld(1, cut, patience)
		j.took("lost node to the survivor training again", cut, alone.stepped)
		j.checkContinued(alone)
		if on := j.nodeOf(alone.joins[0]); on == lost {
			t.Errorf("%s trains on %s, which is lost", alone.joins[0].Pod, on)
		}
		for _, e := range before[j].joins {
			if j.nodeOf(e) != lost && e.UID != alone.joins[0].UID {
				t.Errorf("%s trains alone, but %s was there before and is on the node that was not lost", alone.joins[0].Pod, e.Pod)
			}
		}
	}
}
