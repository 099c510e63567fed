// Package config holds the configuration that tegen-scheduler has by default, as the text of a
// KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1). The scheduler and the generator of its manifests both
// read it from here, so neither can know a profile that the other does not. It imports nothing of Kubernetes, so that a
// small program may read it.
package config

import (
	_ "embed"
	"strings"
)

// Namespace is where the scheduler runs and keeps its Lease unless told otherwise; it stands in the text too.
const Namespace = "tegen-system"

//go:embed default.yaml
var text string

// Default is the configuration of a scheduler that keeps its Lease in a namespace, comments included.
func Default(namespace string) string {
	const field = "\n  resourceNamespace: "
	return strings.Replace(text, field+Namespace+"\n", field+namespace+"\n", 1)
}
