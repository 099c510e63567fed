package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/test/e2e/objects"
)

// Labels that every object and pod of a job has.
const (
	instance       = "app.kubernetes.io/instance"
	componentLabel = "app.kubernetes.io/component"
)

// job is a rendered job in the cluster, and what its pods print.
type testJob struct {
	*world
	t               *testing.T
	scenario        string // in the table
	name, namespace string
	file            string // as it is applied
	objects         []*objects.Object
	applied         time.Time
	deleted         bool
	*feed
	pods *podLog
}

// job makes ready what a manifest's job needs and does not bring: its namespace, what it expects there, its images. A
// test may make what the job expects with a content of its own before (enter, provide). Pods of the job are followed
// from now on; at the end of the test, what is left is deleted, and reported first where the test failed. In a manifest
// of several jobs, name says which; the others are not applied.
func (w *world) job(t *testing.T, scenario, manifest, name string) *testJob {
	t.Helper()
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	all, err := objects.Read(manifest, text)
	if err != nil {
		t.Fatal(err)
	}
	j := &testJob{world: w, t: t, scenario: scenario, file: manifest, feed: newFeed()}
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
func (j *testJob) writePart() {
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
func (j *testJob) apply() {
	j.t.Helper()
	j.setApplied()
	j.kubectl(j.t, "apply", "-f", j.file)
	j.logf("applied %s", j.file)
}

// setApplied notes that the job is applied now, unless it was before.
func (j *testJob) setApplied() {
	if j.applied.IsZero() {
		j.applied = time.Now()
	}
}

// logf says something with the time since the job was applied.
func (j *testJob) logf(format string, args ...any) {
	j.t.Helper()
	j.t.Logf("+%5.1f s %s", time.Since(j.applied).Seconds(), fmt.Sprintf(format, args...))
}

// took puts a duration into the table.
func (j *testJob) took(what string, from, to time.Time) {
	j.t.Helper()
	times.add(j.scenario, what, to.Sub(from))
	j.logf("%s: %.1f s", what, to.Sub(from).Seconds())
}

// clean reports a failure, also one that was printed after the last wait, and deletes what the test has left, so that
// the scenarios beside it have the room.
func (j *testJob) clean() {
	if err := j.wrongSaid(); err != nil {
		j.t.Error(err)
	}
	if j.t.Failed() {
		j.report()
	}
	j.pods.stop()
	j.t.Logf("what %s said:\n%s", j.name, timeline(j.all(), j.applied))
	if j.deleted {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range deletions(j.t, j.name, j.namespace) {
		if _, err := j.tryKubectl(ctx, append(args, "--wait=false", "--grace-period=1",
			"--ignore-not-found")...); err != nil {
			j.t.Errorf("cleaning up after %s: %v", j.name, err)
		}
	}
}
