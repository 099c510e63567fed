package diff

import (
	"strings"
	"testing"
)

// TestQueuedOverlap: suspend: true is no remedy for a job that Kueue suspends and resumes.
func TestQueuedOverlap(t *testing.T) {
	later := strings.NewReplacer("name: a,", "name: a-2,", "a:1", "a:2")
	queue := strings.NewReplacer("labels: {", "labels: {kueue.x-k8s.io/queue-name: q, ")
	for _, c := range []struct{ was, want string }{
		{desiredJob, "suspend the old one in a commit before"},
		{queue.Replace(desiredJob), "set spec.active: false of the old one's Workload before"},
	} {
		r, err := Compare([]map[string]any{parsed(t, c.was)},
			[]map[string]any{parsed(t, later.Replace(c.was))}, Options{Minor: 36})
		if err != nil || r.Worst != Overlap {
			t.Fatalf("%v, %+v", err, r)
		}
		for _, change := range r.Jobs[0].Changes {
			if change.Class == Overlap && !strings.Contains(change.Remedy, c.want) {
				t.Errorf("got %q, want %q", change.Remedy, c.want)
			}
		}
	}
}
