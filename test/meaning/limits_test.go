package meaning

import (
	"fmt"
	"testing"
)

// TestFirstFailureEnds: no index that may fail is the same as no pod that may; one more of either is not.
func TestFirstFailureEnds(t *testing.T) {
	t.Parallel()
	job := func(limits string) string {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {completionMode: Indexed, "+
			"completions: 2, parallelism: 2, %s, template: {spec: {containers: [{name: c, image: i}]}}}\n", limits)
	}
	for limits, same := range map[string]bool{
		"backoffLimitPerIndex: 0, maxFailedIndexes: 0": true,
		"backoffLimitPerIndex: 1, maxFailedIndexes: 0": false,
		"backoffLimitPerIndex: 0, maxFailedIndexes: 1": false,
		"backoffLimitPerIndex: 0":                      false,
	} {
		if all := Compare(job(limits), job("backoffLimit: 0")); (len(all) == 0) != same {
			t.Errorf("%s and backoffLimit 0: %v", limits, all)
		}
	}
}

// TestOwnNames: a name by which a program makes the addresses of its pods may change with theirs, and no other may.
func TestOwnNames(t *testing.T) {
	t.Parallel()
	job := func(name, argument, text string) string {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\nspec: {completionMode: Indexed, "+
			"completions: 2, parallelism: 2, template: {spec: {subdomain: %[1]s, containers: [{name: c, image: i, "+
			"command: [sh, -c, %q, %s]}]}}}\n", name, text, argument)
	}
	const address = "train --at ${0}-0.${0}"
	for _, c := range []struct {
		before, after string
		same          bool
	}{
		{job("a", "a", address), job("a-worker", "a-worker", address), true},
		{job("a", "a", address), job("a-worker", "a", address), false},
		{job("a", "a", "train $0"), job("a-worker", "a-worker", "train $0"), false},
	} {
		if all := Compare(c.before, c.after); (len(all) == 0) != c.same {
			t.Errorf("%s%s: %v", c.before, c.after, all)
		}
	}
}
