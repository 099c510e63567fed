package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// WriteText writes a plan for people: a block a job, names of many pods as ranges.
func (p *Plan) WriteText(w io.Writer) error {
	var out strings.Builder
	for i, j := range p.Jobs {
		if i > 0 {
			out.WriteString("\n")
		}
		j.text(&out, p.Inventory)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (j *Job) text(out *strings.Builder, cluster *Cluster) {
	fmt.Fprintf(out, "%s in %s: %s as %s, for %s, %s\n", j.Name, j.Namespace, j.Framework, j.Target, j.appliedBy(),
		j.start())
	table(out, "OBJECTS", j.objectRows())
	table(out, "PODS", j.podRows())
	var jobs []string
	for _, s := range j.PodSets {
		jobs = append(jobs, s.Jobs...)
	}
	if len(jobs) > 0 {
		fmt.Fprintf(out, "  made by Jobs %s\n", strings.Join(ranges(jobs), ", "))
	}
	fmt.Fprintf(out, "  kubectl get pods -n %s -l %s\n", j.Namespace, j.Selector)
	table(out, "ADDRESSES", j.addressRows())
	table(out, "REQUESTS", j.requestRows())
	var rows [][]string
	for _, e := range slices.Concat(j.Expects, j.Needs) {
		if strings.HasPrefix(e, "LocalQueue.") { // which is easily taken for one of the whole cluster
			e += " in namespace " + j.Namespace
		}
		rows = append(rows, []string{e})
	}
	table(out, "MUST EXIST", append(rows, j.controllerRows()...))
	rows = nil
	for _, n := range j.Notes {
		rows = append(rows, []string{n})
	}
	table(out, "NOT COUNTED", rows)
	if j.Fit != nil {
		j.fitText(out, cluster)
	}
}

// appliedBy is for whom the objects are rendered, which decides about hashes in their names.
func (j *Job) appliedBy() string {
	if j.GitOps {
		return "git"
	}
	return "kubectl apply"
}

// start is what training waits for.
func (j *Job) start() string {
	text := fmt.Sprintf("starts with %s", pods(j.Gang.Pods))
	if j.Gang.Scheduler != "" {
		text += ", a gang of " + j.Gang.Scheduler
	}
	if j.Queue != "" {
		text += ", waits in queue " + j.Queue
	}
	if j.Suspended {
		text += ", suspended"
	}
	return text
}

func pods(n int32) string { return count(int(n), "pod") }

// count is a number with a noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// table prints rows in columns below a heading, nothing where there are none.
func table(out *strings.Builder, heading string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", heading)
	align(out, rows)
}

func align(out *strings.Builder, rows [][]string) {
	var aligned strings.Builder
	t := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintf(t, "  %s\n", strings.Join(row, "\t")) // into memory
	}
	_ = t.Flush()
	for line := range strings.Lines(aligned.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

func (j *Job) objectRows() (rows [][]string) {
	var names []string
	for i, o := range j.Objects {
		names = append(names, o.Name)
		if i+1 < len(j.Objects) && j.Objects[i+1].Concern == o.Concern && j.Objects[i+1].Kind == o.Kind {
			continue
		}
		concern := o.Concern
		if concern == "" { // an overlay went on with it
			concern = "-"
		}
		for _, name := range ranges(names) {
			rows = append(rows, []string{concern, o.Kind, name})
		}
		names = nil
	}
	return rows
}

func (j *Job) podRows() [][]string {
	rows := [][]string{{"ROLE", "OF", "COUNT", "NEEDED", "NAMES"}}
	for _, s := range j.PodSets {
		rows = append(rows, []string{
			s.Role, s.Owner, fmt.Sprint(s.Replicas), fmt.Sprint(s.Required), Names(s.Pods),
		})
	}
	return rows
}

// Names are those of pods, for people: resnet-worker-{0..2}-*.
func Names(pods []Pod) string {
	names := make([]string, len(pods))
	for i, p := range pods {
		names[i] = p.Name
	}
	return strings.Join(ranges(names), ", ")
}

func (j *Job) addressRows() (rows [][]string) {
	for _, s := range j.Services {
		rows = append(rows, []string{s.Address, ports(s.Ports)})
	}
	for _, s := range j.PodSets {
		var names []string
		for _, p := range s.Pods {
			if p.Address != "" {
				names = append(names, p.Address)
			}
		}
		for _, name := range ranges(names) {
			rows = append(rows, []string{name, ports(s.Ports)})
		}
	}
	return rows
}

func ports(list []Port) string {
	var out []string
	for _, p := range list {
		text := fmt.Sprintf("%d %s", p.Port, p.Name)
		if p.Protocol != string(corev1.ProtocolTCP) {
			text = fmt.Sprintf("%d/%s %s", p.Port, p.Protocol, p.Name)
		}
		out = append(out, strings.TrimSpace(text))
	}
	return strings.Join(out, ", ")
}

func (j *Job) requestRows() [][]string {
	if len(j.PodSets) == 0 {
		return nil
	}
	names := resourceNames(j.Requests.Peak)
	rows := [][]string{append([]string{""}, upper(names)...)}
	row := func(title string, list corev1.ResourceList) {
		rows = append(rows, append([]string{title}, cells(names, list)...))
	}
	for _, s := range j.PodSets {
		row("each "+s.Role, s.Each)
		if n := len(rows); slices.Equal(rows[n-1], rows[n-2]) {
			rows = rows[:n-1]
		}
	}
	if len(j.PodSets) == 1 && j.PodSets[0].Replicas == 1 {
		return rows
	}
	row("training, total", j.Requests.Training)
	if !slices.ContainsFunc(j.PodSets, func(s *PodSet) bool { return s.Helper }) {
		return rows
	}
	row("helpers, total", j.Requests.Helpers)
	if !slices.ContainsFunc(j.PodSets, func(s *PodSet) bool { return s.Finishes }) {
		row("all at once", j.Requests.Peak)
		return rows
	}
	row("at first", j.Requests.Peak)
	row("data fetched", j.Requests.Steady)
	return rows
}

// resourceNames puts first what every node has.
func resourceNames(list corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, common := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, ok := list[common]; ok {
			names = append(names, common)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func upper(names []corev1.ResourceName) (out []string) {
	for _, n := range names {
		out = append(out, string(n))
	}
	return out
}

func cells(names []corev1.ResourceName, list corev1.ResourceList) (out []string) {
	for _, name := range names {
		q, ok := list[name]
		if !ok {
			out = append(out, "-")
			continue
		}
		out = append(out, short(q))
	}
	return out
}

// short rounds bytes down to three digits or so: nobody reads 31574036Ki.
func short(q resource.Quantity) string {
	units := []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	text := q.String()
	if q.Format != resource.BinarySI || q.Value() < 1<<20 {
		return text
	}
	value, unit := float64(q.Value()), -1
	for value >= 1024 && unit+1 < len(units) {
		value, unit = value/1024, unit+1
	}
	if value == float64(int64(value)) {
		return fmt.Sprintf("%d%s", int64(value), units[unit])
	}
	return fmt.Sprintf("%.1f%s", float64(int64(value*10))/10, units[unit])
}
