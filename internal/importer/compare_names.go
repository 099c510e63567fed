package importer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// podSet is what the pods of one template are called.
type podSet struct {
	prefix  string   // of their names, before the dash and the number
	service string   // behind which their hostnames resolve
	plain   bool     // the prefix is the name of the object alone, which may be any word
	labels  []string // keys of the controller's labels, with the value of the next field
	label   string
}

// podSetsOf are those of a workload of a name. Of kinds whose names follow another rule there is none.
func podSetsOf(v view, name string) (all []podSet) {
	kind, spec := v.at("kind").text(), v.at("spec")
	pod := spec.at("template", "spec")
	switch {
	case kind == "Job" && v.object != nil && v.object.label != "": // converted from a role of the training operator
		return []podSet{{prefix: name + "-worker"}}
	case kind == "Job" && strings.HasPrefix(v.at("apiVersion").text(), "batch/"):
		return []podSet{{
			name, pod.at("subdomain").text(), true,
			[]string{"job-name", "batch.kubernetes.io/job-name"},
			name,
		}}
	case kind == "StatefulSet":
		return []podSet{{name, spec.at("serviceName").text(), true, nil, ""}}
	case kind == "Pod":
		if m := numbered().FindStringSubmatch(name); m != nil {
			return []podSet{{m[1], spec.at("subdomain").text(), true, nil, ""}}
		}
	}
	set := func(role, service string, labels ...string) {
		all = append(all, podSet{name + "-" + strings.ToLower(role), service, false, labels, role})
	}
	jobs := orElse(spec.at("replicatedJobs"), pod.at("replicatedJobs"))
	for _, item := range jobs.items() {
		service := orElse(spec.at("network", "subdomain"), pod.at("network", "subdomain"))
		set(item.at("name").text(), cmp.Or(service.text(), name), "jobset.sigs.k8s.io/replicatedjob-name")
	}
	for _, item := range spec.at("tasks").items() {
		set(item.at("name").text(), name, "volcano.sh/task-spec")
	}
	for field, roles := range spec.mapping() {
		if strings.HasSuffix(strings.ToLower(field), "replicaspecs") {
			for _, role := range sortedKeys(view{value: roles}.mapping()) {
				set(role, "", "training.kubeflow.org/replica-type")
			}
		}
	}
	return all
}

// staleNames reports where jobs, and the objects beside them, name pods of the source that are called otherwise now.
func (s *stream) staleNames(drafts []*draft) (notes []Note) {
	var current []podSet
	for _, d := range drafts {
		current = append(current, d.rendered()...)
	}
	for _, o := range s.objects {
		if o.isBeside() {
			current = append(current, podSetsOf(o.view(), o.name)...)
		}
	}
	for _, d := range drafts {
		if len(d.objects) == 0 {
			continue // it does not load, and is called nothing yet
		}
		n := staleIn(d.source(), current, d.shifted, d.rendered())
		for _, other := range drafts {
			if sameNamespace(other.namespace(), d.namespace()) {
				n.search(other.job, nil, func(path []string, found, why string) {
					field := dotted(path)
					note := other.from(field).note(Changed, "%s of the job: %s", field, why)
					note.Value = strconv.Quote(found)
					notes = append(notes, note)
				})
			}
		}
		for _, o := range s.objects {
			if o.isBeside() && sameNamespace(o.namespace, d.namespace()) {
				n.searchBeside(o, func(path []string, found, why string) {
					note := view{o, path, found}.note(Changed, "%s", why)
					note.Value = strconv.Quote(found)
					notes = append(notes, note)
				})
			}
		}
	}
	return notes
}

// isBeside says whether an object stays a manifest of its own.
func (o *object) isBeside() bool { return o.draft == nil && o.replacedBy == "" }

// source are the sets of pods that a draft was read from. Those of a runtime are called like its TrainJob.
func (d *draft) source() (all []podSet) {
	for _, o := range d.workload {
		name := o.name
		if strings.HasSuffix(o.gvk.Kind, "TrainingRuntime") {
			name = d.workload[len(d.workload)-1].name
		}
		if !o.synthetic {
			all = append(all, podSetsOf(o.view(), name)...)
		}
	}
	for _, o := range d.stream.objects {
		if o.replacedBy != "" && sameNamespace(o.namespace, d.namespace()) {
			all = append(all, podSetsOf(o.view(), o.name)...)
		}
	}
	return all
}

// rendered are the sets of pods that a draft renders.
func (d *draft) rendered() (all []podSet) {
	for _, object := range d.objects {
		v := view{value: object}
		all = append(all, podSetsOf(v, v.at("metadata", "name").text())...)
	}
	return all
}

// stale are names of the source that no pod has, with the reasons.
type stale struct {
	current  []podSet
	patterns []stalePattern
	labels   map[string]map[string]bool // by key, the values
	now      string                     // what the pods are called
}

type stalePattern struct {
	podSet
	name *regexp.Regexp
	why  string
}

var aboutHosts = lazy.Regexp(`(?i)hostname`)

