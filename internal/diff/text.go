package diff

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// longest is how many characters of a value are printed.
const longest = 72

// group are changes of objects that have class, reason and fields in common.
type group struct {
	Class
	objects     []string
	lines       []string
	why, remedy string
}

// groups are the changes of a job, in their order.
func (j *Job) groups() (all []group) {
	for i, c := range j.Changes {
		last := len(all) - 1
		if i == 0 || j.Changes[i-1].Object != c.Object || all[last].Class != c.Class || all[last].why != c.Why {
			all = append(all, group{Class: c.Class, objects: []string{c.Object.String()}, why: c.Why, remedy: c.Remedy})
			last++
		}
		if c.Path != "" {
			all[last].lines = append(all[last].lines, c.Path+": "+c.values(longest))
		}
	}
	for i := 0; i < len(all); i++ {
		for k := len(all) - 1; k > i; k-- {
			same := all[i].Class == all[k].Class && all[i].why == all[k].why && all[i].remedy == all[k].remedy
			if same && slices.Equal(all[i].lines, all[k].lines) {
				all[i].objects = slices.Insert(all[i].objects, 1, all[k].objects...)
				all = slices.Delete(all, k, k+1)
			}
		}
	}
	return all
}

// values are the old and the new value in a line.
func (c *Change) values(longest int) string {
	if c.Hidden {
		return "changed (not shown)"
	}
	return short(c.Old, longest) + " -> " + short(c.New, longest)
}

func short(v any, longest int) string {
	if v == nil {
		return "(none)"
	}
	line := []rune(canonical(v))
	if len(line) > longest {
		return string(line[:longest]) + "…"
	}
	return string(line)
}

func (j *Job) title() string {
	switch {
	case j.Name == "":
		return "of no job"
	case j.Namespace == "":
		return j.Name
	}
	return j.Name + " in " + j.Namespace
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for i := range r.Jobs {
		j := &r.Jobs[i]
		fmt.Fprintf(&b, "%s: %s\n", j.title(), j.Worst.Meaning())
		j.writeText(&b)
		b.WriteByte('\n')
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	b.WriteString(r.Summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (j *Job) writeText(b *strings.Builder) {
	if line := j.Rendered.String(); line != "" {
		fmt.Fprintf(b, "  %s\n", line)
	}
	for _, g := range j.groups() {
		fmt.Fprintf(b, "  %s: %s\n", g.Class, strings.Join(g.objects, ", "))
		for _, line := range g.lines {
			fmt.Fprintf(b, "    %s\n", line)
		}
		if g.why != "" {
			fmt.Fprintf(b, "    why: %s\n", g.why)
		}
		if g.remedy != "" {
			fmt.Fprintf(b, "    do: %s\n", g.remedy)
		}
	}
}

// Summary counts the objects that change in a line.
func (r *Report) Summary() string {
	objects := map[Ref]bool{}
	for _, j := range r.Jobs {
		for _, c := range j.Changes {
			objects[c.Object] = true
		}
	}
	if len(objects) == 0 {
		return "nothing changes"
	}
	var words []string
	for _, c := range Classes {
		if n := r.Counts[c]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, c.Meaning()))
		}
	}
	n := count(len(objects), "object", "objects")
	if len(words) == 1 {
		_, words[0], _ = strings.Cut(words[0], " ")
	}
	return n + " on Kubernetes " + r.KubernetesVersion + ": " + strings.Join(words, ", ")
}
