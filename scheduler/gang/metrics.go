package gang

import (
	"k8s.io/component-base/metrics"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// Registry is where the plugins register their metrics. A process that serves them has one; each test has its own.
type Registry interface {
	MustRegister(...metrics.Registerable)
	CustomMustRegister(...metrics.StableCollector)
}

// gangMetrics is what the scheduler counts of gangs, beside what kube-scheduler counts of pods.
type gangMetrics struct {
	admissions, refusals *metrics.Counter
	admissionSeconds     *metrics.Histogram
}

func newMetrics(registry Registry, stats func() gangcache.Stats) *gangMetrics {
	m := &gangMetrics{
		admissions: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: "tegen", Name: "gangs_admitted_total", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that reached their minimum for the first time.",
		}),
		refusals: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: "tegen", Name: "gang_refusals_total", StabilityLevel: metrics.ALPHA,
			Help: "Attempts that found no room for a gang.",
		}),
		admissionSeconds: metrics.NewHistogram(&metrics.HistogramOpts{
			Subsystem: "tegen", Name: "gang_admission_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help:    "From a gang having the pods it needs to their places being reserved.",
			Buckets: metrics.ExponentialBuckets(0.01, 4, 10), // 10 ms to 44 minutes
		}),
	}
	registry.MustRegister(m.admissions, m.refusals, m.admissionSeconds)
	registry.CustomMustRegister(&collector{stats: stats, gangs: metrics.NewDesc("tegen_gangs",
		"Gangs by state: waiting for room or pods, placed, or broken by what they declare.",
		[]string{"state"}, nil, metrics.ALPHA, "")})
	return m
}

// collector counts gangs when somebody asks. The registry takes only what embeds its base.
type collector struct {
	metrics.BaseStableCollector
	stats func() gangcache.Stats
	gangs *metrics.Desc
}

// DescribeWithStability is asked for by the registry.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- c.gangs }

// CollectWithStability counts.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	s := c.stats()
	for state, n := range map[string]int{"waiting": s.Waiting, "placed": s.Placed, "broken": s.Broken} {
		ch <- metrics.NewLazyConstMetric(c.gangs, metrics.GaugeValue, float64(n), state)
	}
}
