package node

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// table is what was measured, by scenario.
type table struct {
	mu   sync.Mutex
	rows []row
}

type row struct {
	scenario, what string
	took           time.Duration
}

func (tb *table) add(scenario, what string, took time.Duration) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.rows = append(tb.rows, row{scenario, what, took})
}

// sorted has the scenarios in the order of their names, and the rows of each in the order in which they were measured.
func (tb *table) sorted() []row {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	rows := slices.Clone(tb.rows)
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.scenario, b.scenario) })
	return rows
}

// publish prints the table, and writes it to a file as rows of Markdown where one is named. Nothing is written where
// nothing was measured.
func (tb *table) publish(w io.Writer, file string) error {
	rows := tb.sorted()
	if len(rows) == 0 {
		return nil
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var markdown strings.Builder
	markdown.WriteString("| scenario | measured | seconds |\n|---|---|---:|\n")
	for _, r := range rows {
		if _, err := fmt.Fprintf(columns, "%s\t%s\t%.1f s\n", r.scenario, r.what, r.took.Seconds()); err != nil {
			return fmt.Errorf("printing it: %w", err)
		}
		fmt.Fprintf(&markdown, "| %s | %s | %.1f |\n", r.scenario, r.what, r.took.Seconds())
	}
	if err := columns.Flush(); err != nil {
		return fmt.Errorf("printing it: %w", err)
	}
	if file == "" {
		return nil
	}
	return os.WriteFile(file, []byte(markdown.String()), 0o600)
}

func TestTable(t *testing.T) {
	t.Parallel()
	var tb table
	tb.add("2 default", "join", 9400*time.Millisecond)
	tb.add("1 tutorial", "join", 12*time.Second)
	tb.add("1 tutorial", "delete", 3*time.Second)
	file := t.TempDir() + "/table.md"
	var out strings.Builder
	if err := tb.publish(&out, file); err != nil {
		t.Fatal(err)
	}
	if want := "1 tutorial  join    12.0 s\n" +
		"1 tutorial  delete  3.0 s\n2 default   join    9.4 s\n"; out.String() != want {
		t.Errorf("printed:\n%s\nwant:\n%s", &out, want)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "| scenario | measured | seconds |\n|---|---|---:|\n| 1 tutorial | join | 12.0 |\n| 1 tutorial | delete " +
		"| 3.0 |\n| 2 default | join | 9.4 |\n"
	if string(text) != want {
		t.Errorf("wrote:\n%s\nwant:\n%s", text, want)
	}
}
