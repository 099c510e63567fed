package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/krm"
)

// refuseUnfilled is the error of jobs that hold what their overlay has in the place of a value not known yet: it looks
// like one, and would reach the cluster.
func refuseUnfilled(outs []*krm.Output) error {
	if lines := unfilled(outs, ""); len(lines) > 0 {
		return errors.New(strings.Join(lines, "\n"))
	}
	return nil
}

// noteUnfilled says the same of what only speaks of jobs.
func noteUnfilled(s cli.Streams, outs []*krm.Output) error {
	for _, line := range unfilled(outs, "note: ") {
		if _, err := io.WriteString(s.Err, line+"\n"); err != nil {
			return fmt.Errorf("writing a note: %w", err)
		}
	}
	return nil
}

// unfilled is a line for each value, with the first job that has it and the number of others: it is most likely one of
// their Environment.
func unfilled(outs []*krm.Output, prefix string) []string {
	var said, lines []string
	more := map[string]int{}
	for _, out := range outs {
		for _, b := range out.Bundles {
			for _, what := range b.Job.Unfilled() {
				if slices.Contains(said, what) {
					more[what]++
					continue
				}
				said, lines = append(said, what), append(lines, b.Job.Position()+": "+prefix+what)
			}
		}
	}
	for i, what := range said {
		if n := more[what]; n > 0 {
			lines[i] += fmt.Sprintf(" (and %d more)", n)
		}
	}
	return lines
}
