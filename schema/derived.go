package schema

import (
	"slices"
	"strings"
	"sync"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/part"
)

// derived are the parts of a job whose defaults finalize.go makes of other parts.
var derived = map[string]string{
	"rendezvous.store": "rendezvous.backend rendezvous.companion images.rendezvous workers.max " +
		"workers.master launcher",
	"rendezvous.proxy": "framework target launcher workers.max workers.master rendezvous.backend rendezvous.store " +
		"rendezvous.companion",
	"rendezvous.keepAliveAttempts": "rendezvous.backend launcher",
	"workers.processes":            "resources.gpu framework workers.master launcher",
	"hashedNames":                  "gitops",
	"failure.ignoreDisruptions":    "failure.inPlace",
	"network.fabric":               "resources.machine resources.gpu workers.max",
	"resources.devices":            "resources.machine resources.gpu network.fabric workers.max",
	"resources.gpuResource":        "resources.machine",
	"resources.cpu":                "resources.machine resources.gpu",
	"resources.memory":             "resources.machine resources.gpu",
}

// derivedParts adds those that defaults.cue says to equal another.
var derivedParts = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for part, sources := range derived {
		all[part] = strings.Fields(sources)
	}
	for _, section := range definition.Job().Field("spec").Schema.Fields {
		for _, f := range section.Schema.Fields {
			if len(f.Same) > 0 && f.Same[0] == "spec" {
				all[section.Name+"."+f.Name] = []string{strings.Join(f.Same[1:], ".")}
			}
		}
	}
	return all
})

// derive adds the parts that nobody has set and whose default comes from an invalid part: it is not known either.
func derive(p part.Set, root *structural.Node) {
	for more := true; more && len(p) > 0; {
		more = false
		for part, sources := range derivedParts() {
			if !p.Touch(part) && !root.IsSet("spec."+part) && slices.ContainsFunc(sources, p.Touch) {
				p[part], more = true, true
			}
		}
	}
}

// reaches are the parts of jobs that a section of an environment changes.
var reaches = map[string]string{
	"namespace":   "metadata",
	"env":         "env",
	"accelerator": "resources placement",
	"machines":    "resources placement network workers",
	"caps":        "resources roles sidecars storage",
	"onDelete":    "storage",
	"storage":     "storage rendezvous",
	"anywhere":    "placement gang metrics roles network.fabric resources.devices",
	"topology":    "gang",
}

// reach adds what a mistake in an environment makes of jobs.
func reach(p part.Set, path string) {
	names := strings.FieldsFunc(path, func(c rune) bool { return strings.ContainsRune(".[]", c) })
	if len(names) < 2 || names[0] != "spec" {
		return
	}
	changed := strings.Fields(reaches[names[1]])
	if says := names[1] == "defaults" || names[1] == "overrides"; says && len(names) > 2 {
		changed = names[2:3]
	} else if says {
		changed = definition.Job().Field("spec").Schema.Names()
	}
	for _, part := range changed {
		p[part] = true
	}
}
