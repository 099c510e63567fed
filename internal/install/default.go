package install

import (
	_ "embed"
	"strings"
)

// Namespace is where tegen-scheduler runs and keeps its Lease unless an option names another one.
const Namespace = "tegen-system"

// defaultText is scheduler/config/default.yaml. The scheduler is another module, so this is a copy, and a test of the
// repository compares the two.
//
//go:embed scheduler.yaml
var defaultText string

// defaultConfig is the configuration of a scheduler that keeps its Lease in a namespace, with its comments.
func defaultConfig(namespace string) string {
	const field = "\n  resourceNamespace: "
	return strings.Replace(defaultText, field+Namespace+"\n", field+namespace+"\n", 1)
}
