package meaning

import "testing"

// TestSuspendedByKueue: what is written of suspend means nothing in a queue of Kueue, and much outside of one.
func TestSuspendedByKueue(t *testing.T) {
	t.Parallel()
	of := func(labels, suspend string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, labels: {" + labels + "}}\nspec: {suspend: " +
			suspend + ", template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'a:1'}]}}}\n"
	}
	const queue, other = "kueue.x-k8s.io/queue-name: team", "kueue.x-k8s.io/queue-name: other"
	for _, c := range []struct {
		before, after string
		want          Class
	}{
		{of(queue, "true"), of(queue, "false"), Silent},
		{of(queue, "false"), of(queue, "true"), Silent},
		{of("", "true"), of("", "false"), Real},
		{of(queue, "true"), of("", "false"), Real},
		{of(queue, "true"), of(other, "false"), Real},
	} {
		all := Compare(c.before, c.after)
		got := Silent
		for _, d := range all {
			if d.Class() == Real {
				got = Real
			}
		}
		if len(all) == 0 || got != c.want {
			t.Errorf("%s against %s: %s, want %s", c.before, c.after, all, c.want)
		}
	}
}

// TestQueueOfPods: the queue of a job means nothing on its pods; another, or one of pods alone, does.
func TestQueueOfPods(t *testing.T) {
	t.Parallel()
	of := func(labels, ofPods string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, labels: {" + labels + "}}\nspec: {template: " +
			"{metadata: {labels: {" + ofPods + "}}, spec: {restartPolicy: Never, containers: [{name: a, image: " +
			"'a:1'}]}}}\n"
	}
	const queue, other = "kueue.x-k8s.io/queue-name: team", "kueue.x-k8s.io/queue-name: other"
	for _, c := range []struct {
		before, after string
		same          bool
	}{
		{of(queue, queue), of(queue, ""), true},
		{of(queue, other), of(queue, ""), false},
		{of("", queue), of("", ""), false},
	} {
		if all := Compare(c.before, c.after); (len(all) == 0) != c.same {
			t.Errorf("%s%s: %v", c.before, c.after, all)
		}
	}
}
