package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// counterparts are the rendered objects of the workload's kinds, in the order of the workload.
func (d *draft) counterparts() []tree {
	out := make([]tree, len(d.workload))
	used := map[int]bool{}
	for i, o := range d.workload {
		for j, r := range d.objects {
			v := view{value: r}
			same := v.at("kind").text() == strings.TrimPrefix(o.gvk.Kind, "Cluster") &&
				strings.HasPrefix(v.at("apiVersion").text(), o.gvk.Group) && !used[j]
			if same && !slices.Contains([]string{"prefetch", "keygen"},
				v.at("metadata", "labels", names.LabelComponent).text()) {
				out[i], used[j] = r, true
				break
			}
		}
	}
	return out
}

// compare holds the workload against what is rendered.
func (d *draft) compare(refused map[string]string) {
	common := map[string]bool{}  // gaps of the first object
	present := map[string]bool{} // what the first object is given beyond its own
	counterparts := d.counterparts()
	for i, counterpart := range counterparts {
		o := d.workload[i]
		if counterpart == nil {
			if o.synthetic {
				continue
			}
			d.notes = append(d.notes,
				o.note(Dropped, "nothing could be rendered to compare it with: correct the job and render it"))
			continue
		}
		for _, g := range gaps(o, counterpart) {
			if o.synthetic {
				break // the input does not hold it
			}
			at, why := dotted(g.steps()), g.reason()
			switch {
			case i == 0:
				common[at] = true
			case !common[at] && o.gvk.Kind == "Pod":
				why = "the workers of a job are alike, and the other workers lack it"
			}
			if r := refused[at]; r != "" && g.want == nil {
				why = r
			}
			note := g.note(o, why)
			if namesItem(g.path) && g.want != nil {
				note.Verdict, note.Why = Translated, fmt.Sprintf("these pods are those of group %v", g.want)
			}
			if namesContainer(g.path) && g.want != nil {
				note.Verdict, note.Why = Translated, fmt.Sprintf("what runs is the same in a container called %v",
					g.want)
			}
			d.notes = append(d.notes, note)
		}
		d.translatedNotes(o, counterpart)
		extra := slices.DeleteFunc(added(o, counterpart), func(g gap) bool {
			return present[g.String()] || i > 0 && g.want != nil // reported as dropped
		})
		if text := d.addedText(o, extra); text != "" {
			d.notes = append(d.notes, o.note(Added, "%s", text))
		}
		for _, g := range extra {
			present[g.String()] = true
		}
	}
	if text := d.addedObjects(counterparts); text != "" {
		d.notes = append(d.notes, d.workload[0].note(Added, "%s", text))
	}
}

// translatedNotes reports each field whose meaning is kept in another form, where no line tells of it yet.
func (d *draft) translatedNotes(o *object, counterpart tree) {
	if o.synthetic {
		return
	}
	have, want := pair(o.Object, counterpart)
	for _, g := range diff(have, want, nil) {
		if !o.isTranslated(g.steps()) || d.isReported(o, g.steps()) {
			continue
		}
		why := "its meaning is kept in another form"
		silent := false
		for n := range g.path {
			if reason, ok := d.reasons[view{object: o, path: g.steps()[:n+1]}.key()]; ok {
				why, silent = reason, reason == ""
			}
		}
		if silent {
			continue
		}
		for _, field := range sortedKeys(d.origin) {
			from := d.origin[field]
			if from.object == o && slices.Equal(from.path, g.steps()) && d.get(field).isSet() {
				why = field + " of the job has its meaning"
				break
			}
		}
		note := g.note(o, why)
		note.Verdict = Translated
		d.notes = append(d.notes, note)
	}
}

// isReported says whether a line tells of a place of the input, or of one above or below it.
func (d *draft) isReported(o *object, steps []string) bool {
	at := dotted(o.written(steps))
	return slices.ContainsFunc(slices.Concat(d.stream.notes, d.notes), func(n Note) bool {
		return n.Object == o.String() && n.Field != "" &&
			(strings.HasPrefix(at, n.Field) || strings.HasPrefix(n.Field, at))
	})
}
