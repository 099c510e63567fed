package importer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
)

// finalize finishes a draft: what the schema has no field for goes into podTemplate as far as that can carry it, what is
// the default anyway is left out, and what is missing in the end becomes a note.
func (d *draft) finalize() {
	d.dropGangScheduler()
	valid := d.validSubset()
	d.render(valid)
	refused := d.patch(valid)
	d.render(valid)
	for _, e := range d.invalid {
		d.notes = append(d.notes, d.schemaNotes(e)...)
	}
	d.reportPlaceholders()
	d.reportBlanks()
	d.compare(refused)
	d.shorten(valid)
	d.yaml = manifest.AppendJSON(nil, ordered(d.job))
}

// dropGangScheduler leaves out a scheduler that the gang names anyway.
func (d *draft) dropGangScheduler() {
	gang := &schema.Gang{Scheduler: d.get("spec.gang.scheduler").text()}
	if v := d.get("spec.placement"); v.isSet() && v.at("scheduler").text() == gang.SchedulerName() {
		delete(v.mapping(), "scheduler")
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
func loaded(text []byte) *schema.Job {
	jobs, err := schema.Load([]schema.Source{{Name: "job", Data: text}})
	if err != nil || len(jobs) != 1 {
		return nil
	}
	return jobs[0]
}

// counterparts are the rendered objects of the workload's kinds, in the order of the workload.
func (d *draft) counterparts() []tree {
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
	common := map[string]bool{}  // gaps of the first object
	present := map[string]bool{} // what the first object is given beyond its own
	for i, counterpart := range d.counterparts() {
		o := d.workload[i]
		if o.synthetic {
			continue
		}
		if counterpart == nil {
			d.notes = append(d.notes, o.note(Dropped, "nothing could be rendered to compare it with: correct the job and render it"))
			continue
		}
		for _, g := range gaps(o, counterpart) {
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
			if namesContainer(g.path) && g.want != nil {
				note.Verdict, note.Why = Translated, fmt.Sprintf("what runs is the same in a container called %v", g.want)
			}
			d.notes = append(d.notes, note)
		}
		if i > 0 && o.gvk.Kind != "Pod" {
			continue
		}
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
}

// internalVariables are variables that tegen sets for its own use, and what says the same as another field.
var internalVariables = regexp.MustCompile(`^(OMPI_MCA_orte_keep_fqdn_hostnames|PRTE_MCA_prte_keep_fqdn_hostnames|TEGEN_.*|TORCH_.*|PYTHONUNBUFFERED|RDZV_ENDPOINT|JOB_ID|MIN_SIZE|MAX_SIZE|SIZE)$`)

// addedText lists in one line what a job renders beyond what was there, less what changes no behaviour.
func (d *draft) addedText(o *object, all []gap) string {
	var out []string
	restricted, torchrun := "", []string(nil)
	for _, g := range all {
		path := g.steps()
		last := g.path[len(g.path)-1]
		switch {
		case slices.Contains(path, "labels") && (reserved(last.name) || isGangKey(last.name)), slices.Contains(path, "requests"), strings.HasPrefix(last.name, "tegen.dev/"), last.name == "namespace":
		case strings.HasPrefix(last.value, "PET_"):
			if !d.torchSet[last.value] {
				torchrun = append(torchrun, torchVariable(g))
			}
		case internalVariables.MatchString(last.value), o.isTranslated(path), g.have == fallbacks["spec.image"]:
		case last.name == "readOnlyRootFilesystem" && g.have == false: // as it is where nobody says
		case slices.Contains(path, "securityContext"):
			if restricted == "" || last.name == "runAsUser" {
				restricted = "a restricted securityContext"
			}
			if last.name == "runAsUser" {
				restricted += ", as user " + summary(g.have)
			}
		default:
			text := strings.TrimSpace(shortPath(g.path) + " " + summary(g.have))
			if last.key == "mountPath" {
				text = last.value
			}
			if !slices.Contains(out, text) { // several roles are given the same
				out = append(out, text)
			}
		}
	}
	if torchrun = slices.DeleteFunc(torchrun, func(text string) bool { return text == "" }); len(torchrun) > 0 {
		out = append(out, "for torchrun "+strings.Join(torchrun, " "))
	}
	if restricted != "" {
		out = append(out, restricted)
	}
	return strings.Join(out, ", ")
}

// torchVariable is a variable that torchrun reads, with its value, "" where that is torchrun's own. The name of the run
// and the tuning of the rendezvous say nothing where no rendezvous was.
func torchVariable(g gap) string {
	name, value := g.path[len(g.path)-1].value, view{value: g.have}.at("value").text()
	switch name + "=" + value {
	case "PET_MAX_RESTARTS=0", "PET_NPROC_PER_NODE=1", "PET_NNODES=1:1":
		return ""
	}
	if name == "PET_RDZV_ID" || name == "PET_RDZV_CONF" {
		return ""
	}
	return name + "=" + value
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

// preserveInts has whole numbers decoded as such.
func preserveInts(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}