// staleIn are the names of the source's pods that differ from all that is rendered. The numbers of shifted ones are
// others now, which a program that puts numbers together does not know.
func staleIn(source, current []podSet, shifted map[string]int, rendered []podSet) (n stale) {
	const before, composed = `(?:^|//|[^A-Za-z0-9./_-])`, `(?:[^A-Za-z0-9]|$)`
	n.current, n.labels = current, map[string]map[string]bool{}
	var names []string
	for _, p := range rendered {
		names = append(names, p.prefix+"-*")
	}
	slices.Sort(names)
	n.now = strings.Join(slices.Compact(names), ", ")
	is := func(same func(podSet) bool) bool { return slices.ContainsFunc(current, same) }
	for _, p := range source {
		quoted := regexp.QuoteMeta(p.prefix)
		add := func(why string, patterns ...string) {
			for _, pattern := range patterns {
				n.patterns = append(n.patterns, stalePattern{p, regexp.MustCompile(pattern), why})
			}
		}
		exists := is(func(o podSet) bool { return o.prefix == p.prefix })
		if by := shifted[p.prefix+"-"]; exists && by != 0 {
			add("pod 0 of the source is pod "+strconv.Itoa(by)+" of the job. Add it to the number",
				before+`(`+quoted+`-)`+composed)
		}
		if !exists {
			const whole, object = `^(%s)$`, `(\bjobs?(?:\.batch)?/%[1]s|\bjob-name=%[1]s)(?:[^A-Za-z0-9-]|$)`
			add("pods of the source have such names. Those of the job are called "+n.now+". Change it",
				before+`(`+quoted+`-(?:[0-9]+)?)`+composed,
				fmt.Sprintf(map[bool]string{false: whole, true: object}[p.plain], quoted))
		}
		if p.service != "" && !is(func(o podSet) bool { return o.service == p.service }) {
			add("pods of the source resolve behind Service "+p.service+". Those of the job do behind "+
				serviceOf(rendered)+". Change it",
				`(?:[0-9})]|\$[A-Za-z_][A-Za-z0-9_]*)(\.`+regexp.QuoteMeta(p.service)+`)(?:[^A-Za-z0-9_-]|$)`)
		}
		if !is(func(o podSet) bool { return o.label == p.label && slices.Equal(o.labels, p.labels) }) {
			for _, key := range p.labels {
				if n.labels[key] == nil {
					n.labels[key] = map[string]bool{}
				}
				n.labels[key][p.label] = true
			}
		}
	}
	return n
}

// serviceOf is the Service behind which the pods of a job resolve.
func serviceOf(rendered []podSet) string {
	for _, p := range rendered {
		if p.service != "" {
			return p.service
		}
	}
	return "none"
}

// programFields are the fields whose texts a program reads, with all below them.
var programFields = []string{"command", "args", "script", "annotations", "data", "value"}

// search visits the strings of a value in which there are such names: in selectors, and in what a program reads.
func (n stale) search(value any, path []string, report func(path []string, found, why string)) {
	switch x := value.(type) {
	case tree:
		key, _ := x["key"].(string)
		for _, word := range (view{value: x}).at("values").texts() {
			if n.labels[key][word] {
				report(path, word, n.labelReason(key))
			}
		}
		for _, name := range sortedKeys(x) {
			here := append(path[:len(path):len(path)], name)
			if text, _ := x[name].(string); n.labels[name][text] && path[len(path)-1] != "labels" {
				report(here, text, n.labelReason(name))
			}
			n.search(x[name], here, report)
		}
	case []any:
		for i, item := range x {
			n.search(item, append(path[:len(path):len(path)], "["+strconv.Itoa(i)+"]"), report)
		}
	case string:
		if label := labelPath().FindStringSubmatch(x); label != nil && n.labels[label[1]] != nil {
			report(path, label[1], n.labelReason(label[1]))
		}
		if !slices.ContainsFunc(path, func(s string) bool { return slices.Contains(programFields, s) }) {
			return
		}
		for _, p := range n.patterns {
			if found := n.first(p, x); found != "" {
				report(path, found, p.why)
			}
		}
	}
}

// first is the first name in a text that a pattern finds and that is no name of today: group scheduler may be called
// scheduler-0, and its pods scheduler-0-0.
func (n stale) first(p stalePattern, text string) string {
	if p.plain && p.service == "" && !aboutHosts().MatchString(text) {
		return ""
	}
	for _, m := range p.name.FindAllStringSubmatchIndex(text, -1) {
		if !slices.ContainsFunc(n.current, func(c podSet) bool {
			return len(c.prefix) > len(p.prefix) && strings.HasPrefix(text[m[2]:], c.prefix+"-")
		}) {
			return text[m[2]:m[3]]
		}
	}
	return ""
}

var labelPath = lazy.Regexp(`^metadata\.(?:labels|annotations)\['([^']+)'\]$`)

func (n stale) labelReason(key string) string {
	return "label " + key + " has another value on the pods of the job, which are called " + n.now + ". Change it"
}

// searchBeside is search for an object beside the job: for labels, and in the texts of a ConfigMap.
func (n stale) searchBeside(o *object, report func(path []string, found, why string)) {
	if o.is("", "ConfigMap") {
		n.search(o.Object["data"], []string{"data"}, report)
		return
	}
	stale{labels: n.labels, now: n.now}.search(o.Object["spec"], []string{"spec"}, report)
}
