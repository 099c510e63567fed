package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/test/e2e/objects"
)

const accelerator = corev1.ResourceName("nvidia.com/gpu")

// TestGang is scenario 5: tegen-scheduler, installed as docs/scheduler.md says, places a gang whole or not at all, says
// why not, and places what a gang has beyond its minimum as there are accelerators for it.
func TestGang(t *testing.T) {
	w := begin(t)
	const scenario = "5 gang"
	node := w.addNodes(t, 1, nil, corev1.Taint{Key: string(accelerator), Effect: corev1.TaintEffectNoSchedule})[0]
	w.setCapacity(t, node, accelerator, 2)
	began := time.Now()
	w.installScheduler(t)
	times.add(scenario, "tegen install scheduler, applied, to both replicas being ready", time.Since(began))
	replicas, err := w.client.CoreV1().Pods("tegen-system").List(t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=tegen-scheduler",
	})
	if err != nil {
		t.Fatal(err)
	}
	checkBuilt(t, "tegen-scheduler", replicas.Items)

	four := w.job(t, scenario, rendered(t, "gang-tegen-accelerators", "base"), "gang-of-four")
	four.apply()
	reported := four.awaitUnplaced(4,
		`gang training/gang-of-four needs 4 pods at once and has room for 2, `+
			`none for pod gang-of-four-worker-\d-\w+: .*\bInsufficient nvidia\.com/gpu`)
	four.took("four workers for two accelerators, apply to a reported reason on all that wait", four.applied, reported)
	four.deleteByLabel(patience)

	two := w.job(t, scenario, rendered(t, "gang-tegen-accelerators", "base"), "gang-of-two")
	two.apply()
	half := two.awaitWorld(2, two.applied, patience)
	two.took("at least two of four workers, apply to two that train", two.applied, half.stepped)
	two.awaitUnplaced(2, `\bInsufficient nvidia\.com/gpu`)
	two.awaitEvent("ten steps", patience, two.applied, func(e event) bool { return e.Event == "step" && e.Step >= 10 })

	added := w.setCapacity(t, node, accelerator, 4)
	whole := two.awaitWorld(4, added, patience)
	two.took("two accelerators added to four workers that train", added, whole.stepped)
	two.checkContinued(whole)
	for _, e := range whole.joins {
		if on := two.nodeOf(e); on != node {
			t.Errorf("%s is on %s, which has no accelerators", e.Pod, on)
		}
	}
	two.stop(whole.joins[0].Pod)
	two.awaitDone(4, whole.stepped, patience)
	two.deleteByLabel(patience)
}

// installScheduler applies what tegen install prints, and waits until every replica is ready.
func (w *world) installScheduler(t *testing.T) {
	t.Helper()
	const namespace, name = "tegen-system", "tegen-scheduler"
	w.install(t, filepath.Join(root, "golden/install-scheduler/default.yaml"), namespace)
	eventually(t, "tegen-scheduler to be ready", patience, func() error {
		d, err := w.client.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if want := *d.Spec.Replicas; d.Status.ObservedGeneration < d.Generation || d.Status.ReadyReplicas != want {
			return fmt.Errorf("%d of %d replicas are ready", d.Status.ReadyReplicas, want)
		}
		lease, err := w.client.CoordinationV1().Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return errors.New("none of its replicas leads")
		}
		return nil
	})
}

// install applies what tegen install has printed into a file, and removes it at the end of the test.
func (w *world) install(t *testing.T, file, namespace string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := objects.Read(file, text)
	if err != nil {
		t.Fatal(err)
	}
	w.provideOnce(t, images(t, all))
	t.Cleanup(func() {
		if t.Failed() {
			w.reportPods(t, namespace)
		}
		if _, err := w.tryKubectl(context.WithoutCancel(t.Context()), "delete", "-f", file, "--wait=false",
			"--ignore-not-found"); err != nil {
			t.Errorf("removing what is in %s: %v", namespace, err)
		}
	})
	w.kubectl(t, "apply", "--server-side", "-f", file)
}

// awaitUnplaced waits until so many workers have no node and a reported reason, in a condition and in an event, and
// sees that it stays so.
func (j *testJob) awaitUnplaced(n int, words string) (reported time.Time) {
	j.t.Helper()
	why := regexp.MustCompile(words)
	check := func() error {
		waiting := 0
		for _, pod := range j.podsOf("worker") {
			if pod.Spec.NodeName != "" {
				continue
			}
			waiting++
			i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
					c.Reason == corev1.PodReasonUnschedulable
			})
			if i < 0 || !why.MatchString(pod.Status.Conditions[i].Message) {
				return errors.New(describePod(&pod))
			}
			if err := j.checkWarned(pod, why); err != nil {
				return err
			}
		}
		if waiting != n {
			return fmt.Errorf("%d workers have no node", waiting)
		}
		return nil
	}
	eventually(j.t, fmt.Sprintf("%d workers of %s to have no node and a reported reason", n, j.name), patience, check)
	reported = time.Now()
	for until := reported.Add(stillness); time.Now().Before(until); time.Sleep(poll) {
		if err := check(); err != nil {
			j.t.Fatalf("%d workers have no node, and a moment later: %v", n, err)
		}
	}
	return reported
}

// checkWarned is an error unless a pod has a warning with these words, which kubectl describe shows.
func (j *testJob) checkWarned(pod corev1.Pod, why *regexp.Regexp) error {
	list, err := j.client.CoreV1().Events(pod.Namespace).List(j.t.Context(),
		metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil {
		return err
	}
	var seen []string
	for _, e := range list.Items {
		if e.Type == corev1.EventTypeWarning && e.Reason == "FailedScheduling" && why.MatchString(e.Message) {
			return nil
		}
		seen = append(seen, e.Reason+": "+e.Message)
	}
	return fmt.Errorf("no event says why %s has no node: %q", pod.Name, seen)
}
