package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/bench/internal/markdown"
)

// report is all that was measured.
type report struct {
	tools                 []tool
	sizes                 []size
	loadBefore, loadAfter string
}

// print writes the figures and the targets.
func (r report) print(w io.Writer) error {
	var versions []string
	for _, t := range r.tools {
		versions = append(versions, strings.TrimSpace(t.name+" "+t.version))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s; %s\n", strings.Join(versions, ", "), markdown.Machine(r.loadBefore, r.loadAfter))
	fmt.Fprintf(&b, "Medians over the runs counted; MB is a million bytes; "+
		"tegen/peer below 1 is in tegen's favour.\n\n")
	markdown.Table(&b, r.figures())
	b.WriteByte('\n')
	if notes := r.leftOut(); notes != "" {
		fmt.Fprintf(&b, "%s\n\n", notes)
	}
	rows := [][]string{{"target", "measured", "", "by user CPU"}}
	for _, t := range targets {
		rows = append(rows, t.row(r))
	}
	markdown.Table(&b, rows)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r report) figures() [][]string {
	rows := [][]string{{
		"jobs", "program", "runs", "user CPU", "wall", "peak memory", "tegen/peer CPU", "wall",
		"memory",
	}}
	for _, size := range r.sizes {
		own := size.series[0]
		for i, s := range size.series {
			row := []string{strconv.Itoa(size.jobs), s.tool, strconv.Itoa(len(s.samples))}
			if s.skipped != "" {
				row = append(row, "-", "-", "-")
			} else {
				row = append(row, markdown.Seconds(s.user()), markdown.Seconds(s.wall()), megabytes(s.peak()))
			}
			if i == 0 {
				row = append(row, "", "", "")
			} else {
				row = append(row, quotient(own.user(), s.user()), quotient(own.wall(), s.wall()),
					quotient(own.peak(), s.peak()))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// leftOut says which programs have no figures at some sizes.
func (r report) leftOut() string {
	var notes []string
	for _, size := range r.sizes {
		for _, s := range size.series {
			if s.skipped != "" && !slices.Contains(notes, s.skipped+".") {
				notes = append(notes, s.skipped+".")
			}
		}
	}
	return strings.Join(notes, "\n")
}

// of returns a program's runs at a size, nil where it has none.
func (r report) of(tool string, jobs int) *series {
	for _, size := range r.sizes {
		for i := range size.series {
			if s := &size.series[i]; size.jobs == jobs && s.tool == tool && len(s.samples) > 0 {
				return s
			}
		}
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

func quotient[N ~int64](a, b N) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", float64(a)/float64(b))
}
