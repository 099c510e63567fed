package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSteps: the steps whose tests have names of rows by chance write no rows: those with torch.
func TestSteps(t *testing.T) {
	for _, s := range steps {
		if s.rows && (s.name == "torch" || s.name == "faults") {
			t.Errorf("%s writes rows", s.name)
		}
	}
}

// TestUpdate: rows have the new run where all of their tests passed, and keep the old one otherwise.
func TestUpdate(t *testing.T) {
	results := map[string]string{}
	collect(results, "--- PASS: TestA (1.0s)\n    --- PASS: TestB/x (1.0s)\n--- SKIP: TestC (0.0s)\n"+
		"--- FAIL: TestD (1s)\n--- PASS: TestD (1s)\n")
	const page = "# Proof\n\n| what | test | last run |\n|---|---|---|\n| 1 | `TestA`, `TestB/x` | old |\n" +
		"| 2 | `TestA`, `TestC` | old |\n| 3 | `TestD` | old |\n| 4 | by hand | old |\n| 5 | `TestE` | old |\n\n" +
		"| what | seconds |\n|---|---|\n| 1 | 2 |\n"
	want := "\n| what | test | last run |\n|---|---|---|\n| 1 | `TestA`, `TestB/x` | new |\n" +
		"| 2 | `TestA`, `TestC` | old |\n| 3 | `TestD` | old |\n| 4 | by hand | old |\n| 5 | `TestE` | old |\n"
	updated := update(page, results, "new")
	if diff := cmp.Diff(want, tables(updated)); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
	if len(updated) != len(page) {
		t.Errorf("the page is changed elsewhere:\n%s", updated)
	}
}
