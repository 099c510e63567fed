package operators

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/test/cluster"
)

// kwok plays the nodes of all scenarios.
var kwok = program{name: "KWOK", log: "kwok", controller: "app=kwok-controller"}

// played tries whether KWOK plays nodes here, with the stages of test/cluster/kwok.yaml: a pod that is on a node by its
// name runs, and ends as its annotation says.
func (p *place) played() {
	p.nodes(1, 0, p.namespace)
	p.enter(p.namespace)
	pod, err := p.client.CoreV1().Pods(p.namespace).Create(p.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "played"},
		Spec: corev1.PodSpec{
			NodeName:   p.added[0],
			Containers: []corev1.Container{{Name: "played", Image: "registry.example/played:1.0"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		p.Fatal(err)
	}
	p.becomes(pod, corev1.PodRunning, "nobody plays it: the suite needs KWOK in the cluster")
	p.end(cluster.OutcomeSucceeded, *pod)
	p.becomes(pod, corev1.PodSucceeded, "what plays it does not know the stages of test/cluster/kwok.yaml")
}

// becomes waits for a pod's phase, which on a node that KWOK plays takes no second.
func (p *place) becomes(pod *corev1.Pod, want corev1.PodPhase, otherwise string) {
	p.Helper()
	const within = 20 * time.Second
	var last string
	for deadline := time.Now().Add(within); time.Now().Before(deadline) && p.Context().Err() == nil; time.Sleep(poll) {
		now, err := p.client.CoreV1().Pods(pod.Namespace).Get(p.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			last = err.Error()
			continue
		}
		if now.Status.Phase == want {
			return
		}
		last = fmt.Sprintf("the pod is %s", now.Status.Phase)
	}
	p.Fatalf("a pod on node %s is not %s within %v (%s): %s. CONTRIBUTING.md says how the suite is run",
		pod.Spec.NodeName, want, within, last, otherwise)
}
