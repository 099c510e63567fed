package node

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// looked is by when every agent has seen the store again: each proxy asks anew within a second after it did not answer.
const looked = 6 * time.Second

// TestCompanionEtcd is scenario 2 on the companion's etcd, which has a volume: agents meet in it through proxies.
// Workers are replaced, and between them the companion, which nobody who trains may notice.
func TestCompanionEtcd(t *testing.T) {
	w := begin(t)
	downloads := w.serve(t, "http://data.acme.example/digits.tar.gz", tarball(t, "digits/0.png"))
	j := w.job(t, "2 companion, etcd", rendered(t, "checkpoint-etcd", "kind"), "")
	j.apply()
	world := j.awaitWorld(3, j.applied, patience)
	j.took("apply to three workers that train", j.applied, world.stepped)
	j.checkPrefetched("digits-etcd-prefetch-data")
	j.checkApplied()

	first := world
	world = j.replaceWorker(first, 2, 10)
	// One that was there from the start: the index whose pod was replaced once waits longer for the next.
	other := slices.IndexFunc(world.joins, func(e event) bool { return first.has(e.UID) })
	j.killUnnoticed(world, 0)
	world = j.replaceWorker(world, other, 0)

	j.fetchAgain("digits-etcd-prefetch-data")
	if n := downloads.Load(); n != 1 {
		t.Errorf("the dataset was downloaded %d times, want once", n)
	}
	j.finish(world)
}

// TestCompanionC10d is scenario 3, the loss of rank 0, and scenario 2 on the companion's TCPStore: it keeps its runs in
// memory, and clients of c10d never connect again, so that all workers are replaced and go on from the checkpoint.
func TestCompanionC10d(t *testing.T) {
	w := begin(t)
	j := w.job(t, "3 companion, c10d", rendered(t, "checkpoint-c10d", "kind"), "")
	j.apply()
	world := j.awaitWorld(3, j.applied, patience)
	j.took("apply to three workers that train", j.applied, world.stepped)

	world = j.replaceWorker(world, 0, 10)

	j.awaitProgress(world)
	killed := j.killCompanion(0)
	whole := j.awaitWorld(3, killed, patience)
	j.tookAgain("companion killed", killed, whole)
	j.checkContinued(whole)
	for _, e := range whole.joins {
		if world.has(e.UID) {
			t.Errorf("%s trains on without the store that its agent met the others in", e.Pod)
		}
	}
	j.finish(whole)
}

// checkApplied applies the manifest once more and holds that this changes nothing.
func (j *testJob) checkApplied() {
	j.t.Helper()
	before := j.listed()
	if lines := changed(j.kubectl(j.t, "apply", "-f", j.file)); len(lines) > 0 {
		j.t.Errorf("applying the manifest again printed %q", lines)
	}
	j.checkKept(before)
}

// listed has a line for each object of the manifest that is there. A specification that changes has another generation,
// whatever kubectl says.
func (j *testJob) listed() []string {
	j.t.Helper()
	return strings.Split(strings.TrimSpace(j.kubectl(j.t, "get", "-f", j.file, "--ignore-not-found",
		`-o=jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}`)),
		"\n")
}

// checkKept holds that objects that were there before the manifest was applied are as they were.
func (j *testJob) checkKept(before []string) {
	j.t.Helper()
	after := slices.DeleteFunc(j.listed(), func(line string) bool {
		id, _, _ := strings.Cut(line, " ")
		return !slices.ContainsFunc(before, func(b string) bool { return strings.HasPrefix(b, id+" ") })
	})
	if diff := cmp.Diff(before, after); diff != "" {
		j.t.Errorf("applying the manifest again changed (-before +after):\n%s", diff)
	}
}

