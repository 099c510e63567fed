// Stand-ins for values of the same names in containers.go: delete this file once the rules of that file are converted.

package rule

import (
	"encoding/json"
	"fmt"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

var (
	// workerPatch is that of the workers alone.
	workerPatch = part.OfSpec("podTemplate", func(s *job.Spec) (p podPatch) {
		if json.Unmarshal(s.PodTemplate, &p) != nil {
			return podPatch{}
		}
		return p
	})
	// variables are the names of all variables that an author gives training pods, by the paths of these names.
	variables = part.OfSpec("env podTemplate roles groups", func(s *job.Spec) map[string]string {
		all := map[string]string{}
		for i, e := range s.Env {
			all[fmt.Sprintf("spec.env[%d].name", i)] = e.Name
		}
		for at, name := range patchedEnv(patches.Of(&job.Job{Spec: *s})) {
			all[at+".name"] = name
		}
		return all
	})
)
