// Package markdown writes what the benchmarks found.
package markdown

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table writes rows, of which the first is the header, with their columns aligned. All rows have as many cells.
func Table(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := make([]string, len(widths))
	for i, w := range widths {
		line[i] = strings.Repeat("-", w)
	}
	for _, row := range slices.Insert(slices.Clone(rows), 1, line) {
		for i, cell := range row {
			fmt.Fprintf(b, "| %-*s ", widths[i], cell)
		}
		b.WriteString("|\n")
	}
}
