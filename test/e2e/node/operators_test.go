package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/node"
)

// operators are the real controllers of custom resources. Each runs, with its webhooks, as a process beside the
// cluster, from the first scenario that wants it to the end of the run.
type operators struct {
	mu      sync.Mutex
	cluster *cluster.Cluster
	running []string
}

// start starts those that do not run yet.
func (o *operators) start(t *testing.T, kubeconfig string, names ...string) {
	t.Helper()
	dir := os.Getenv(node.LabEnv)
	if dir == "" {
		t.Skip("the API server of a kind cluster reaches no webhook of a process beside it")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cluster == nil {
		var err error
		if o.cluster, err = cluster.At(filepath.Join(dir, "operators"), kubeconfig); err != nil {
			t.Fatal(err)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(o.running, name) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := o.cluster.StartOperators(ctx, os.Stderr, names...); err != nil {
		t.Fatal(err)
	}
	o.running = append(o.running, names...)
}

// operated is a job whose workers the controller of a custom resource makes.
type operated struct {
	scenario  string
	operators []string
	fixture   string
	ranks     int    // of all workers
	done      string // the object's condition when the training has ended
	static    bool   // its rendezvous: no worker trains on without one that is lost, and all start anew
}

func TestJobSet(t *testing.T) {
	begin(t).operate(t, operated{
		scenario: "13 JobSet", operators: []string{cluster.JobSet},
		fixture: "torchelastic-jobset-minimal", ranks: 3, done: "Completed",
	})
}

func TestPyTorchJob(t *testing.T) {
	begin(t).operate(t, operated{
		scenario: "13 PyTorchJob", operators: []string{cluster.TrainingOperator},
		fixture: "torchelastic-pytorchjob", ranks: 6, done: "Succeeded",
	})
}

func TestTrainJob(t *testing.T) {
	begin(t).operate(t, operated{
		scenario: "13 TrainJob", operators: []string{cluster.JobSet, cluster.Trainer},
		fixture: "torchelastic-trainjob-minimal", ranks: 3, done: "Complete", static: true,
	})
}

// operate takes a fixture through its own runbook for kubectl, command by command, under the real controller: applied,
// a worker lost, suspended and resumed, and removed.
func (w *world) operate(t *testing.T, o operated) {
	t.Helper()
	w.operators.start(t, w.Kubeconfig(), o.operators...)
	d := w.shell(t, root)
	file := "fixtures/valid/" + o.fixture + ".yaml"
	book := runbook(runbookSections(t, d.run("tegen runbook "+file+" --overlay overlays/kind --with kubectl")))
	t.Cleanup(func() { // what makes pods anew
		if t.Failed() {
			remove := strings.Fields(book.commands(t, "Clean up")[0])
			_, _ = w.tryKubectl(context.WithoutCancel(t.Context()), remove[1:]...) // the failure is reported already
		}
	})
	j := w.job(t, o.scenario, rendered(t, o.fixture, "kind"), "")

	j.setApplied()
	for _, command := range book.commands(t, "Apply") {
		d.run(command)
	}
	world := j.awaitWorld(o.ranks, j.applied, patience)
	workers := len(world.pods())
	j.took(fmt.Sprintf("apply to %d workers that train", workers), j.applied, world.stepped)

	j.awaitProgress(world)
	lost := time.Now()
	d.run(book.commands(t, "Simulate a disruption")[0])
	next := j.awaitWorld(o.ranks, lost, patience)
	j.tookAgain("kubectl delete pod", lost, next)
	stay := slices.DeleteFunc(world.pods(), func(uid types.UID) bool { return !next.has(uid) })
	want := workers - 1
	if o.static {
		want = 0
	}
	if len(stay) != want {
		t.Errorf("%d workers trained on when one was lost, want %d", len(stay), want)
	}

	patches := book.commands(t, "Suspend and resume")
	suspended := time.Now()
	d.run(patches[0])
	name := patched.FindStringSubmatch(patches[0])[1]
	at := j.awaitCondition(name, "Suspended", j.onlyRendezvous)
	j.took("spec.suspend true to no worker being left", suspended, at)
	j.checkStill(at)
	resumed := time.Now()
	d.run(patches[1])
	last := j.awaitWorld(o.ranks, resumed, patience)
	j.took(fmt.Sprintf("spec.suspend false to %d workers that train", workers), resumed, last.stepped)

	j.stop(last.joins[0].Pod)
	j.awaitDone(o.ranks, last.stepped, patience)
	j.awaitCondition(name, o.done, func() error { return nil })
	removed := time.Now()
	d.run(book.commands(t, "Clean up")[0])
	j.awaitNothing()
	j.took("kubectl delete until nothing is left", removed, time.Now())
	j.deleted = !t.Failed()
}

// patched has the object that a command patches.
var patched = regexp.MustCompile(`^kubectl patch -n \S+ (\S+) `)

// runbook is one by its sections.
type runbook []runbookSection

// commands are those of a section, without comments.
func (r runbook) commands(t *testing.T, title string) []string {
	t.Helper()
	i := slices.IndexFunc(r, func(s runbookSection) bool { return s.title == title })
	if i < 0 {
		t.Fatalf("the runbook has no section %q", title)
	}
	return slices.DeleteFunc(slices.Clone(r[i].commands), func(c string) bool { return strings.HasPrefix(c, "#") })
}

// awaitCondition waits until an object has a condition and something else holds, and returns when.
func (j *testJob) awaitCondition(object, condition string, also func() error) time.Time {
	j.t.Helper()
	eventually(j.t, object+" to be "+condition, patience, func() error {
		got, err := j.tryKubectl(j.t.Context(), "get", "-n", j.namespace, object,
			`-o=jsonpath={range .status.conditions[*]}{.type}={.status} {end}`)
		if err == nil && !slices.Contains(strings.Fields(got), condition+"=True") {
			err = fmt.Errorf("its conditions are %s", got)
		}
		if err != nil {
			return err
		}
		return also()
	})
	return time.Now()
}
