package operators

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rounds is how often two gangs contend for what is enough for one.
const rounds = 20

// dialect is how gangs are spoken of to a scheduler.
type dialect struct {
	scheduler string // gang.scheduler
	target    string
	extra     string // more of the spec, in lines that are indented by two
	more      string // more of gang, such as ", mode: NonStrict"
	// room gives the namespace's jobs so many accelerators; by default as a node that is added to those before.
	room func(p *place, accelerators int)
}

// job renders four workers of one accelerator each that want at least min.
func (d dialect) job(p *place, name string, least int) []*unstructured.Unstructured {
	p.Helper()
	return d.sized(p, name, least, 4)
}

// sized is job with another number of workers, which may be up to eight unless they want to be four.
func (d dialect) sized(p *place, name string, least, replicas int) []*unstructured.Unstructured {
	p.Helper()
	size := fmt.Sprintf("{replicas: %d}", replicas)
	if least < 4 {
		size = fmt.Sprintf("{replicas: %d, min: %d, max: 8}", replicas, least)
	}
	return p.rendered(name, fmt.Sprintf(`  target: %s
  image: registry.example/resnet:1.0
  command: [python, train.py]
  workers: %s
  resources: {cpu: 100m, memory: 64Mi, gpu: 1, shm: 16Mi, ephemeralStorage: 1Gi}
  gang: {scheduler: %s, minAvailable: %d%s}
  placement:
    nodeSelector: {%s: %s}
    tolerations: [{key: %[6]s, value: %[7]s, effect: NoSchedule}]
%s`, d.target, size, d.scheduler, least, d.more, reserved, p.namespace, d.extra))
}

// give adds accelerators.
func (d dialect) give(p *place, accelerators int) {
	p.Helper()
	if d.room != nil {
		d.room(p, accelerators)
		return
	}
	p.nodes(1, accelerators, p.namespace)
}

// allOrNone: with two accelerators none of four workers runs that want to be four; with two more all do.
func (d dialect) allOrNone(p *place) {
	d.give(p, 2)
	p.apply(d.job(p, "gang", 4)...)
	p.remains("nothing runs", func() error { return p.placed(p.namespace, 0) })
	d.give(p, 2)
	p.running(4, p.namespace, workers)
}

// atLeast: with two accelerators two of four workers run where two are enough; with two more all do.
func (d dialect) atLeast(p *place) {
	d.two(p)
	d.give(p, 2)
	p.running(4, p.namespace, workers)
}

// two: with two accelerators two of four workers run where two are enough.
func (d dialect) two(p *place) {
	p.Helper()
	d.give(p, 2)
	p.apply(d.job(p, "gang", 2)...)
	p.running(2, p.namespace, workers)
	p.remains("two run", func() error { return p.placed(p.namespace, 2) })
}

// mends: with room for four of four workers one that is lost comes back.
func (d dialect) mends(p *place) {
	d.give(p, 4)
	p.apply(d.job(p, "gang", 4)...)
	lost := p.running(4, p.namespace, workers)[1]
	if err := p.client.CoreV1().Pods(p.namespace).Delete(p.Context(), lost.Name, metav1.DeleteOptions{}); err != nil {
		p.Fatal(err)
	}
	p.eventually("four that run, without "+lost.Name, func() error {
		pods, err := p.pods(p.namespace, workers)
		if err == nil && (len(pods) != 4 || common(pods, []corev1.Pod{lost}) > 0) {
			err = fmt.Errorf("there are %d", len(pods))
		}
		return err
	})
	p.running(4, p.namespace, workers)
}

// scales: an elastic job that runs becomes six workers, and then three, and those that run stay.
func (d dialect) scales(p *place) {
	d.give(p, 8)
	p.apply(d.sized(p, "gang", 2, 4)...)
	before := p.running(4, p.namespace, workers)
	for _, replicas := range []int{6, 3} {
		p.apply(d.sized(p, "gang", 2, replicas)...)
		after := p.running(replicas, p.namespace, workers)
		if kept, want := common(before, after), min(len(before), replicas); kept != want {
			p.Errorf("%d workers, then %d: %d of those that ran are there, want %d", len(before), replicas, kept, want)
		}
		before = after
	}
}

