package plan

import (
	"fmt"
	"strings"
)

func (j *Job) fitText(out *strings.Builder, cluster *Cluster) {
	fmt.Fprintf(out, "\nFIT  %s\n", j.verdict(cluster))
	for _, m := range j.Fit.Missing {
		fmt.Fprintf(out, "  no place for %d of %s:\n", m.Pods, m.Role)
		for _, r := range m.Reasons {
			fmt.Fprintf(out, "    %s: %s\n", nodes(r.Nodes), r.Reason)
		}
	}
	j.domainsText(out)
	names := resourceNames(j.Requests.Peak)
	rows := [][]string{append(append([]string{"FREE ON"}, upper(names)...), "PODS")}
	for _, n := range j.Fit.Nodes {
		there := ranges(n.Pods)
		for _, r := range ranges(n.Running) {
			there = append(there, r+" (running)")
		}
		rows = append(rows, append(append([]string{n.Name}, cells(names, n.Free)...), strings.Join(there, ", ")))
	}
	if len(rows) > 1 {
		align(out, rows)
	}
	if others := len(cluster.Nodes) - len(j.Fit.Nodes); others > 0 {
		fmt.Fprintf(out, "  %d of %s: no pod of this job\n", others, nodes(len(cluster.Nodes)))
	}
}

// verdict is the answer in one line.
func (j *Job) verdict(cluster *Cluster) string {
	var required, replicas, present, placed int32
	for _, s := range j.Fit.PodSets {
		required, replicas = required+s.Required, replicas+s.Replicas
		present, placed = present+s.Running+s.Finished, placed+s.Placed
	}
	text := fmt.Sprintf("yes: a place for all %s", pods(replicas))
	switch {
	case !j.Fit.Fits && j.Fit.Heuristic:
		text = fmt.Sprintf("no: not all of %s have a place in any arrangement that was tried; another may exist",
			pods(required))
	case !j.Fit.Fits:
		text = fmt.Sprintf("no: not all of %s have a place", pods(required))
	case present+placed < replicas:
		text = fmt.Sprintf("yes: a place for %d of %s, %d needed", present+placed, pods(replicas), required)
	}
	if present > 0 {
		text += fmt.Sprintf(", %d there already", present)
	}
	if cluster.Pods == 0 {
		text += "\n  (no pods in the inventory: nodes count as empty)"
	}
	return text
}

func nodes(n int) string { return count(n, "node") }
