package intake

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
)

// settle finishes a draft: what the schema has no field for goes into podTemplate as far as that can carry it, what is
// the default anyway is left out, and what is missing in the end becomes a note.
func (d *draft) settle() {
	d.schedulerOfGang()
	sound := d.sound()
	d.render(sound)
	refused := d.patch(sound)
	d.render(sound)
	d.compare(refused)
	d.shorten(sound)
	d.yaml = manifest.AppendJSON(nil, ordered(d.job))
}

// schedulerOfGang leaves out a scheduler that the gang names anyway.
func (d *draft) schedulerOfGang() {
	gang := &schema.Gang{Scheduler: d.get("spec.gang.scheduler").text()}
	if v := d.get("spec.placement"); v.given() && v.at("scheduler").text() == gang.SchedulerName() {
		delete(v.mapping(), "scheduler")
	}
}

// sound is the job as far as it loads: a copy without what the schema refuses, so that the rest can be compared.
func (d *draft) sound() tree {
	job := clone(d.job).(tree)
	for range 50 { // each round takes at least one field away
		_, err := schema.Load([]schema.Source{{Name: "job", Data: ordered(job)}})
		if err == nil {
			return job
		}
		done := map[string]bool{}
		for _, e := range mistakes(err) {
			if done[e.Path] {
				continue
			}
			done[e.Path] = true
			d.from(e.Path).untold() // told as a flaw, where the job is written
			mend(job, e)
		}
	}
	return nil
}

// mend takes a refused field out of a job, or puts one in that does for the comparison.
func mend(job tree, e schema.Error) {
	steps := undotted(e.Path)
	switch e.Path {
	case "spec.image", "spec", "":
		put(job, []string{"spec", "image"}, "tegen.invalid/image:v0")
	case "metadata", "metadata.name":
		put(job, []string{"metadata", "name"}, "imported")
	case "spec.workers", "spec.workers.replicas":
		put(job, []string{"spec", "workers"}, tree{"replicas": int64(1)})
	}
	if e.Path == "spec" {
		put(job, []string{"spec", "launcher"}, schema.LauncherEntrypoint)
	}
	if e.Rule != "required" && len(steps) > 1 && e.Path != "spec.image" && e.Path != "metadata.name" && e.Path != "spec.workers" {
		remove(job, steps)
	}
}

// put sets a field of a tree.
func put(t tree, steps []string, value any) {
	for _, s := range steps[:len(steps)-1] {
		below, ok := t[s].(tree)
		if !ok {
			below = tree{}
			t[s] = below
		}
		t = below
	}
	t[steps[len(steps)-1]] = value
}

// remove deletes a field, or the item that holds it where it is one of a list's; the deepest that is there goes.
func remove(t tree, steps []string) {
	at := steps
	for i := len(steps) - 1; i > 1; i-- { // an item without one of its fields is mostly none
		if strings.HasPrefix(steps[i], "[") {
			at = steps[:i+1]
			break
		}
	}
	for len(at) > 2 && !(view{value: t}).walk(at).given() {
		at = at[:len(at)-1]
	}
	parent := view{value: t}.walk(at[:len(at)-1])
	last := at[len(at)-1]
	if m := parent.mapping(); m != nil {
		delete(m, last)
		return
	}
	list, ok := parent.value.([]any)
	i, err := strconv.Atoi(strings.Trim(last, "[]"))
	if ok && err == nil && i < len(list) {
		grand := view{value: t}.walk(at[:len(at)-2]).mapping()
		if list = slices.Delete(slices.Clone(list), i, i+1); len(list) > 0 {
			grand[at[len(at)-2]] = list
		} else {
			delete(grand, at[len(at)-2])
		}
	}
}

var pathStep = regexp.MustCompile(`\["(?:[^"\\]|\\.)*"\]|\[[0-9]+\]|[^.\[]+`)

// undotted is the path that dotted prints.
func undotted(path string) []string {
	steps := pathStep.FindAllString(path, -1)
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
	for _, concern := range generated(job) {
		for _, obj := range concern.Objects {
			text, err := manifest.Append(nil, obj) // whose pruning makes the object what people see
			var object tree
			if err == nil && yaml.Unmarshal(text, &object, preserveInts) == nil {
				d.objects = append(d.objects, object)
			}
		}
	}
}

// generated is what a job becomes; nothing where it does not load.
func generated(job tree) []generators.Concern {
	jobs, err := schema.Load([]schema.Source{{Name: "job", Data: ordered(job)}})
	if err != nil || len(jobs) != 1 {
		return nil
	}
	return generators.Generate(jobs[0])
}

// twins are the rendered objects of the workload's kinds, in the order of the workload.
func (d *draft) twins() []tree {
	out := make([]tree, len(d.workload))
	used := map[int]bool{}
	for i, o := range d.workload {
		for j, r := range d.objects {
			v := view{value: r}
			same := v.at("kind").text() == strings.TrimPrefix(o.gvk.Kind, "Cluster") && strings.HasPrefix(v.at("apiVersion").text(), o.gvk.Group) && !used[j]
			if same && !slices.Contains([]string{"prefetch", "keygen"}, v.at("metadata", "labels", "app.kubernetes.io/component").text()) {
				out[i], used[j] = r, true
				break
			}
		}
	}
	return out
}