// common is how many pods are among both.
func common(a, b []corev1.Pod) (n int) {
	for _, pod := range a {
		if slices.ContainsFunc(b, func(other corev1.Pod) bool { return other.UID == pod.UID }) {
			n++
		}
	}
	return n
}

// letsGo: accelerators that are not enough for a gang go to another, for which they are. What it may keep them for is
// waitTimeout, which is longer than this waits unless the dialect says more.
func (d dialect) letsGo(p *place) {
	d.give(p, 2)
	p.apply(d.job(p, "whole", 4)...)
	p.remains("nothing runs", func() error { return p.placed(p.namespace, 0) })
	p.apply(d.job(p, "half", 2)...)
	p.running(2, p.namespace, workers)
}

// contend: of two gangs that want four accelerators each, where there are four, one has all of them and the other none.
func (d dialect) contend(p *place) {
	d.give(p, 4)
	first, second := d.job(p, "first", 4), d.job(p, "second", 4)
	p.enter(p.namespace)
	for round := range rounds {
		var wg sync.WaitGroup
		for _, objects := range [][]*unstructured.Unstructured{first, second} {
			wg.Go(func() {
				for _, o := range objects {
					if err := p.applyOne(o); err != nil {
						p.Errorf("round %d: %v", round, err)
					}
				}
			})
		}
		wg.Wait()
		p.running(4, p.namespace, workers)
		held := map[string]int{}
		pods, err := p.pods(p.namespace, workers)
		if err != nil {
			p.Fatal(err)
		}
		for _, pod := range pods {
			if pod.Spec.NodeName != "" {
				held[pod.Labels["tegen.dev/job"]]++
			}
		}
		if len(held) != 1 {
			p.Fatalf("round %d: accelerators are held by %v", round, held)
		}
		p.delete(p.Context(), append(first, second...)...)
		p.gone(p.namespace)
	}
}

// whole applies a golden file, of whose pods none runs where there is no node, and all where there is one.
func (p *place) whole(name string, accelerators, want int, selector string) []*unstructured.Unstructured {
	p.Helper()
	p.priority("batch", 1000)
	objects := p.golden(name)
	p.apply(objects...)
	namespace := p.the("ServiceAccount", objects).GetNamespace()
	p.remains("nothing runs", func() error { return p.placed(namespace, 0) })
	p.nodes(1, accelerators, "")
	p.running(want, namespace, selector)
	return objects
}

// oneGroup waits until a namespace has one PodGroup, of a name and with fields of its spec, and all of some pods that
// run name it by a label, or by a field where there is no label.
func (p *place) oneGroup(gvk schema.GroupVersionKind, namespace, name string, spec map[string]any, label string) {
	p.Helper()
	p.eventually("one PodGroup "+name, func() error {
		groups := p.list(gvk, namespace)
		if len(groups) != 1 || groups[0].GetName() != name {
			return fmt.Errorf("there are %d: %v", len(groups), groups)
		}
		got, _, _ := unstructured.NestedMap(groups[0].Object, "spec")
		for key, want := range spec {
			if got[key] != want {
				return fmt.Errorf("%s is %v, want %v", key, got[key], want)
			}
		}
		return nil
	})
	pods, err := p.pods(namespace, "")
	if err != nil {
		p.Fatal(err)
	}
	for _, pod := range pods {
		got := pod.Labels[label]
		if label == "" && pod.Spec.SchedulingGroup != nil && pod.Spec.SchedulingGroup.PodGroupName != nil {
			got = *pod.Spec.SchedulingGroup.PodGroupName
		}
		if got != name {
			p.Errorf("pod %s is of PodGroup %q, want %q", pod.Name, got, name)
		}
	}
}

// placed checks that so many pods have a node.
func (p *place) placed(namespace string, want int) error {
	pods, err := p.pods(namespace, workers)
	if err != nil {
		return err
	}
	got := 0
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			got++
		}
	}
	if got != want {
		return fmt.Errorf("%d of %d pods have a node, want %d", got, len(pods), want)
	}
	return nil
}

// gone waits until a namespace has no pod left.
func (p *place) gone(namespace string) {
	p.Helper()
	p.eventually("no pod to be left", func() error {
		pods, err := p.client.CoreV1().Pods(namespace).List(p.Context(), metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		return err
	})
}
