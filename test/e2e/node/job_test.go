package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/test/e2e/objects"
)

const instance = "app.kubernetes.io/instance" // the label that every object and pod of a job has

// job is a rendered job in the cluster, and what its pods print.
type job struct {
	*world
	t               *testing.T
	scenario        string // in the table
	name, namespace string
	file            string // as it is applied
	objects         []*objects.Object
	applied         time.Time
	*feed
	pods *podLog
}

// golden is the manifest of a fixture as tegen render prints it with an overlay.
func golden(fixture, overlay string) string {
	return filepath.Join(root, "golden", fixture, overlay+".yaml")
}

// job makes ready what a manifest's job needs and does not bring: its namespace, what it expects there, its images. A
// test may make what the job expects with a content of its own before. Pods of the job are followed from now on; at the
// end of the test, what is left is deleted, and reported first where the test failed. In a manifest of several jobs,
// name says which; the others are not applied.
func (w *world) job(t *testing.T, scenario, manifest, name string) *job {
	t.Helper()
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	all, err := objects.Read(manifest, text)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{world: w, t: t, scenario: scenario, file: manifest, feed: newFeed()}
	names := map[string]bool{}
	for _, o := range all {
		if n := o.GetLabels()[instance]; n != "" {
			names[n] = true
			if name == "" {
				name = n
			}
			if n != name {
				continue
			}
		}
		j.objects = append(j.objects, o)
		if j.namespace == "" {
			j.namespace = o.GetNamespace()
		}
	}
	if j.name = name; !names[name] || j.namespace == "" {
		t.Fatalf("%s has no job %q in a namespace", manifest, name)
	}
	if len(names) > 1 {
		j.writePart()
	}
	w.enter(t, j.namespace)
	w.guard.Lock()
	w.jobs[j.namespace] = append(w.jobs[j.namespace], j.name)
	w.guard.Unlock()
	j.provideExpected()
	w.provideOnce(t, images(t, j.objects))
	j.follow()
	t.Cleanup(j.clean)
	return j
}

// writePart writes the documents of this job alone, each as it stands in the manifest.
func (j *job) writePart() {
	j.t.Helper()
	var texts []string
	for _, o := range j.objects {
		texts = append(texts, string(o.Text))
	}
	j.file = filepath.Join(j.t.TempDir(), j.name+".yaml")
	if err := os.WriteFile(j.file, []byte(strings.Join(texts, "---\n")), 0o600); err != nil {
		j.t.Fatal(err)
	}
}

// apply applies the manifest as it is.
func (j *job) apply() {
	j.t.Helper()
	if j.applied.IsZero() {
		j.applied = time.Now()
	}
	j.kubectl(j.t, "apply", "-f", j.file)
	j.logf("applied %s", j.file)
}

// logf says something with the time since the job was applied.
func (j *job) logf(format string, args ...any) {
	j.t.Helper()
	j.t.Logf("+%5.1f s %s", time.Since(j.applied).Seconds(), fmt.Sprintf(format, args...))
}

// took puts a duration into the table.
func (j *job) took(what string, from, to time.Time) {
	j.t.Helper()
	times.add(j.scenario, what, to.Sub(from))
	j.logf("%s: %.1f s", what, to.Sub(from).Seconds())
}

// await waits until events are found to be enough.
func (j *job) await(what string, within time.Duration, found func([]event) bool) {
	j.t.Helper()
	if err := j.waitFor(j.t.Context(), within, found); err != nil {
		j.t.Fatalf("waiting for %s of %s: %v", what, j.name, err)
	}
}

// awaitEvent waits for the first event that matches, and is after a time by its own clock.
func (j *job) awaitEvent(what string, within time.Duration, after time.Time, match func(event) bool) (found event) {
	j.t.Helper()
	j.await(what, within, func(events []event) bool {
		i := slices.IndexFunc(events, func(e event) bool { return e.at().After(after) && match(e) })
		if i >= 0 {
			found = events[i]
		}
		return i >= 0
	})
	return found
}

// awaitWorld waits until a world of this size has joined after a time, and every rank of it has made the same step: the
// sum of each is right, or nothing is waited for any more.
func (j *job) awaitWorld(size int, after time.Time, within time.Duration) (g generation) {
	j.t.Helper()
	j.await(fmt.Sprintf("%d ranks that train", size), within, func(events []event) (ok bool) {
		g, ok = formed(events, size, after)
		return ok
	})
	j.logf("%d ranks train, from step %d; masters: %s", size, g.step, g.joins[0].Master)
	return g
}

// awaitSteps waits for a step after a time that every rank of a world of this size made.
func (j *job) awaitSteps(size int, after time.Time, within time.Duration) (at time.Time) {
	j.t.Helper()
	j.await(fmt.Sprintf("%d ranks that make a step", size), within, func(events []event) (ok bool) {
		at, ok = stepped(events, size, after)
		return ok
	})
	return at
}

