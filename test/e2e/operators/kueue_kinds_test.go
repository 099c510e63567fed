package operators

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/test/cluster"
)

// kueueKinds are the custom resources that Kueue holds in a queue, each tried where its own controller is there.
var kueueKinds = []scenario{
	{"JobSet", func(p *place) {
		p.kueueKind(jobSet, queuedKind{
			queue: "team-a", objects: p.golden("gang-jobset-kueue"), sets: "worker=4 ", done: "Completed",
		})
	}},
	{"TrainJob", func(p *place) {
		p.kueueKind(program{definitions: []string{"trainjobs.trainer.kubeflow.org/v1alpha1"}}, queuedKind{
			queue: "team-a", objects: p.golden("gang-trainjob-kueue"), sets: "node=4 ", done: "Complete",
		})
	}},
	{"PyTorchJob", func(p *place) {
		p.kueueKind(program{definitions: []string{"pytorchjobs.kubeflow.org/v1"}}, queuedKind{
			queue: "team", sets: "worker=4 ", done: "Succeeded", ends: "training.kubeflow.org/replica-index=0",
			objects: p.queued("torch", "pytorchjob", "{replicas: 4}", "  gang: {scheduler: kueue, queue: team}\n"),
		})
	}},
	{"MPIJob", func(p *place) {
		p.kueueKind(program{definitions: []string{"mpijobs.kubeflow.org/v2beta1"}}, queuedKind{
			queue: "team", sets: "launcher=1 worker=4 ", done: "Succeeded",
			ends: "training.kubeflow.org/job-role=launcher",
			objects: p.queued("mpi", "mpijob", "{replicas: 4}",
				"  framework: horovod\n  gang: {scheduler: kueue, queue: team}\n"),
		})
	}},
}

// queuedKind is a job of four workers as a custom resource, the last of objects.
type queuedKind struct {
	queue   string
	objects []*unstructured.Unstructured
	sets    string // of pods, as the Workload has them
	done    string // the condition of the custom resource when its pods have ended
	ends    string // selects the pods whose end is the end of all
}

// kueueKind: a custom resource is held by its queue, with no pod of any role; it is admitted as a whole, taken back and
// admitted again; and its end is the Workload's.
func (p *place) kueueKind(controller program, k queuedKind) {
	p.Helper()
	if absent := p.absent(p.T, controller); absent != "" {
		p.Skipf("the cluster does not serve %s", absent)
	}
	o := k.objects[len(k.objects)-1]
	namespace := o.GetNamespace()
	owner := ""
	if namespace == p.namespace {
		owner = namespace
	}
	p.nodes(1, 16, owner)
	queue := p.localQueue(namespace, k.queue, 16, "")
	p.apply(p.read("class", []byte(highPriority))...)
	p.set(queue, "Hold", "spec", "stopPolicy")
	p.apply(k.objects...)
	w := p.held(o)
	if got := podSets(w); got != k.sets {
		p.Errorf("the Workload has the sets %q, want %q", got, k.sets)
	}
	if pods, err := p.pods(namespace, ""); err != nil || len(pods) > 0 {
		p.Errorf("there are %d pods in the queue: %v", len(pods), err)
	}
	p.imported(k.objects, o)
	p.set(queue, "None", "spec", "stopPolicy")
	p.running(4, namespace, workers)
	p.imported(k.objects, o)
	p.set(p.workload(o), false, "spec", "active")
	p.running(0, namespace, workers)
	p.held(o)
	p.set(p.workload(o), true, "spec", "active")
	p.running(4, namespace, workers)
	pods, err := p.pods(namespace, k.ends)
	if err != nil || len(pods) == 0 {
		p.Fatalf("%d pods are %s: %v", len(pods), k.ends, err)
	}
	p.end(cluster.OutcomeSucceeded, pods...)
	p.condition(o, k.done)
	p.condition(p.workload(o), "Finished")
}

// kueuePods: bare pods are made behind a gate, and go together; deleted, they are gone, though Kueue has put a
// finalizer on them.
func kueuePods(p *place) {
	const namespace = "training"
	p.nodes(1, 8, "")
	p.localQueue(namespace, "team-a", 1, "")
	objects := p.golden("gang-kueue-pods")
	p.apply(objects...)
	p.remains("both are gated", func() error {
		pods, err := p.pods(namespace, workers)
		if err != nil || len(pods) != 2 {
			return errors.Join(err, fmt.Errorf("%d pods", len(pods)))
		}
		for _, pod := range pods {
			if !slices.Contains(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "kueue.x-k8s.io/admission"}) {
				return fmt.Errorf("pod %s has the gates %v", pod.Name, pod.Spec.SchedulingGates)
			}
		}
		return nil
	})
	p.localQueue(namespace, "team-a", 2, "")
	p.running(2, namespace, workers)
	p.imported(objects, objects...)
	p.delete(p.Context(), objects...)
	p.gone(namespace)
}
