package krm

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/names"
)

// environmentAmong is the name that the configured Environment has among items, and whether it is there. kustomize's
// namePrefix and nameSuffix rename the Environment and not the configuration, so without one of that very name the only
// one whose name contains it counts.
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
		case strings.Contains(name(n), c.environment):
			renamed = append(renamed, name(n))
		}
	}
	if len(renamed) == 1 {
		return renamed[0], true
	}
	return c.environment, false
}
