package node

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTutorial is scenario 1: bare pods, etcd with the v2 API and a headless Service a worker, as the tutorial has
// them. A third worker is what the job renders with one replica more.
func TestTutorial(t *testing.T) {
	w := begin(t)
	downloads := w.serve(t, "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
		zipped(t, "tiny-imagenet-200/train/n01443537/images/n01443537_0.JPEG"))
	j := w.job(t, "1 tutorial", rendered(t, "imagenet", "kind"), "")
	j.apply()
	two := j.awaitWorld(2, j.applied, patience)
	j.took("apply to two workers that train", j.applied, two.stepped)
	j.checkPrefetched("imagenet-prefetch-data")
	// The entrypoint says so where it finds the files.
	j.awaitEvent("the dataset in a worker", 0, j.applied, func(e event) bool { return e.Event == "data" })
	j.checkMaster(two)

	j.file = j.rendered("imagenet", "replicas: 2", "replicas: 3")
	before := j.listed()
	raised := time.Now()
	// Objects that run pods record the input in an annotation, which restarts nothing.
	want := []string{
		"job.batch/imagenet-prefetch-data configured", "pod/imagenet-worker-1 configured",
		"pod/imagenet-worker-2 configured", "pod/imagenet-worker-3 created", "service/imagenet-worker-3 created",
	}
	if diff := cmp.Diff(want, changed(j.kubectl(t, "apply", "-f", j.file))); diff != "" {
		t.Fatalf("applying the job with a third replica changed (-want +got):\n%s", diff)
	}
	j.checkKept(before)
	three := j.awaitWorld(3, raised, patience)
	j.took("third pod applied to three workers that train", raised, three.stepped)
	j.checkMaster(three)

	// That of rank 0, whose address all others have.
	lost := three.joins[0].Pod
	deleted, uid := j.deletePod(lost, 30)
	again := j.awaitWorld(2, deleted, patience)
	j.took("lost pod to two workers that train again", deleted, again.stepped)
	j.awaitSteps(2, again.stepped.Add(time.Second), patience) // and trains on
	j.awaitGone(lost, uid, patience)
	j.checkMaster(again)
	for _, e := range again.joins {
		if e.UID == uid {
			t.Errorf("%s trains on after it was deleted", lost)
		}
	}
	if n := downloads.Load(); n != 1 {
		t.Errorf("the dataset was downloaded %d times, want once", n)
	}
	j.stop(again.joins[1].Pod)
	j.awaitDone(2, again.stepped, patience)
	for _, e := range again.joins {
		j.awaitSucceeded(e.Pod)
	}
	j.deleteByLabel(patience)
}

// zipped is an archive of one file.
func zipped(t *testing.T, file string) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	f, err := w.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("a picture")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// rendered is what tegen render prints of a fixture that its author has changed, with the overlay kind.
func (j *testJob) rendered(fixture, old, changed string) (file string) {
	j.t.Helper()
	name, text := readFixture(j.t, fixture)
	if !strings.Contains(text, old) {
		j.t.Fatalf("%s has no %q", name, old)
	}
	return manifest(j.t, name, strings.ReplaceAll(text, old, changed), "kind")
}

// changed is what kubectl apply says of all but the objects that were as they should be, sorted. It takes every
// PodDisruptionBudget for changed, whose selector it sends whole, and every StatefulSet with claims, whose templates it
// compares with what the API made of them.
func changed(output string) (lines []string) {
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		sent := strings.HasPrefix(line, "poddisruptionbudget.") || strings.HasPrefix(line, "statefulset.")
		if same := strings.HasSuffix(line, " unchanged") || sent && strings.HasSuffix(line, " configured"); !same {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// checkPrefetched holds that the dataset was complete before any worker joined.
func (j *testJob) checkPrefetched(name string) {
	j.t.Helper()
	completed := j.awaitComplete(name, patience)
	if first := j.awaitEvent("join", 0, j.applied,
		func(e event) bool { return e.Event == "join" }); !completed.Before(first.at()) {
		j.t.Errorf("Job %s completed at %v, after %s joined at %v", name, completed, first.Pod, first.at())
	}
	j.took("dataset fetched", j.applied, completed)
}

// checkMaster holds that all ranks have the same master, that it is a worker's own host name, and that the other
// workers resolve it to that pod.
func (j *testJob) checkMaster(g generation) {
	j.t.Helper()
	master := g.joins[0].Master
	host, _, _ := strings.Cut(master, ".")
	for _, e := range g.joins {
		if e.Master != master {
			j.t.Fatalf("rank %d has the master %q, rank 0 has %q", e.Rank, e.Master, master)
		}
	}
	i := slices.IndexFunc(g.joins, func(e event) bool { return e.Host == host })
	if i < 0 {
		j.t.Fatalf("the master is %q, which is none of the workers", master)
	}
	want := j.pod(g.joins[i].Pod).Status.PodIP
	for _, e := range g.joins {
		if e.Host == host {
			continue // its own hosts file would answer
		}
		got := strings.TrimSpace(j.exec(e.Pod, "python", "-c",
			fmt.Sprintf("import socket; print(socket.gethostbyname(%q))", master)))
		if got != want {
			j.t.Errorf("%s resolves the master %s to %s, want %s, the address of %s", e.Pod, master, got, want,
				g.joins[i].Pod)
		}
	}
}

// awaitDone waits until all ranks of a world are done, after the same step.
func (j *testJob) awaitDone(size int, after time.Time, within time.Duration) (steps int) {
	j.t.Helper()
	pods := map[string]int{}
	j.await(fmt.Sprintf("%d ranks to be done", size), within, func(events []event) bool {
		ranks := map[int]bool{}
		for _, e := range events {
			if e.Event == "done" && e.Size == size && e.at().After(after) {
				ranks[e.Rank], pods[e.Pod], steps = true, e.Step, e.Step
			}
		}
		return len(ranks) == size
	})
	for pod, step := range pods {
		if step != steps {
			j.t.Errorf("%s stopped after step %d, another worker after %d", pod, step, steps)
		}
	}
	j.logf("all are done after step %d", steps)
	return steps
}

// awaitSucceeded waits until a pod has.
func (j *testJob) awaitSucceeded(name string) {
	j.t.Helper()
	eventually(j.t, "pod "+name+" to succeed", patience, func() error {
		if pod := j.pod(name); pod.Status.Phase != corev1.PodSucceeded {
			return errors.New(describePod(pod))
		}
		return nil
	})
}

// condition is the state of a Job's condition.
func (j *testJob) condition(name string, of batchv1.JobConditionType) corev1.ConditionStatus {
	j.t.Helper()
	got, err := j.client.BatchV1().Jobs(j.namespace).Get(j.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		j.t.Fatalf("reading Job %s: %v", name, err)
	}
	for _, c := range got.Status.Conditions {
		if c.Type == of {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}
