package diff

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func parsed(t testing.TB, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

const desiredJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: ml, labels: {tegen.dev/job: a}}
spec:
  template: {spec: {containers: [{name: w, image: "a:1"}], tolerations: [{key: gpu, operator: Exists}]}}
`

const liveJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: ml, uid: "1", labels: {tegen.dev/job: a, other: x}}
spec:
  suspend: false
  backoffLimit: 6
  template:
    metadata: {labels: {controller-uid: "1"}}
    spec:
      restartPolicy: Never
      containers: [{name: w, image: "a:1", terminationMessagePath: /dev/x}]
      tolerations: [{key: gpu, operator: Exists}]
status: {active: 1, startTime: "2026-01-01T00:00:00Z"}
`

// TestLive: what Kueue writes into a Job is what a reconciler tries to take back, which is refused while it runs.
func TestLive(t *testing.T) {
	const flavor = "tolerations: [{key: gpu, operator: Exists}, {key: flavor, operator: Exists}]"
	queued := strings.Replace(liveJob, "tolerations: [{key: gpu, operator: Exists}]", flavor, 1)
	suspended := strings.NewReplacer("suspend: false", "suspend: true",
		"active: 1, startTime: \"2026-01-01T00:00:00Z\"", "ready: 0").Replace(queued)
	others := strings.NewReplacer("name: a,", "name: z,", "tegen.dev/job: a", "b: c").Replace(liveJob)
	for name, c := range map[string]struct {
		live string
		want Class
	}{
		"as it was applied": {liveJob, ""},
		"Kueue's writing":   {queued, Refused},
		"while suspended":   {suspended, InPlace},
		"an owner's":        {strings.Replace(liveJob, "name: a,", "name: z, ownerReferences: [{name: b}],", 1), Added},
		"nobody's":          {others, Added},
		"ours":              {strings.Replace(liveJob, "name: a,", "name: z,", 1), Overlap},
	} {
		live, desired := []map[string]any{parsed(t, c.live)}, []map[string]any{parsed(t, desiredJob)}
		r, err := Compare(live, desired, Options{Minor: 36})
		if err != nil {
			t.Fatal(err)
		}
		if r.Worst != c.want {
			t.Errorf("%s: worst is %q, want %q: %+v", name, r.Worst, c.want, r.Jobs)
		}
	}
}

// TestBounded: a comment has room for the worst, says what it left out, and nothing in it is more than text.
func TestBounded(t *testing.T) {
	var before, after []map[string]any
	for i := range 2000 {
		o := parsed(t, desiredJob)
		name := fmt.Sprintf("job-%04d", i)
		o["metadata"] = map[string]any{"name": name, "namespace": "ml", "labels": map[string]any{"tegen.dev/job": name}}
		before = append(before, o)
		changed := parsed(t, strings.Replace(desiredJob, `"a:1"`, `"| @all </details> `+"```"+`"`, 1))
		changed["metadata"] = o["metadata"]
		after = append(after, changed)
	}
	r, err := Compare(before, after, Options{Minor: 36})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	if n := len([]rune(b.String())); n > 65_536 || n < 30_000 {
		t.Errorf("%d characters", n)
	}
	head, _, _ := strings.Cut(b.String(), "<details>")
	if strings.Contains(head, "@all") || !strings.Contains(head, "1985 more rows below") {
		t.Errorf("the table is\n%s", head[:min(len(head), 2000)])
	}
	if !strings.HasSuffix(b.String(), "left out, since a comment has no room for more: run `tegen diff`.\n") {
		t.Errorf("it ends with %q", b.String()[b.Len()-200:])
	}
	if !strings.Contains(b.String(), "\n````text\n") {
		t.Error("a fence is as short as one of the values")
	}
}
