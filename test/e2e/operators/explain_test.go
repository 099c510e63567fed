package operators

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tegen-dev/tegen/internal/apis"
)

// stoppedAt is a place whose JobSet has a finalizer, a pod that waits and an event, and whose controller wrote a log.
func stoppedAt(t *testing.T) *place {
	t.Helper()
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
		"metadata": map[string]any{
			"name": "resnet", "namespace": "training", "finalizers": []any{"acme.example/hold"},
			"managedFields": []any{map[string]any{"manager": "tegen-e2e"}},
		},
		"status": map[string]any{"restarts": int64(2)},
	}}
	in := metav1.ObjectMeta{Namespace: "training", Name: "resnet-worker-0-0"}
	client := fake.NewClientset(
		&corev1.Pod{ObjectMeta: in, Status: corev1.PodStatus{
			Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no node"},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			},
		}},
		&corev1.Event{
			ObjectMeta: in, InvolvedObject: corev1.ObjectReference{Kind: "JobSet", Name: "resnet"},
			Type: "Warning", Reason: "Refused", Message: "jobs.batch is forbidden",
		})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(apis.JobSetKind, meta.RESTScopeNamespace)
	dir := t.TempDir()
	t.Setenv("TEGEN_OPERATORS_LOGS", dir)
	log := strings.Repeat("an old line\n", 30) + "an error\na.Function\n\t/a/file.go:1\nthe last line\n"
	if err := os.WriteFile(filepath.Join(dir, "jobset.log"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	return &place{
		T: t, program: jobSet, entered: []string{"training"},
		applied: []*unstructured.Unstructured{set.DeepCopy()},
		suite: &suite{
			ctx: t.Context(), client: client, mapper: mapper,
			dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), set),
		},
	}
}

// TestExplanation: where a controller is broken, a person reads the object, its pods, its events and the controller's
// log, and nothing that hides them.
func TestExplanation(t *testing.T) {
	p := stoppedAt(t)
	got := p.explanation(t.Context())
	got = strings.ReplaceAll(got, os.Getenv("TEGEN_OPERATORS_LOGS"), "LOGS")
	got = regexp.MustCompile(`to \d+s ago`).ReplaceAllString(got, "to 1s ago")
	want := `JobSet resnet is now:
    apiVersion: jobset.x-k8s.io/v1alpha2
    kind: JobSet
    metadata:
      finalizers:
      - acme.example/hold
      name: resnet
      namespace: training
    status:
      restarts: 2
pods of namespace training:
    resnet-worker-0-0 is Pending on node ""
        PodScheduled is False: Unschedulable: no node
events of namespace training:
    JobSet resnet: Warning: Refused: jobs.batch is forbidden
LOGS/jobset.log, last written to 1s ago, ends:
` + strings.Repeat("    an old line\n", 18) + "    an error\n    the last line\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestNoLog: a log that is nowhere is named.
func TestNoLog(t *testing.T) {
	p := stoppedAt(t)
	t.Setenv("TEGEN_OPERATORS_LOGS", "/no/folder")
	if got := p.logs(t.Context(), jobSet); !strings.Contains(got, "open /no/folder/jobset.log: no such file") {
		t.Error(got)
	}
	t.Setenv("TEGEN_OPERATORS_LOGS", "")
	want := `no log of JobSet: no pod has the labels "app.kubernetes.io/name=jobset", ` +
		`and TEGEN_OPERATORS_LOGS names no folder with jobset.log`
	if got := p.logs(t.Context(), jobSet); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestInterrupted: an interrupt ends a wait and a state that should last, and not what removes everything.
func TestInterrupted(t *testing.T) {
	p := stoppedAt(t)
	ctx, interrupt := context.WithCancel(t.Context())
	p.ctx = ctx
	interrupt()
	for name, wait := range map[string]func(*place){
		"eventually": func(p *place) { p.eventually("nothing", func() error { return os.ErrNotExist }) },
		"remains":    func(p *place) { p.remains("nothing", func() error { return nil }) },
	} {
		inner := &testing.T{}
		done := make(chan bool)
		go func() { // Fatal ends the goroutine
			defer close(done)
			wait(&place{T: inner, suite: p.suite})
		}()
		<-done
		if !inner.Failed() {
			t.Errorf("%s goes on after an interrupt", name)
		}
	}
	p.release(context.WithoutCancel(p.Context()), "elsewhere") // nothing of it
	live, err := p.get(context.WithoutCancel(p.Context()), p.applied[0])
	if err != nil || len(live.GetFinalizers()) != 1 {
		t.Errorf("another namespace's object: %v, %v", live, err)
	}
}
