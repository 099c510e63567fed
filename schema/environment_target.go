package schema

import (
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
)

// passedOver are fields of an environment, which speaks to jobs of all frameworks and targets, that are not for a job:
// those of other frameworks, and as defaults also those that its target cannot carry. What an author says there is
// refused.
func passedOver(trees ...*structural.Node) (foreign, lacking []string) {
	t := TargetOf(firstText("framework", FrameworkTorchelastic, trees), firstText("target", TargetJob, trees))
	if t == nil {
		return nil, nil
	}
	if firstText("master", "", workersOf(trees)) == "true" { // where workers meet at the Master, each pod one process
		foreign = append(foreign, "rendezvous", "workers.processes")
	}
	for field, reason := range t.Lacks {
		switch {
		// which are for the jobs that have them
		case strings.HasPrefix(reason, ownedBy), strings.HasPrefix(field, "roles."):
			foreign = append(foreign, field)
		// a part of a section, and one value of a field, are lacking there
		case field != "mxnet" && !strings.Contains(field, "="):
			lacking = append(lacking, field)
		}
	}
	return foreign, append(lacking, foreign...)
}

// firstText is a field of the first tree that has it.
func firstText(field, otherwise string, trees []*structural.Node) string {
	for _, n := range trees {
		if n != nil && n.Field(field) != nil {
			return n.Field(field).Text
		}
	}
	return otherwise
}

func workersOf(trees []*structural.Node) (all []*structural.Node) {
	for _, n := range trees {
		all = append(all, n.Below("workers"))
	}
	return all
}
