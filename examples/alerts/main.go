// Command tegen is tegen with one more generator, alerts.
package main

import (
	"github.com/tegen-dev/tegen"
	"github.com/tegen-dev/tegen/generators"
)

func main() {
	tegen.Main(generators.Generator{
		Name: "alerts", Doc: "PrometheusRule that alerts about missing workers, for jobs with a PodMonitor",
		Needs: "metrics: {port: 9400, podMonitor: true}", Generate: alerts,
	})
}
