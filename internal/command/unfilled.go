package command

import (
	"fmt"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/krm"
)

// refuseUnfilled is the error of jobs that hold what their overlay has in the place of a value not known yet: it looks
// like one, and would reach the cluster.
func refuseUnfilled(outs []*krm.Output) error { return unfilled(outs, finding.Error).Err() }

// unfilled is a finding for each value, with the first job that has it and the number of others: it is most likely one
// of their Environment. It is a note of what only speaks of jobs.
func unfilled(outs []*krm.Output, level finding.Level) (list finding.List) {
	at, more := map[string]int{}, map[string]int{}
	for _, out := range outs {
		for _, b := range out.Bundles {
			for _, what := range b.Summary.Unfilled {
				if _, said := at[what]; said {
					more[what]++
					continue
				}
				at[what] = len(list)
				list = append(list, finding.Said("job/placeholder", level, what).At(b.Summary.Position()))
			}
		}
	}
	for what, n := range more {
		list[at[what]] = list[at[what]].With(fmt.Sprintf(" (and %d more)", n))
	}
	return list
}