// fetchAgain has a Job that was complete run once more, as it does where it was deleted or its time to live is over,
// and waits until it has found the dataset.
func (j *testJob) fetchAgain(name string) {
	j.t.Helper()
	j.kubectl(j.t, "delete", "job", name, "-n", j.namespace)
	j.apply()
	j.awaitComplete(name, patience)
	eventually(j.t, "Job "+name+" to find the dataset", patience, func() error {
		if !slices.ContainsFunc(j.printed("", ""),
			func(l line) bool { return strings.HasPrefix(l.text, "present already: ") }) {
			return errors.New("it has not said so")
		}
		return nil
	})
}

// replaceWorker deletes the pod of a rank, and waits until another trains in its place, from the checkpoint. The pods
// of the other ranks stay.
func (j *testJob) replaceWorker(g generation, rank int, grace int64) generation {
	j.t.Helper()
	j.awaitProgress(g)
	lost := g.joins[rank]
	deleted, _ := j.deletePod(lost.Pod, grace)
	whole := j.awaitWorld(len(g.joins), deleted, patience)
	j.tookAgain(fmt.Sprintf("pod of rank %d deleted, grace %d s,", rank, grace), deleted, whole)
	j.checkContinued(whole)
	for _, e := range g.joins {
		if trains := whole.has(e.UID); trains != (e.UID != lost.UID) {
			j.t.Errorf("%s was deleted, and of %s it holds that it trains on: %v", lost.Pod, e.Pod, trains)
		}
	}
	return whole
}

// awaitProgress waits until a world has trained for a second, so that there is something to go on from.
func (j *testJob) awaitProgress(g generation) {
	j.t.Helper()
	j.awaitSteps(len(g.joins), g.stepped.Add(time.Second), patience)
}

// has says whether a pod has a rank.
func (g generation) has(uid types.UID) bool {
	return slices.ContainsFunc(g.joins, func(e event) bool { return e.UID == uid })
}

