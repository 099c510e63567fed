package generators

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// metricsPort is the name of the container port that tells of a worker.
const metricsPort = "metrics"

// metrics has Prometheus ask each worker by itself: behind a Service it would ask any of them.
func metrics(j *job.Job) []runtime.Object {
	m := j.Spec.Metrics
	if m == nil || !m.PodMonitor {
		return nil
	}
	at := apis.PodMetricsEndpoint{Port: metricsPort, Path: cmp.Or(m.Path, "/metrics")}
	if m.Interval != nil {
		at.Interval = m.Interval.Duration.String()
	}
	return []runtime.Object{
		podMonitor(meta(j, workerName(j), componentWorker), selector(j, componentWorker), at),
	}
}
