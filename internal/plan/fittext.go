package plan

import (
	"fmt"
	"strings"
)

func (j *Job) fitText(out *strings.Builder, counted *Counted) {
	fmt.Fprintf(out, "\nFIT  %s\n", j.verdict(counted))
	for _, m := range j.Fit.Missing {
		fmt.Fprintf(out, "  no place for %d of %s:\n", m.Pods, m.Role)
		for _, r := range m.Reasons {
			fmt.Fprintf(out, "    %s: %s\n", nodes(r.Nodes), r.Reason)
		}
	}
	names := resourceNames(j.Requests.Peak)
	rows := [][]string{append(append([]string{"FREE ON"}, upper(names)...), "PODS")}
	others := 0
	for _, n := range j.Fit.Nodes {
		if len(n.Pods)+len(n.Running) == 0 {
			others++
			continue
		}
		there := ranges(n.Pods)
		for _, r := range ranges(n.Running) {
			there = append(there, r+" (running)")
		}
		rows = append(rows, append(append([]string{n.Name}, cells(names, n.Free)...), strings.Join(there, ", ")))
	}
	if len(rows) > 1 {
		align(out, rows)
	}
	if others > 0 {
		fmt.Fprintf(out, "  %d of %s: no pod of this job\n", others, nodes(counted.Nodes))
	}
}

// verdict is the answer in one line.
func (j *Job) verdict(counted *Counted) string {
	var required, replicas, present, placed int32
	for _, s := range j.Fit.PodSets {
		required, replicas = required+s.Required, replicas+s.Replicas
		present, placed = present+s.Running+s.Finished, placed+s.Placed
	}
	text := fmt.Sprintf("yes: a place for all %s", pods(replicas))
	switch {
	case !j.Fit.Fits && j.Fit.Heuristic:
		text = fmt.Sprintf("no: not all of %s have a place in any arrangement that was tried; another may exist", pods(required))
	case !j.Fit.Fits:
		text = fmt.Sprintf("no: not all of %s have a place", pods(required))
	case present+placed < replicas:
		text = fmt.Sprintf("yes: a place for %d of %s, %d needed", present+placed, pods(replicas), required)
	}
	if present > 0 {
		text += fmt.Sprintf(", %d there already", present)
	}
	if counted.Pods == 0 {
		text += "\n  (no pods in the inventory: nodes count as empty)"
	}
	return text
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
