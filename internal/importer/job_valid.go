package importer

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema"
)

// validSubset is the job as far as it loads: a copy in which another value stands where the schema refuses one, so that
// all the rest can be rendered and compared. What was refused is reported.
func (d *draft) validSubset() tree {
	job := clone(d.job).(tree)
	for round := range 50 {
		text := ordered(job)
		_, err := schema.Load([]schema.Source{{Name: "job", Data: text}})
		if err == nil {
			return job
		}
		repaired := map[string]bool{}
		for _, e := range schemaErrors(err) {
			if targetLacks(e) && !repaired[e.Path] { // it is left out of the job too
				// which podTemplate can say, and compare tells what it cannot
				if !strings.HasPrefix(e.Path, "spec.resources.") {
					d.note(d.from(e.Path), Changed, "%s: %s", e.Path, e.Msg)
					d.from(e.Path).markTranslated()
				}
				gone := undotted(e.Path)
				if e.Path == "spec.gang.scheduler" { // without which nothing else of a gang means anything
					gone = gone[:2]
				}
				remove(d.job, gone)
				remove(job, gone)
				repaired[e.Path] = true
			} else {
				d.recordInvalid(e, round > 0)
			}
			if !repaired[e.Path] { // or what is above it would go too
				repair(job, e)
			}
			repaired[e.Path] = true
		}
		if bytes.Equal(ordered(job), text) { // nothing that repair handles
			break
		}
	}
	return d.minimalJob()
}

// targetLacks says whether a job's target has no place for a setting that other targets have.
func targetLacks(e schema.Error) bool {
	return e.Rule == "target" && strings.Count(e.Path, ".") > 1
}

// recordInvalid keeps a mistake of the job, once; what only the mending of another brought about is none.
func (d *draft) recordInvalid(e schema.Error, later bool) {
	if d.recorded[e.Path+e.Msg] {
		return
	}
	again := func(first schema.Error) bool {
		return strings.HasPrefix(first.Path, e.Path) || strings.HasPrefix(e.Path, first.Path)
	}
	if later && (e.Rule != "required" && !(view{value: d.job}).walk(undotted(e.Path)).isSet() ||
		slices.ContainsFunc(d.invalid, again)) {
		return
	}
	d.recorded[e.Path+e.Msg] = true
	d.invalid = append(d.invalid, e)
	d.from(e.Path).suppressReport()
}

// minimalJob is the least job of that framework and target: something to hold the rest against.
func (d *draft) minimalJob() tree {
	job := tree{"metadata": tree{"name": "imported"}, "spec": tree{
		"workers": tree{"replicas": int64(1)},
		"command": []any{"true"},
	}}
	repair(job, schema.Error{Path: "spec.image"})
	for _, field := range []string{"framework", "target"} {
		put(job, []string{"spec", field}, d.get("spec."+field).value)
	}
	if _, err := schema.Load([]schema.Source{{Name: "job", Data: ordered(job)}}); err != nil {
		return nil
	}
	return job
}

// fallbacks are values that the schema takes where it misses one, for the comparison alone.
var fallbacks = map[string]any{
	"spec.image":               "tegen.invalid/image:v0",
	"metadata.name":            "imported",
	"spec.workers":             tree{"replicas": int64(1)},
	"spec.workers.replicas":    int64(2), // a master and a worker, where there is a master
	"spec.kubernetesVersion":   "1.36",
	"spec.gang.queue":          "queue",
	"spec.rendezvous.endpoint": "store.invalid:2379",
}

// groupImage is the image of a group, without which the group would be none.
var groupImage = lazy.Regexp(`^spec\.groups\[[0-9]+\]\.image$`)

