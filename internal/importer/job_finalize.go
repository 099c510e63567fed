package importer

import (
	"encoding/json"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// finalize finishes a draft: what the schema has no field for goes into podTemplate as far as that can carry it, what
// is the default anyway is left out, and what is missing in the end becomes a note.
func (d *draft) finalize() {
	d.dropGangScheduler()
	d.splitMetadata()
	valid := d.validSubset()
	d.render(valid)
	refused := d.patch(valid)
	d.render(valid)
	for _, e := range d.invalid {
		d.notes = append(d.notes, d.schemaNotes(e)...)
	}
	d.reportPlaceholders()
	d.reportBlanks()
	d.fetchNotes()
	d.compare(refused)
	d.shorten(valid)
	d.yaml = manifest.AppendJSON(nil, ordered(d.job))
}

// dropGangScheduler leaves out a scheduler that the gang names anyway.
func (d *draft) dropGangScheduler() {
	gang := &job.Gang{Scheduler: d.get("spec.gang.scheduler").text()}
	if v := d.get("spec.placement"); v.isSet() && v.at("scheduler").text() == gang.SchedulerName() {
		delete(v.mapping(), "scheduler")
	}
}

// put sets a field of a tree. A step with an index leads to an item that is there.
func put(t tree, steps []string, value any) {
	for i, s := range steps[:len(steps)-1] {
		if list, ok := t[s].([]any); ok {
			if n, ok := indexIn(steps[i+1], len(list)); ok {
				t, _ = list[n].(tree)
				continue
			}
		}
		if strings.HasPrefix(s, "[") {
			continue // which the step before it took
		}
		below, ok := t[s].(tree)
		if !ok {
			below = tree{}
			t[s] = below
		}
		t = below
	}
	t[steps[len(steps)-1]] = value
}

var pathStep = lazy.Regexp(`\["(?:[^"\\]|\\.)*"\]|\[[0-9]+\]|[^.\[]+`)

// undotted is the path that dotted prints.
func undotted(path string) []string {
	steps := pathStep().FindAllString(path, -1)
	for i, s := range steps {
		if key, err := strconv.Unquote(strings.Trim(s, "[]")); err == nil && strings.HasPrefix(s, `["`) {
			steps[i] = key
		}
	}
	return steps
}

// render sets the objects that a job renders; none where it does not load.
func (d *draft) render(job tree) {
	d.objects = nil
	j := loaded(ordered(job))
	if j == nil {
		return
	}
	for _, concern := range generators.Generate(j) {
		for _, obj := range concern.Objects {
			text, err := manifest.Append(nil, obj) // whose pruning makes the object what people see
			var object tree
			if err == nil && yaml.Unmarshal(text, &object, preserveInts) == nil {
				d.objects = append(d.objects, object)
			}
		}
	}
}

// loaded is the one job of a text, nil where it does not load.
func loaded(text []byte) *job.Job {
	jobs, err := schema.Load([]schema.Source{{Name: "job", Data: text}})
	if err != nil || len(jobs) != 1 {
		return nil
	}
	return jobs[0].WithoutInput()
}

// preserveInts has integers decoded as such.
func preserveInts(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}
