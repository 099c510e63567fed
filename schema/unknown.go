package schema

import (
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// newChecker is a checker whose hints know the whole of a job.
func newChecker() *structural.Checker { return &structural.Checker{Unknown: meant} }

// meant ends the message about an unknown field with what could have been meant.
func meant(path, name string, known []string) string {
	at, here := inJob(path)
	if other := standsAt[at]; other != "" {
		return "; it stands at " + here.Replace(other)
	}
	if hint := structural.Suggest(name, known); hint != "" {
		return hint
	}
	if other := elsewhere(name); other != "" {
		return "; it stands at " + here.Replace(other)
	}
	if len(known) <= 12 {
		return "; known here: " + strings.Join(known, ", ")
	}
	return "; 'tegen explain spec' lists the fields"
}

// inJob is where a job has what an environment says to all jobs, and the words for that as the environment has it.
func inJob(path string) (string, *strings.Replacer) {
	for _, part := range []string{"spec.defaults", "spec.overrides"} {
		if field, ok := strings.CutPrefix(path, part+"."); ok {
			return "spec." + field, strings.NewReplacer("spec.", part+".", "spec itself", part+" itself")
		}
	}
	return path, strings.NewReplacer()
}

// standsAt is where a job says what somebody may look for at another place. The first field of that name would mislead.
var standsAt = map[string]string{
	"spec.roles.worker":     "spec itself: image, workingDir, resources, placement, podTemplate",
	"spec.servers.cpu":      "spec.roles.server.resources, and the scheduler's at spec.roles.scheduler.resources",
	"spec.servers.memory":   "spec.roles.server.resources, and the scheduler's at spec.roles.scheduler.resources",
	"spec.servers.image":    "spec.roles.server, and the scheduler's at spec.roles.scheduler",
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
	for queue := []level{{jobSchema().Field("spec").Schema, "spec"}}; len(queue) > 0; queue = queue[1:] {
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