// pods are those of all ranks.
func (g generation) pods() (uids []types.UID) {
	for _, e := range g.joins {
		uids = append(uids, e.UID)
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// tookAgain puts into the table when somebody trained again after a loss, and when the whole world did.
func (j *testJob) tookAgain(what string, lost time.Time, whole generation) {
	j.t.Helper()
	first := whole.stepped
	for size := 1; size < len(whole.joins); size++ {
		if g, ok := formed(j.all(), size, lost); ok && g.stepped.Before(first) {
			first = g.stepped
		}
	}
	j.took(what+" to anybody training again", lost, first)
	j.took(what+" to all training again", lost, whole.stepped)
}

// companionLost is what a companion's deletion with a grace period in seconds is called in the table.
func companionLost(grace int64) string {
	if grace == 0 {
		return "companion killed"
	}
	return fmt.Sprintf("companion deleted, grace %d s,", grace)
}

// killCompanion deletes the one pod that all agents meet through, with a grace period in seconds, and waits until there
// is another that is ready.
func (j *testJob) killCompanion(grace int64) (killed time.Time) {
	j.t.Helper()
	companions := j.podsOf("rendezvous")
	if len(companions) != 1 {
		j.t.Fatalf("%s has %d companions, want one", j.name, len(companions))
	}
	killed, _ = j.deletePod(companions[0].Name, grace)
	j.awaitReplaced(&companions[0], patience)
	j.awaitReady("rendezvous")
	j.took(companionLost(grace)+" to another being ready", killed, time.Now())
	return killed
}

// killUnnoticed deletes the companion under a world, with a grace period in seconds, and holds that it trains on as it
// is: each agent has looked at the store again, and found its world there.
func (j *testJob) killUnnoticed(g generation, grace int64) {
	j.t.Helper()
	killed := j.killCompanion(grace)
	j.checkUnnoticed(g, companionLost(grace), killed)
}

// checkUnnoticed holds that a world trains on as it is from a time until all have looked at the store again.
func (j *testJob) checkUnnoticed(g generation, what string, since time.Time) {
	j.t.Helper()
	stepped := j.awaitSteps(len(g.joins), time.Now().Add(looked), patience)
	for _, e := range j.all() {
		if e.Event != "step" && e.at().After(since) && !e.at().After(stepped) {
			j.t.Fatalf("%s was interrupted by what was lost: %s at %v", e.Pod, e.Event, e.at())
		}
	}
	j.took(what+" under a world that trains on: longest time between two steps", time.Time{},
		time.Time{}.Add(longestPause(j.all(), since, stepped)))
}

// longestPause is the longest time between two steps of rank 0 that ended in a span of time.
func longestPause(events []event, from, to time.Time) (longest time.Duration) {
	var last time.Time
	for _, e := range events {
		if e.Event != "step" || e.Rank != 0 {
			continue
		}
		if !last.IsZero() && e.at().After(from) && !e.at().After(to) {
			longest = max(longest, e.at().Sub(last))
		}
		last = e.at()
	}
	return longest
}

func TestLongestPause(t *testing.T) {
	t.Parallel()
	// Rank 0 makes steps at 101, 102 and 111.
	events := printedFeed().all()
	if got := longestPause(events, time.Unix(101, 0), time.Unix(110, 0)); got != time.Second {
		t.Errorf("got a pause of %v before one was lost, want 1s", got)
	}
	if got := longestPause(events, time.Unix(101, 0), time.Unix(111, 0)); got != 9*time.Second {
		t.Errorf("got a pause of %v, want 9s", got)
	}
}

// finish ends a training, and holds that the Job completes and that the claim has the checkpoint of its last step.
func (j *testJob) finish(g generation) {
	j.t.Helper()
	asked := time.Now()
	j.stop(g.joins[1].Pod)
	last := j.awaitDone(len(g.joins), g.stepped, patience)
	j.awaitComplete(j.name+"-worker", patience)
	j.took("stop to Job complete", asked, time.Now())
	var saved struct{ Step int }
	text := j.readCheckpoint()
	if err := json.Unmarshal([]byte(text), &saved); err != nil {
		j.t.Fatalf("reading the checkpoint %q: %v", text, err)
	}
	if saved.Step != last {
		j.t.Errorf("the checkpoint is of step %d, and the last was %d", saved.Step, last)
	}
	j.deleteByLabel(patience)
}

// readCheckpoint has another pod read what the workers have left on their claim.
func (j *testJob) readCheckpoint() string {
	j.t.Helper()
	ctx, pods := j.t.Context(), j.client.CoreV1().Pods(j.namespace)
	spec := j.podsOf("worker")[0].Spec
	worker := spec.Containers[0]
	dir := ""
	for _, e := range worker.Env {
		if e.Name == "CHECKPOINT_DIR" {
			dir = e.Value
		}
	}
	reader := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: j.name + "-reader", Labels: map[string]string{instance: j.name}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, SecurityContext: spec.SecurityContext, Volumes: spec.Volumes,
			AutomountServiceAccountToken: new(bool),
			Containers: []corev1.Container{{
				Name: "reader", Image: worker.Image, Command: []string{"cat", dir + "/step"},
				SecurityContext: worker.SecurityContext, VolumeMounts: worker.VolumeMounts,
			}},
		},
	}
	if _, err := pods.Create(ctx, reader, metav1.CreateOptions{}); err != nil {
		j.t.Fatalf("making a pod that reads the checkpoint: %v", err)
	}
	j.awaitSucceeded(reader.Name)
	text, err := pods.GetLogs(reader.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		j.t.Fatalf("reading the checkpoint: %v", err)
	}
	j.deletePod(reader.Name, 0)
	return string(text)
}

// tarball is a compressed archive of one file.
func tarball(t *testing.T, file string) []byte {
	t.Helper()
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	w := tar.NewWriter(compressed)
	content := []byte("a picture")
	if err := w.WriteHeader(&tar.Header{
		Name: file, Mode: 0o644, Size: int64(len(content)),
		ModTime: time.Unix(0, 0),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}
