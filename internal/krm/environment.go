package krm

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/names"
)

// environmentAmong is the name that the configured Environment has among items, and whether it is there. kustomize's
// namePrefix and nameSuffix rename the Environment and the jobs, and not the configuration. So without one of that very
// name the only one counts whose name has it between a prefix and a suffix that all jobs have too.
func (c config) environmentAmong(items []*yaml.Node) (string, bool) {
	if c.environment == "" {
		return "", true
	}
	var renamed []string
	for _, n := range items {
		switch {
		case !isInput(n) || kind(n) != names.KindEnvironment:
		case name(n) == c.environment:
			return c.environment, true
		default:
			prefix, suffix, found := strings.Cut(name(n), c.environment)
			if found && !slices.ContainsFunc(items, func(job *yaml.Node) bool {
				return isInput(job) && kind(job) == names.KindTrainingJob &&
					(!strings.HasPrefix(name(job), prefix) || !strings.HasSuffix(name(job), suffix))
			}) {
				renamed = append(renamed, name(n))
			}
		}
	}
	if len(renamed) == 1 {
		return renamed[0], true
	}
	return c.environment, false
}
