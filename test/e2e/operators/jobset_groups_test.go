package operators

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/test/cluster"
)

// drivers selects the pods of a group.
const drivers = "app.kubernetes.io/component=driver"

// withDriver is a job with a group beside its workers.
const withDriver = "  workers: {replicas: 2}\n  groups: [{name: driver, command: [drive], resources: {cpu: 100m, " +
	"memory: 64Mi, ephemeralStorage: 1Gi}%s}]\n%s"

// jobSetOrdered: pods of a group wait for what their author says, have the coordinator's name, and end the set alone.
func jobSetOrdered(p *place) {
	set := p.workersSet("ordered", fmt.Sprintf(withDriver, ", after: [{group: worker}]",
		"  success: {groups: [driver]}\n  coordinator: {group: driver}\n"))
	p.remains("no driver before the workers are ready", func() error {
		pods, err := p.pods(p.namespace, drivers)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("there is %s", pods[0].Name)
		}
		return err
	})
	p.nodes(1, 0, "")
	trainers, pods := p.running(2, p.namespace, workers), p.running(1, p.namespace, drivers)
	const key, want = "jobset.sigs.k8s.io/coordinator", "ordered-driver-0-0.ordered"
	if got := trainers[0].Annotations[key]; got != want {
		p.Errorf("the coordinator is %q, want %q", got, want)
	}
	p.end(cluster.OutcomeSucceeded, pods...)
	p.condition(set, "Completed")
	p.running(0, p.namespace, workers)
}

// jobSetRestarts: the first failed pod has all pods made anew, and one failure more than is allowed fails the set.
func jobSetRestarts(p *place) {
	p.nodes(1, 0, "")
	set := p.workersSet("again", fmt.Sprintf(withDriver, "", "  failure: {restartAll: 1}\n"))
	before := append(p.running(2, p.namespace, workers), p.running(1, p.namespace, drivers)...)
	p.end(cluster.OutcomeFailed, before[0])
	after := p.madeAnew(before)
	if n := p.restarts(set, "restartsCountTowardsMax"); n != 1 {
		p.Errorf("a failed pod counts as %d restarts, want 1", n)
	}
	p.end(cluster.OutcomeFailed, after[2])
	p.condition(set, "Failed")
}

// jobSetUncounted: a disruption has all pods made anew, is not counted, and does so again; a fatal exit code, of which
// KWOK's pods have 1 alone, fails the set at once.
func jobSetUncounted(p *place) {
	p.nodes(1, 0, "")
	set := p.workersSet("uncounted", fmt.Sprintf(withDriver, "",
		"  failure: {restartAll: 5, fatalExitCodes: [1]}\n"))
	for range 2 {
		before := append(p.running(2, p.namespace, workers), p.running(1, p.namespace, drivers)...)
		pod := before[0]
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI",
			LastTransitionTime: metav1.Now(),
		})
		if _, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(p.Context(), &pod,
			metav1.UpdateOptions{}); err != nil {
			p.Fatal(err)
		}
		p.end(cluster.OutcomeFailed, pod)
		p.madeAnew(before)
	}
	all, counted := p.restarts(set, "restarts"), p.restarts(set, "restartsCountTowardsMax")
	if all != 2 || counted != 0 {
		p.Errorf("%d restarts, of which %d count, want 2 and 0", all, counted)
	}
	p.end(cluster.OutcomeFailed, p.running(2, p.namespace, workers)[0])
	p.condition(set, "Failed")
	if all := p.restarts(set, "restarts"); all != 2 {
		p.Errorf("%d restarts after a fatal exit code, want 2", all)
	}
}

// madeAnew waits until two workers and a driver run of which none was there before, and returns them.
func (p *place) madeAnew(before []corev1.Pod) (after []corev1.Pod) {
	p.Helper()
	p.eventually("all pods to be made anew", func() error {
		after = append(p.running(2, p.namespace, workers), p.running(1, p.namespace, drivers)...)
		for _, now := range after {
			for _, then := range before {
				if now.UID == then.UID {
					return fmt.Errorf("%s is still there", now.Name)
				}
			}
		}
		return nil
	})
	return after
}

// restarts is a number of a set's status.
func (p *place) restarts(set *unstructured.Unstructured, field string) int64 {
	p.Helper()
	n, _, _ := unstructured.NestedInt64(p.live(set).Object, "status", field)
	return n
}
