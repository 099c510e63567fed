package diff

import (
	"fmt"
	"strings"
	"testing"
)

// TestMoved: a job that becomes another kind or moves to another namespace runs twice for a while.
func TestMoved(t *testing.T) {
	kind := func(version, kind string) string {
		return strings.NewReplacer("batch/v1", version, "kind: Job", "kind: "+kind).Replace(desiredJob)
	}
	jobSet := kind("jobset.x-k8s.io/v1alpha2", "JobSet")
	elsewhere := strings.Replace(desiredJob, "namespace: ml", "namespace: other", 1)
	other := strings.Replace(elsewhere, "tegen.dev/job: a", "tegen.dev/job: b", 1)
	pod := kind("v1", "Pod")
	for _, c := range []struct {
		was, is string
		want    Class
		path    string
	}{
		{desiredJob, jobSet, Overlap, "kind"},
		{jobSet, desiredJob, Overlap, "kind"},
		{desiredJob, kind("batch.volcano.sh/v1alpha1", "Job"), Overlap, "apiVersion"},
		{pod, desiredJob, Overlap, "kind"},
		{desiredJob, pod, Overlap, "kind"},
		{desiredJob, elsewhere, Overlap, "metadata.namespace"},
		{desiredJob, other, Removed, ""},
		{pod, strings.Replace(pod, "name: a,", "name: a-2,", 1), Removed, ""},
		{strings.Replace(desiredJob, "spec:\n", "spec:\n  suspend: true\n", 1), jobSet, Recreate, "kind"},
	} {
		r := compare(t, c.was, c.is)
		if r.Worst != c.want || c.path != "" && classAt(r, c.path) != c.want {
			t.Errorf("%q, want %q of %s: %+v", r.Worst, c.want, c.path, r.Jobs)
		}
	}
}

// TestDefaultNamespace: an object without a namespace is the one that a server prints in default.
func TestDefaultNamespace(t *testing.T) {
	bare := strings.Replace(desiredJob, " namespace: ml,", "", 1)
	named := strings.Replace(desiredJob, "namespace: ml", "namespace: default", 1)
	for _, pair := range [][2]string{{bare, named}, {named, bare}} {
		if r := compare(t, pair[0], pair[1]); r.Worst != "" {
			t.Errorf("%+v", r.Jobs)
		}
	}
	both := []map[string]any{parsed(t, bare), parsed(t, named)}
	if _, err := Compare(both, nil, Options{Minor: 36}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v, want an error: both are one object", err)
	}
}

// BenchmarkMany: the time grows with the number of objects, and not with its square.
func BenchmarkMany(b *testing.B) {
	const n = 3000
	claim := func(i int) map[string]any {
		return parsed(b, fmt.Sprintf("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c%d}, spec: "+
			"{storageClassName: x}}", i))
	}
	job := func(i int, image string) map[string]any {
		name := fmt.Sprintf("j%d", i)
		return parsed(b, strings.NewReplacer("name: a,", "name: "+name+",", "job: a", "job: "+name,
			"a:1", image).Replace(desiredJob))
	}
	var claims, before, after []map[string]any
	for i := range n {
		claims = append(claims, claim(i))
		before, after = append(before, job(i, "a:1")), append(after, job(i+n, "a:2"))
	}
	for b.Loop() {
		for _, sides := range [][2][]map[string]any{{claims, nil}, {before, after}} {
			r, err := Compare(sides[0], sides[1], Options{Minor: 36})
			if err != nil || len(r.Jobs) == 0 {
				b.Fatal(err, r)
			}
			written(b, r)
		}
	}
}