// checkContinued is the proof of a checkpoint: a world goes on where the one before it was. The step that is written
// last and the step that is printed last differ by one where a rank is killed between the two.
func (j *job) checkContinued(g generation) {
	j.t.Helper()
	last := lastStep(j.all(), g.joined)
	if g.step < 1 || g.step < last-1 || g.step > last+1 {
		j.t.Fatalf("%s goes on from step %d; the last that was made before is %d", j.name, g.step, last)
	}
	for _, e := range g.joins {
		if e.Step != g.step {
			j.t.Fatalf("rank %d goes on from step %d, others from %d", e.Rank, e.Step, g.step)
		}
	}
}

// exec runs a command in a pod's first container.
func (j *job) exec(pod string, command ...string) string {
	j.t.Helper()
	return j.kubectl(j.t, append([]string{"exec", "-n", j.namespace, pod, "--"}, command...)...)
}

// stop asks a training to end: all workers do, after the same step.
func (j *job) stop(pod string) {
	j.t.Helper()
	j.exec(pod, "touch", "/tmp/stop")
	j.logf("asked %s to stop", pod)
}

// pod reads a pod.
func (j *job) pod(name string) *corev1.Pod {
	j.t.Helper()
	pod, err := j.client.CoreV1().Pods(j.namespace).Get(j.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		j.t.Fatalf("reading pod %s: %v", name, err)
	}
	return pod
}

// podsOf lists the job's pods of a component ("worker", "etcd", "rendezvous"), or all, by name.
func (j *job) podsOf(component string) []corev1.Pod {
	j.t.Helper()
	selector := instance + "=" + j.name
	if component != "" {
		selector += ",app.kubernetes.io/component=" + component
	}
	list, err := j.client.CoreV1().Pods(j.namespace).List(j.t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		j.t.Fatalf("listing the pods of %s: %v", j.name, err)
	}
	return list.Items
}

// deletePod deletes a pod with a grace period in seconds, and returns when that was asked and which pod it was. With
// none, the API forgets the pod at once and the kubelet kills it. It does not wait.
func (j *job) deletePod(name string, grace int64) (at time.Time, uid types.UID) {
	j.t.Helper()
	uid = j.pod(name).UID
	at = time.Now()
	options := metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{UID: &uid}}
	if err := j.client.CoreV1().Pods(j.namespace).Delete(j.t.Context(), name, options); err != nil {
		j.t.Fatalf("deleting pod %s: %v", name, err)
	}
	j.logf("deleted %s with a grace of %d s", name, grace)
	return at, uid
}

// awaitGone waits until a pod is no more, or another has its name.
func (j *job) awaitGone(name string, uid types.UID, within time.Duration) {
	j.t.Helper()
	eventually(j.t, "pod "+name+" to go", within, func() error {
		pod, err := j.client.CoreV1().Pods(j.namespace).Get(j.t.Context(), name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && pod.UID != uid:
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it is there: %s", describePod(pod))
	})
}

// awaitReplaced waits until a running pod of another UID has the place of one: its name, or its index of an Indexed Job.
func (j *job) awaitReplaced(old *corev1.Pod, within time.Duration) (pod *corev1.Pod) {
	j.t.Helper()
	index := old.Labels[batchv1.JobCompletionIndexAnnotation]
	eventually(j.t, "another pod in the place of "+old.Name, within, func() error {
		var seen []string
		for _, p := range j.podsOf(old.Labels["app.kubernetes.io/component"]) {
			if p.UID == old.UID || p.Name != old.Name && (index == "" || p.Labels[batchv1.JobCompletionIndexAnnotation] != index) {
				continue
			}
			if p.Status.Phase == corev1.PodRunning {
				pod = &p
				return nil
			}
			seen = append(seen, describePod(&p))
		}
		return fmt.Errorf("there is none that runs, but %v", seen)
	})
	return pod
}

// awaitComplete waits for a Job to complete; one that fails is not waited for.
func (j *job) awaitComplete(name string, within time.Duration) (at time.Time) {
	j.t.Helper()
	eventually(j.t, "Job "+name+" to complete", within, func() error {
		of, err := j.client.BatchV1().Jobs(j.namespace).Get(j.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range of.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
				j.t.Fatalf("Job %s failed: %s: %s", name, c.Reason, c.Message)
			}
			if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
				at = c.LastTransitionTime.Time
				return nil
			}
		}
		return fmt.Errorf("%d active, %d succeeded, %d failed", of.Status.Active, of.Status.Succeeded, of.Status.Failed)
	})
	return at
}

// clean reports a failure and deletes what the test has left, so that the scenarios beside it have the room.
func (j *job) clean() {
	if j.t.Failed() {
		j.report()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range deletions(j.t, j.name, j.namespace) {
		if _, err := j.tryKubectl(ctx, append(args, "--wait=false", "--ignore-not-found")...); err != nil {
			j.t.Errorf("cleaning up after %s: %v", j.name, err)
		}
	}
	j.pods.stop()
}