// repair takes a refused field out of a job, or puts one in that does for the comparison.
func repair(job tree, e schema.Error) {
	if e.Rule == "order" && e.Path == "spec.workers.replicas" { // any number is right without the bounds
		remove(job, []string{"spec", "workers", "min"})
		remove(job, []string{"spec", "workers", "max"})
		return
	}
	if gap, ok := fallbacks[e.Path]; ok && !strings.HasPrefix(e.Rule, "one-of") {
		put(job, strings.Split(e.Path, "."), clone(gap))
		return
	}
	if groupImage().MatchString(e.Path) {
		put(job, undotted(e.Path), fallbacks["spec.image"])
		return
	}
	switch e.Path {
	case "", "metadata":
		put(job, []string{"metadata", "name"}, "imported")
	case "spec": // nothing to run, or no image
		put(job, []string{"spec", "command"}, []any{"true"})
		if !(view{value: job}).at("spec", "image").isSet() {
			put(job, []string{"spec", "image"}, fallbacks["spec.image"])
		}
	default:
		if steps := undotted(e.Path); e.Rule != "required" && len(steps) > 1 {
			remove(job, steps)
		}
	}
}

// remove deletes a field, or the item that holds it where it is one of a list's; the deepest that is there goes.
func remove(t tree, steps []string) {
	at := steps
	for i := len(steps) - 1; i > 1; i-- { // an item without one of its fields is mostly none; a group is still one
		if strings.HasPrefix(steps[i], "[") && (steps[i-1] != "groups" || i == len(steps)-1) {
			at = steps[:i+1]
			break
		}
	}
	for len(at) > 2 && !(view{value: t}).walk(at).isSet() {
		at = at[:len(at)-1]
	}
	parent := view{value: t}.walk(at[:len(at)-1])
	last := at[len(at)-1]
	if m := parent.mapping(); m != nil {
		delete(m, last)
		return
	}
	list, _ := parent.value.([]any)
	if i, ok := indexIn(last, len(list)); ok {
		grand := view{value: t}.walk(at[:len(at)-2]).mapping()
		if list = slices.Delete(slices.Clone(list), i, i+1); len(list) > 0 {
			grand[at[len(at)-2]] = list
		} else {
			delete(grand, at[len(at)-2])
		}
	}
}

// verdict says whose mistake it is. An error was wrong in the source: a placeholder, or two values that contradict each
// other. Anything else is refused: a rule of TrainingJobs that the source could not know.
func (d *draft) verdict(e schema.Error) Verdict {
	value := view{value: d.job}.walk(undotted(e.Path))
	_, present := d.origin[e.Path]
	switch {
	case holdsPlaceholder(value.value) && e.Rule != "unknown-field":
		return Error
	case !present || strings.Contains(e.Msg, "(the default)") || d.unrenderedPods > 0:
		return Refused
	case e.Rule == "duplicate" && (e.Path == "metadata.name" || strings.HasSuffix(e.Path, ".mountPath")):
		return Error
	case e.Rule == "order" && !slices.ContainsFunc(fieldName().FindAllString(e.Msg, -1),
		func(field string) bool { return !d.comesFromSource(field) }):
		return Error
	}
	return Refused
}

// comesFromSource says whether a field has its value from the source.
func (d *draft) comesFromSource(field string) bool {
	from, ok := d.origin[field]
	return ok && from.isSet()
}

func holdsPlaceholder(value any) bool {
	switch x := value.(type) {
	case string:
		return placeholder(x)
	case tree:
		return slices.ContainsFunc(sortedKeys(x), func(key string) bool { return holdsPlaceholder(x[key]) })
	case []any:
		return slices.ContainsFunc(x, holdsPlaceholder)
	}
	return false
}

// schemaNotes reports a mistake of the job at the place that it came from. What waits for a placeholder is reported
// with the placeholder.
func (d *draft) schemaNotes(e schema.Error) (notes []Note) {
	from, verdict := d.from(e.Path), d.verdict(e)
	value := view{value: d.job}.walk(undotted(e.Path))
	switch {
	case noNumber(from) && !placeholder(from.text()):
		d.waitingFields[from.key()] = append(d.waitingFields[from.key()], e.Path)
		return nil
	case verdict == Error && strings.HasPrefix(e.Path, "spec.podTemplate") && holdsPlaceholder(value.value):
		return nil
	case verdict == Error && holdsPlaceholder(value.value) && d.recordWaiting(e.Path, from):
		return nil
	}
	return []Note{from.note(verdict, "%s: %s", e.Path, e.Msg)}
}

// fieldName is a field of a job in a message.
var fieldName = lazy.Regexp(`spec(?:\.[a-zA-Z]+)+`)
