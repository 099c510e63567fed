package meaning

import (
	"regexp"
	"slices"
	"strings"
)

// taskWords are how a program knows a task of Volcano's Job: the file of its hosts, and the variables with those and
// with their number (volcano v1.15.1, pkg/controllers/job/plugins/svc). They are made of the task's name and hold what
// is so of the task, whatever it is called.
func taskWords(task string) []hostNames {
	key := strings.ReplaceAll(task, "-", "_")
	upper := strings.ToUpper(key)
	var out []hostNames
	for _, words := range [][2]string{
		{"/etc/volcano/" + key, ".host"}, {"VC_" + upper, "_HOSTS"}, {"VC_" + upper, "_NUM"},
	} {
		out = append(out, hostNames{
			pattern: regexp.MustCompile(regexp.QuoteMeta(words[0]+words[1]) + `\b`), prefix: words[1],
		})
	}
	return out
}

// pluginRoles are the arguments by which plugins of Volcano's controller know tasks and their containers, with what
// they are where nobody says (pkg/controllers/job/plugins/distributed-framework).
var pluginRoles = map[string]map[string]string{
	"mpi":        {"master": "master", "worker": "worker"},
	"pytorch":    {"master": "master", "worker": "worker"},
	"hcclrank":   {"master": "master", "worker": "worker"},
	"tensorflow": {"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator"},
	"ray": {
		"head": "head", "worker": "worker", "headContainer": "head", "workerContainer": "worker",
	},
}

// pluginFacts are the plugins of a job with their arguments. Its webhook adds svc and ssh where another needs them
// (patchDefaultPlugins in pkg/webhooks/admission/jobs/mutate).
func (j *job) pluginFacts(plugins node) {
	for _, name := range plugins.keys() {
		at := plugins.at(name)
		j.facts.set("plugin/"+name, true, at)
		roles := map[string]string{}
		for flag, task := range pluginRoles[name] {
			roles[flag] = task
		}
		for _, word := range at.texts() {
			flag, value, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if roles[flag] != "" {
				roles[flag] = value
				continue
			}
			j.facts.set("plugin/"+name+" "+word, true, at)
		}
		for flag, task := range roles {
			j.roleFact(name, flag, task, at)
		}
		if slices.Contains([]string{"mpi", "pytorch", "tensorflow", "ray"}, name) {
			j.facts.set("plugin/svc", true, at)
		}
		if name == "mpi" {
			j.facts.set("plugin/ssh", true, at)
		}
	}
}

// roleFact says which task a plugin takes for what. One that the job has not is none; a container is one of a task.
func (j *job) roleFact(plugin, flag, name string, at node) {
	task, ofContainer := strings.CutSuffix(flag, "Container")
	for _, g := range j.groups {
		switch {
		case ofContainer && slices.ContainsFunc(g.template.at("spec", "containers").items(), func(c node) bool {
			return c.at("name").text() == name
		}):
			j.facts.set("plugin/"+plugin+"'s container of "+task, mainOf(g, g) == name, at)
		case !ofContainer && g.name == name:
			j.facts.set("plugin/"+plugin+"'s "+flag, refer(name), at)
		}
	}
}