// compare holds the workload against what is rendered.
func (d *draft) compare(refused map[string]string) {
	common := map[string]bool{} // gaps of the first object
	given := map[string]bool{}  // what the first object is given beyond its own
	for i, twin := range d.twins() {
		o := d.workload[i]
		if twin == nil {
			d.notes = append(d.notes, o.note(NotKept, "nothing could be rendered to compare it with: mend the job and render it"))
			continue
		}
		for _, g := range gaps(o, twin) {
			at, why := dotted(g.steps()), g.reason()
			switch {
			case i == 0:
				common[at] = true
			case !common[at] && o.gvk.Kind == "Pod":
				why = "the workers of a job are alike, and others have it not"
			}
			if r := refused[at]; r != "" && g.want == nil {
				why = r
			}
			d.notes = append(d.notes, g.note(o, why))
		}
		if i > 0 && o.gvk.Kind != "Pod" {
			continue
		}
		extra := slices.DeleteFunc(added(o, twin), func(g gap) bool {
			return given[g.String()] || i > 0 && g.want != nil // which is told as not kept
		})
		if text := summary(o, extra); text != "" {
			d.notes = append(d.notes, o.note(Adds, "%s", text))
		}
		for _, g := range extra {
			given[g.String()] = true
		}
	}
}

// quiet are variables that tegen sets for the launcher, and what says the same as another field.
var quiet = regexp.MustCompile(`^(PET_.*|TEGEN_.*|TORCH_.*|HOME|PYTHONUNBUFFERED|RDZV_ENDPOINT|JOB_ID|MIN_SIZE|MAX_SIZE|SIZE)$`)

// summary lists in one line what a job renders beyond what was there, less what changes no behaviour.
func summary(o *object, all []gap) string {
	var out []string
	restricted := ""
	for _, g := range all {
		path := g.steps()
		last := g.path[len(g.path)-1]
		switch {
		case slices.Contains(path, "labels") && (reserved(last.name) || isGangKey(last.name)), slices.Contains(path, "requests"), strings.HasPrefix(last.name, "tegen.dev/"), last.name == "namespace":
		case quiet.MatchString(last.value), o.knows(path):
		case slices.Contains(path, "securityContext"):
			if restricted == "" || last.name == "runAsUser" {
				restricted = "a restricted securityContext"
			}
			if last.name == "runAsUser" {
				restricted += ", as user " + gist(g.have)
			}
		default:
			text := strings.TrimSpace(shortPath(g.path) + " " + gist(g.have))
			if last.key == "mountPath" {
				text = last.value
			}
			if !slices.Contains(out, text) { // several roles are given the same
				out = append(out, text)
			}
		}
	}
	if restricted != "" {
		out = append(out, restricted)
	}
	return strings.Join(out, ", ")
}

// shortPath is a path without the way to a pod's container.
func shortPath(path []step) string {
	var out []string
	for i, s := range path {
		switch {
		case s.name == "containers" || s.name == "template" && i+1 < len(path):
			out = nil
		case i > 0 && path[i-1].name == "containers", s.name == "spec" && out == nil, s.name == "volumeMounts":
		case s.value != "":
			out = append(out, s.value)
		default:
			out = append(out, s.name)
		}
	}
	return strings.Join(out, ".")
}

// shorten leaves out of the job what does not change what its sound copy renders.
func (d *draft) shorten(sound tree) {
	want := generated(sound)
	if want == nil {
		return
	}
	same := func() bool { return equality.Semantic.DeepEqual(want, generated(sound)) }
	if w := d.get("spec.workers"); w.at("min").text() != w.at("max").text() { // an elastic job is known by these two
		drop(d.get("spec.workers").mapping(), view{value: sound}.at("spec", "workers").mapping(), "replicas", same)
	}
	shortenTree(d.job, sound, same)
}

func shortenTree(job, sound tree, same func() bool) {
	for _, key := range sortedKeys(sound) {
		if key == "podTemplate" { // holds nothing but what is needed
			continue
		}
		if drop(job, sound, key, same) {
			continue
		}
		switch x := sound[key].(type) {
		case tree:
			if below, ok := job[key].(tree); ok {
				shortenTree(below, x, same)
			}
		case []any:
			for i, item := range listOf(job[key]) {
				below, ok := item.(tree)
				if ok && len(x) == len(listOf(job[key])) && key != "env" {
					shortenTree(below, x[i].(tree), same)
				}
			}
		}
	}
}

// drop takes a field out of a job and its sound copy, where they agree about it and it changes nothing.
func drop(job, sound tree, key string, same func() bool) bool {
	value, ok := sound[key]
	if !ok || !reflect.DeepEqual(value, job[key]) {
		return false
	}
	delete(sound, key)
	if same() {
		delete(job, key)
		return true
	}
	sound[key] = value
	return false
}

// preserveInts has whole numbers decoded as such.
func preserveInts(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}
