package generators

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/schema/target"
)

// TestTargets holds the registry to the table by which the schema accepts jobs.
func TestTargets(t *testing.T) {
	var want, got [][2]string
	for _, row := range target.All {
		want = append(want, [2]string{row.Framework, row.Name})
	}
	for _, row := range targets() {
		got = append(got, [2]string{row.framework, row.name})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("targets (-schema +generators):\n%s", diff)
	}
}
