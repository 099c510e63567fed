package schema

import (
	"strings"

	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/part"
)

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
