package apis_test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/refs"
)

// counts are the fields of the objects in workloads that hold a number of pods.
var counts = regexp.MustCompile(`\b(replicas|parallelism|completions|numNodes|minReplicas|maxReplicas): [0-9]+`)

// containers are those of the pod templates in workloads.
var containers = regexp.MustCompile(`containers: \[\{name: [a-z]+`)

// enlarged are the objects of workloads, of all kinds, with this number of pods, and with a quantity and a label.
func enlarged(count int64, quantity, key string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(workloads)) {
		text := counts.ReplaceAllString(workloads[name].object, fmt.Sprintf("${1}: %d", count))
		if !strings.Contains(text, "replicas: ") { // its default is 1
			text = strings.Replace(text, "mxReplicaType: ", fmt.Sprintf("replicas: %d, mxReplicaType: ", count), 1)
		}
		text = containers.ReplaceAllStringFunc(text, func(found string) string {
			return found + fmt.Sprintf(", resources: {limits: {%q: %q}}", key, quantity)
		})
		all = append(all, text)
	}
	return all
}

// reads is what commands do with an object: read it, ask for its pods and Services, and check its references.
func reads(text string) error {
	objects, err := manifest.Read("x", []byte(text))
	if err != nil {
		return err
	}
	for _, obj := range objects {
		w := apis.WorkloadOf(obj)
		if w == nil {
			continue
		}
		for _, set := range w.PodSets() {
			set.HasNumber(int(set.Numbers()))
		}
		for _, set := range w.Services() {
			set.HasNumber(int(set.Count))
		}
		w.Excess()
	}
	refs.Check(objects)
	return nil
}

// TestBounds: no kind takes time or memory that grows with a number of pods, and a number that does not fit in memory
// is an error that names the limit.
func TestBounds(t *testing.T) {
	for _, text := range enlarged(2_000_000_000, "1", "cpu") {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := reads(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 100 {
			t.Errorf("%d MB for %s", used, text)
		}
	}
}

// TestBoundOfJobSet: a JobSet with more child Jobs than are listed is reported, with the field and the limit.
func TestBoundOfJobSet(t *testing.T) {
	for _, c := range []struct{ object, want string }{
		{
			"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s, namespace: ml}, " +
				"spec: {replicatedJobs: " +
				"[{name: a, replicas: 4000, template: {}}, {name: b, replicas: 97, template: {}}]}}",
			"ml/s: spec.replicatedJobs[1].replicas: 4097 child Jobs: more than the limit of 4096",
		},
		{
			"{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: r, " +
				"namespace: ml}, spec: " +
				"{template: {spec: {replicatedJobs: [{name: a, replicas: 2000000000, template: {}}]}}}}",
			"ml/r: spec.template.spec.replicatedJobs[0].replicas: 2000000000 child Jobs",
		},
	} {
		objects, err := manifest.Read("x", []byte(c.object))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(refs.Check(objects)); !strings.Contains(got, c.want) {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestBoundOfManyJobSets: JobSets beyond the limit take no memory for the child Jobs that are not listed.
func TestBoundOfManyJobSets(t *testing.T) {
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "---\n{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, "+
			"metadata: {name: s%d, namespace: ml}, "+
			"spec: {replicatedJobs: [{name: a, replicas: 5000, template: {}}]}}\n", i)
	}
	objects, err := manifest.Read("x", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	broken := refs.Check(objects)
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; len(broken) != 200 || got > 100 {
		t.Errorf("%d findings and %d MiB, want 200 and at most 100 MiB", len(broken), got)
	}
}

// TestServicesByNumber: whether a controller makes a Service of a number is known without a list of them.
func TestServicesByNumber(t *testing.T) {
	dials := "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ml}, spec: {containers: [{name: c, env: " +
		"[{name: STORE_HOST, value: p-worker-%d}]}]}}\n---\n" +
		"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: p, namespace: ml}, spec: " +
		"{pytorchReplicaSpecs: " +
		"{Worker: {replicas: 2000000000, template: {spec: {containers: [{name: pytorch}]}}}}}}"
	for n, broken := range map[int]int{0: 0, 1_999_999_999: 0, 2_000_000_000: 1} {
		objects, err := manifest.Read("x", fmt.Appendf(nil, dials, n))
		if err != nil {
			t.Fatal(err)
		}
		if got := refs.Check(objects); len(got) != broken {
			t.Errorf("%d: %v", n, got)
		}
	}
}

// FuzzObject: a number of pods, a quantity and a key of a string map, in objects of every kind. Reading and checking
// them ends soon, and nothing panics.
func FuzzObject(f *testing.F) {
	for _, count := range []int64{0, -1, 2, 4097, 2_000_000_000, math.MaxInt32, math.MaxInt64, math.MinInt64} {
		f.Add(count, "1", "cpu")
	}
	for _, quantity := range []string{
		"1e9999999", "1e-9999999", strings.Repeat("1", 100_000), "", "none", "0.1m", "1Ei", "-1", "1e999", "1E+99",
	} {
		f.Add(int64(2), quantity, "memory")
	}
	for _, key := range []string{
		"$patch", "$retainKeys", "$deleteFromPrimitiveList/a", "$setElementOrder/a", "", "a/b/c",
	} {
		f.Add(int64(2), "1", key)
	}
	f.Fuzz(func(t *testing.T, count int64, quantity, key string) {
		start := time.Now()
		for _, text := range enlarged(count, quantity, key) {
			_ = reads(text) // that it may refuse the object is the point
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s", took)
		}
	})
}
