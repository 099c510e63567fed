package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/definition"
)

// newChecker is a checker whose hints know the whole of a job.
func newChecker(kind string) *structural.Checker {
	return &structural.Checker{Unknown: hints(kind), Word: meantWord}
}

// hints end the messages about unknown fields of a document of a kind with what could have been meant.
func hints(kind string) func(path, name string, known []string) string {
	return func(path, name string, known []string) string {
		at, here := inJob(path, kind)
		at = itemNumber().ReplaceAllString(at, "")
		if other := standsAt[at]; other != "" {
			return "; it stands at " + here.Replace(other)
		}
		if kind == names.KindTrainingJob && ofEnvironments(path) {
			return "; an Environment has it ('" + explains(names.KindEnvironment, path) + "')"
		}
		if field := foreign(at, name); field != "" {
			return place(field, known, parentOf(at, name), here)
		}
		if hint := spelling.Suggest(name, known); hint != "" {
			return hint
		}
		if other := elsewhere(name); other != "" {
			return "; it stands at " + here.Replace(other)
		}
		return "; " + listed(known, explains(kind, parentOf(path, name)))
	}
}

// ofEnvironments says whether a field of no job is one of an Environment.
func ofEnvironments(path string) bool {
	_, _, err := definition.Environment().Explain(path, func(string, string, []string) string { return "" })
	return err == nil
}

// place names a field: by its name alone where it is a neighbour.
func place(field string, known []string, parent string, here *strings.Replacer) string {
	if name, ok := strings.CutPrefix(field, parent+"."); ok && slices.Contains(known, name) {
		return fmt.Sprintf("; did you mean %q?", name)
	}
	return "; it stands at " + here.Replace(field)
}

// listed are all fields of an object, but for those of a whole job, and the command that describes them.
func listed(known []string, command string) string {
	if len(known) > 24 {
		return "'" + command + "' lists the fields"
	}
	return fmt.Sprintf("known here: %s ('%s' describes them)", strings.Join(known, ", "), command)
}

// parentOf is the place that a field stands at.
func parentOf(path, name string) string {
	path = strings.TrimSuffix(strings.TrimSuffix(path, "["+strconv.Quote(name)+"]"), "."+name)
	if path == name {
		return ""
	}
	return path
}

// explains is the command that describes the fields of a place.
func explains(kind, at string) string {
	command := "tegen explain"
	if kind == names.KindEnvironment {
		command += " --environment"
	}
	return strings.TrimSpace(command + " " + itemNumber().ReplaceAllString(at, ""))
}

var itemNumber = lazy.Regexp(`\[[0-9]+\]`)

// inJob is where a job has what an environment says to all jobs, and the words for that as the document has it.
func inJob(path, kind string) (string, *strings.Replacer) {
	part := "spec.defaults"
	for _, whole := range []string{"spec.defaults", "spec.overrides"} {
		if field, ok := strings.CutPrefix(path, whole+"."); ok {
			part, path = whole, "spec."+field
		}
	}
	if kind != names.KindEnvironment {
		return path, strings.NewReplacer()
	}
	return path, strings.NewReplacer("spec.", part+".", "spec itself", part+" itself")
}

// standsAt is where a job says what somebody may look for at another place. The first field of that name would mislead.
var standsAt = map[string]string{
	"spec.roles.worker":   "spec itself: image, workingDir, resources, placement, podTemplate",
	"spec.servers.cpu":    "spec.roles.server.resources, and the scheduler's at spec.roles.scheduler.resources",
	"spec.servers.memory": "spec.roles.server.resources, and the scheduler's at spec.roles.scheduler.resources",
	"spec.servers.image":  "spec.roles.server, and the scheduler's at spec.roles.scheduler",
	"spec.groups.resources.machine": "spec.resources.machine, for the workers alone: write gpu, cpu and memory, and " +
		"nodeSelector and tolerations of the group",
	"spec.groups.resources.devices": "spec.resources.devices, for the workers alone: write limits of the group's " +
		"container into its podTemplate",
	"spec.roles.etcd.image": "spec.images.etcd, or spec.images.etcdV2 for backends etcd and etcd-v2",

	"spec.rendezvous.etcd.cpu":         "spec.roles.etcd.resources",
	"spec.rendezvous.etcd.memory":      "spec.roles.etcd.resources",
	"spec.rendezvous.companion.cpu":    "spec.roles.companion.resources",
	"spec.rendezvous.companion.memory": "spec.roles.companion.resources",
	"spec.roles.companion.image":       "spec.images.rendezvous",
	"spec.roles.helper.image":          "spec.images",
}

// elsewhere returns the path of a job's field that has a name, the one nearest to the top and first in job.cue; ""
// where there is none.
func elsewhere(name string) string {
	type level struct {
		s    *structural.Schema
		path string
	}
	for queue := []level{{definition.Job().Field("spec").Schema, "spec"}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at.s.Kind == yamldoc.List {
			at.s = at.s.Elem
		}
		for _, f := range at.s.Fields {
			path := at.path + "." + f.Name
			if strings.EqualFold(f.Name, name) {
				return path
			}
			queue = append(queue, level{f.Schema, path})
		}
	}
	return ""
}
