package scheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// writers is how many pods are created at a time.
const writers = 8

// keep starts a watch of all pods, which every wait reads: asking the API server again and again, from every story,
// cost it more than what the stories are about.
func (l *lab) keep() {
	l.t.Helper()
	factory := informers.NewSharedInformerFactory(l.Client(), 0)
	pods := factory.Core().V1().Pods()
	l.kept = pods.Lister()
	synced := pods.Informer().HasSynced
	factory.Start(l.t.Context().Done())
	l.t.Cleanup(factory.Shutdown)
	l.until("the pods are known", synced, func() string { return "" })
}

// create makes the pods of a gang, from and to an index, in no certain order.
func (l *lab) create(g gang, from, to int) {
	l.t.Helper()
	var pods []*corev1.Pod
	for i := from; i < to; i++ {
		pods = append(pods, g.pod(i))
	}
	l.createAll(pods)
}

// createAll makes pods, several at a time, beginning with the first.
func (l *lab) createAll(pods []*corev1.Pod) {
	l.t.Helper()
	slots, errs := make(chan struct{}, writers), make(chan error, len(pods))
	for _, p := range pods {
		slots <- struct{}{}
		go func() {
			_, err := l.Client().CoreV1().Pods(p.Namespace).Create(l.t.Context(), p, metav1.CreateOptions{})
			errs <- err
			<-slots
		}()
	}
	var err error
	for range pods {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// delete removes pods at once: the kubelet that is played here would delete them by their names, and may do so twice,
// the second time what was made anew meanwhile.
func (l *lab) delete(namespace string, names ...string) {
	l.t.Helper()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, n := range names {
		if err := l.Client().CoreV1().Pods(namespace).Delete(l.t.Context(), n, now); err != nil {
			l.t.Fatal(err)
		}
	}
}

// finish lets a running pod succeed.
func (l *lab) finish(namespace, name string) {
	l.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, cluster.OutcomeAnnotation, cluster.OutcomeSucceeded)
	if _, err := l.Client().CoreV1().Pods(namespace).Patch(l.t.Context(), name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{}); err != nil {
		l.t.Fatal(err)
	}
	phase := func() string {
		p, err := l.kept.Pods(namespace).Get(name)
		if err != nil {
			return err.Error()
		}
		return string(p.Status.Phase)
	}
	l.until(name+" has succeeded", func() bool { return phase() == string(corev1.PodSucceeded) }, phase)
}

// drop deletes a gang.
func (l *lab) drop(g gang) {
	l.t.Helper()
	if err := l.Client().CoreV1().Pods(g.namespace).DeleteCollection(l.t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "gang=" + g.name}); err != nil {
		l.t.Fatal(err)
	}
}

// pods are those of a gang by name. They are shared: nobody may change them.
func (l *lab) pods(g gang) []*corev1.Pod {
	l.t.Helper()
	pods, err := l.kept.Pods(g.namespace).List(labels.SelectorFromSet(labels.Set{"gang": g.name}))
	if err != nil {
		l.t.Fatal(err)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// bound are the names of the pods of a gang that have a node.
func (l *lab) bound(g gang) []string {
	l.t.Helper()
	var out []string
	for _, p := range l.pods(g) {
		if p.Spec.NodeName != "" {
			out = append(out, p.Name)
		}
	}
	return out
}

// runs waits until so many pods of a gang are bound, no more and no fewer, and that this lasts.
func (l *lab) runs(g gang, want int) {
	l.t.Helper()
	l.until(fmt.Sprintf("%d of gang %s run", want, g.name), func() bool { return len(l.bound(g)) == want }, l.sight(g))
	l.stays(g, want)
}

// stays asserts that for a while exactly so many pods of a gang are bound, and that the API server says so in the end
// too, whatever the watch has heard.
func (l *lab) stays(g gang, want int) {
	l.t.Helper()
	for end := time.Now().Add(stillness); time.Now().Before(end); time.Sleep(poll) {
		if got := l.bound(g); len(got) != want {
			l.t.Fatalf("%d pods of gang %s are bound, want %d: %v\n%s", len(got), g.name, want, got, l.sight(g)())
		}
	}
	list, err := l.Client().CoreV1().Pods(g.namespace).List(l.t.Context(),
		metav1.ListOptions{LabelSelector: "gang=" + g.name})
	if err != nil {
		l.t.Fatal(err)
	}
	there := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == "" })
	if len(there) != want {
		l.t.Fatalf("the API server has %d bound pods of gang %s, want %d\n%s", len(there), g.name, want, l.sight(g)())
	}
}

// gone waits until so many pods of a gang are left.
func (l *lab) gone(g gang, left int) {
	l.t.Helper()
	l.until(fmt.Sprintf("%d pods of gang %s are left", left, g.name), func() bool { return len(l.pods(g)) == left },
		l.sight(g))
}

// sight is what a user can see of gangs: their pods' places and conditions, and the events of their namespaces.
func (l *lab) sight(gangs ...gang) func() string {
	return func() string {
		var b strings.Builder
		for _, g := range gangs {
			for _, p := range l.pods(g) {
				fmt.Fprintf(&b, "%s on %q: %s\n", p.Name, p.Spec.NodeName, scheduled(p))
			}
		}
		for _, e := range l.events(gangs[0].namespace) {
			fmt.Fprintln(&b, e)
		}
		return b.String()
	}
}

// scheduled is the message of a pod's condition PodScheduled.
func scheduled(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "no condition"
}

// events are the notes on the pods of a namespace: "pod reason note".
func (l *lab) events(namespace string) []string {
	list, err := l.Client().EventsV1().Events(namespace).List(context.WithoutCancel(l.t.Context()),
		metav1.ListOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, fmt.Sprintf("%s %s %s", e.Regarding.Name, e.Reason, e.Note))
	}
	return out
}

// reported waits until every pod of a gang that has no node has an event and a condition that contain the words.
func (l *lab) reported(g gang, words ...string) {
	l.t.Helper()
	has := func(s string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(s, w) })
	}
	l.until(fmt.Sprintf("all pods of gang %s report %q", g.name, words), func() bool {
		waiting := slices.DeleteFunc(l.pods(g), func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
		if slices.ContainsFunc(waiting, func(p *corev1.Pod) bool { return !has(scheduled(p)) }) {
			return false
		}
		events := l.events(g.namespace)
		return !slices.ContainsFunc(waiting, func(p *corev1.Pod) bool {
			return !slices.ContainsFunc(events,
				func(e string) bool { return strings.HasPrefix(e, p.Name+" FailedScheduling ") && has(e) })
		})
	}, l.sight(g))
}
