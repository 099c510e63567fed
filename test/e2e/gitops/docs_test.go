package gitops

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDocs: docs/gitops.md says of every case what either reconciler does, and of nothing else.
func TestDocs(t *testing.T) {
	const page = "../../../docs/gitops.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n| case | Flux | Argo CD | what to do |\n")
	if !found {
		t.Fatalf("%s has no table of cases", page)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if strings.HasPrefix(line, "|--") {
			continue
		}
		if len(cells) != 6 {
			t.Errorf("%s: a row has %d cells, want 4: %s", page, len(cells)-2, line)
			continue
		}
		for _, cell := range cells[1:5] {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("%s: a cell is empty: %s", page, line)
			}
		}
		rows = append(rows, strings.TrimSpace(cells[1]))
	}
	for _, c := range cases {
		if !slices.Contains(rows, c.row) {
			t.Errorf("%s has no row %q", page, c.row)
		}
	}
	for _, row := range rows {
		if !slices.ContainsFunc(cases, func(c testCase) bool { return c.row == row }) {
			t.Errorf("%s has a row %q that no case shows", page, row)
		}
	}
}
