package render

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/note"
)

func jobs(t *testing.T, specs ...string) []*job.Job {
	t.Helper()
	var sources []schema.Source
	for i, spec := range specs {
		text := fmt.Sprintf("apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\n"+
			"metadata: {name: j%d, namespace: ml}\nspec: {image: 'x:1', command: [x], workers: {replicas: 1}%s}\n", i,
			spec)
		sources = append(sources, schema.Source{Name: fmt.Sprintf("%d.yaml", i), Data: []byte(text)})
	}
	out, err := schema.Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOrder: bundles come in the order of the jobs and files in that of the generators, however many cores work.
func TestOrder(t *testing.T) {
	specs := make([]string, 64)
	all, own := jobs(t, specs...), generators.Set{}.All()
	bundles, err := Jobs(all, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bundles {
		if b.Job != all[i] {
			t.Errorf("bundle %d is of job %s", i, b.Job.Metadata.Name)
		}
		at := 0
		for _, f := range b.Files {
			for ; at < len(own) && own[at].Name != f.Concern; at++ {
			}
			if at == len(own) {
				t.Errorf("%s: %s is out of order", b.Job.Metadata.Name, f.Concern)
			}
		}
	}
}

func TestDuplicates(t *testing.T) {
	const etcd = ", rendezvous: {backend: etcd, store: etcd, etcd: {name: shared}}"
	bundles, err := Jobs(jobs(t, etcd, etcd, ""), Options{})
	if err == nil || bundles != nil {
		t.Fatalf("%d bundles, %v", len(bundles), err)
	}
	for _, want := range []string{"1.yaml:1:1: ", "StatefulSet ml/shared", `by job "j0" too (0.yaml:1:1)`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "j2") {
		t.Errorf("the third job renders nothing twice:\n%v", err)
	}
}

// TestDuplicateNamespace: another name is no help against a Namespace that two jobs create.
func TestDuplicateNamespace(t *testing.T) {
	_, err := Jobs(jobs(t, ", createNamespace: true", ", createNamespace: true"), Options{})
	const want = `1.yaml:1:1: Namespace ml would be rendered by job "j0" too (0.yaml:1:1): leave createNamespace out ` +
		"in one of them"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestDuplicatesOfControllers: a Service that a controller makes is one that another job may neither render nor have
// made.
func TestDuplicatesOfControllers(t *testing.T) {
	all := jobs(t, ", target: pytorchjob", ", target: jobset")
	all[1].Metadata.Name = "j0-worker-0" // the Service of the PyTorchJob's first worker
	if _, err := Jobs(all, Options{}); err == nil || !strings.Contains(err.Error(),
		`Service ml/j0-worker-0 would be rendered by job "j0" too`) {
		t.Errorf("%v", err)
	}
}

// TestDuplicateRanges: Services that two controllers make for their pods are compared without a list of them.
func TestDuplicateRanges(t *testing.T) {
	all := jobs(t, ", target: pytorchjob", ", target: pytorchjob")
	all[1].Metadata.Name = all[0].Metadata.Name
	const want = `1.yaml:1:1: Service ml/j0-worker-0 would be rendered by job "j0" too`
	if _, err := Jobs(all, Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestPanic: a fault of a generator in one job is an error about this job, and hides no finding of another.
func TestPanic(t *testing.T) {
	const limits = ", resources: {gpu: 1, cpu: 1, memory: 1Gi}"
	const etcd = ", rendezvous: {backend: etcd, store: etcd, etcd: {name: shared}}"
	all := jobs(t, etcd, limits, etcd)
	// The schema refuses the directive, at which Kubernetes' merge fails.
	all[1].Spec.PodTemplate = []byte(`{"spec":{"containers":[{"name":"worker","resources":` +
		`{"limits":{"$retainKeys":"1"}}}]}}`)
	bundles, err := Jobs(all, Options{})
	if err == nil || bundles != nil {
		t.Fatalf("%d bundles, %v", len(bundles), err)
	}
	list := finding.Of(err)
	if !list.HasInternal() || len(list) < 2 || list[0].Line != 1 || list[0].File != "1.yaml" {
		t.Fatalf("%v", list)
	}
	for _, want := range []string{
		`job "j1": internal error: merging podTemplate: `, "(podpatch/podpatch.go:", "Report it at https://",
	} {
		if !strings.Contains(list[0].Message, want) {
			t.Errorf("the message lacks %q: %s", want, list[0])
		}
	}
	if !strings.Contains(list[1].String(), "2.yaml:1:1") || !strings.Contains(list[1].String(), "ml/shared") {
		t.Errorf("the other job's finding: %s", list[1])
	}
}

// TestExpects: a bundle says all that any of its objects waits for.
func TestExpects(t *testing.T) {
	bundles, err := Jobs(jobs(t, ", imagePullSecrets: [pull], gang: {scheduler: volcano, queue: q}"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Queue.scheduling.volcano.sh/q", "Secret/pull"} {
		if !slices.Contains(bundles[0].Expects, want) {
			t.Errorf("%s is not among %q", want, bundles[0].Expects)
		}
	}
}

// TestSome: some generators alone, unchecked, since what they refer to may be another's.
func TestSome(t *testing.T) {
	bundles, err := Jobs(jobs(t, ""), Options{Only: []string{"worker"}})
	if err != nil || len(bundles[0].Files) != 1 || bundles[0].Files[0].Concern != "worker" {
		t.Errorf("%+v, %v", bundles, err)
	}
}

// TestWrite: one separator between any two documents, none at the ends, and none for bundles without files.
func TestWrite(t *testing.T) {
	var out bytes.Buffer
	err := Write(&out, []Bundle{
		{},
		{Files: []File{{"a", []byte("a: 1\n")}, {"b", []byte("b: 1\n")}}},
		{},
		{Files: []File{{"c", []byte("c: 1\n")}}},
	})
	if want := "a: 1\n---\nb: 1\n---\nc: 1\n"; err != nil || out.String() != want {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestPrinted: what is only printed is the same, says the same of its jobs, and keeps none of them.
func TestPrinted(t *testing.T) {
	all := jobs(t, "", ", gitops: true, gang: {scheduler: kubernetes}, kubernetesVersion: '1.36'")
	want, err := Jobs(slices.Clone(all), Options{})
	if err != nil {
		t.Fatal(err)
	}
	notes := note.Of(all[1])
	got, err := Jobs(all, Options{Printed: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range got {
		if b.Job != nil || all[i] != nil || want[i].Job == nil {
			t.Errorf("job %d is kept, or was not", i)
		}
		if !reflect.DeepEqual(b.Summary, want[i].Summary) || len(b.Files) != len(want[i].Files) {
			t.Fatalf("job %d: %+v and %d files, want %+v and %d", i, b.Summary, len(b.Files), want[i].Summary,
				len(want[i].Files))
		}
		for j, f := range b.Files {
			if f.Concern != want[i].Files[j].Concern || !bytes.Equal(f.YAML, want[i].Files[j].YAML) {
				t.Errorf("%s of job %d differs", f.Concern, i)
			}
		}
	}
	summary := got[1].Summary
	if summary.Expires != "" || !summary.Hashed || summary.Name != "j1" ||
		summary.Namespace != "ml" || summary.Position() != "1.yaml:1:1" || !summary.SaysGitOps ||
		len(notes) == 0 || !slices.Equal(summary.Notes, notes) {
		t.Errorf("%+v, notes %q", summary, notes)
	}
}
