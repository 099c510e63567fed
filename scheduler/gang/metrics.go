package gang

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// What the scheduler counts of gangs, beside what kube-scheduler counts of pods.
var (
	admissions = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "tegen", Name: "gangs_admitted_total", StabilityLevel: metrics.ALPHA,
		Help: "Gangs that reached their minimum for the first time.",
	})
	refusals = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "tegen", Name: "gang_refusals_total", StabilityLevel: metrics.ALPHA,
		Help: "Attempts that found no room for a gang.",
	})
	admissionSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: "tegen", Name: "gang_admission_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "From a gang having the pods it needs to their places being reserved.",
		Buckets: metrics.ExponentialBuckets(0.01, 4, 10), // 10 ms to 44 minutes
	})
	gangs = metrics.NewDesc("tegen_gangs", "Gangs by state: waiting for room or pods, placed, or broken by what they declare.",
		[]string{"state"}, nil, metrics.ALPHA, "")
)

// collector counts gangs when somebody asks.
type collector struct {
	metrics.BaseStableCollector
	stats func() gangcache.Stats
}

// DescribeWithStability is asked for by the registry.
func (*collector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- gangs }

// CollectWithStability counts.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	s := c.stats()
	for state, n := range map[string]int{"waiting": s.Waiting, "placed": s.Placed, "broken": s.Broken} {
		ch <- metrics.NewLazyConstMetric(gangs, metrics.GaugeValue, float64(n), state)
	}
}

var registered sync.Once

// register adds the metrics to those that the scheduler serves; a process has one registry.
func register(stats func() gangcache.Stats) {
	registered.Do(func() {
		legacyregistry.MustRegister(admissions, refusals, admissionSeconds)
		legacyregistry.CustomMustRegister(&collector{stats: stats})
	})
}

// election answers whether this process does the scheduling: it does where there is no election, and once it has won it;
// a scheduler that loses one exits. kube-scheduler starts its plugins before it is elected and never tells them, but it
// serves the fact as a metric, which costs some milliseconds to read.
type election struct {
	mu    sync.Mutex
	won   bool
	asked time.Time
}

func (e *election) leads() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.won && time.Since(e.asked) > time.Second {
		e.won, e.asked = elected(), time.Now()
	}
	return e.won
}

func elected() bool {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return true // two may say a thing, rather than none
	}
	for _, f := range families {
		if f.GetName() != "leader_election_master_status" {
			continue
		}
		for _, m := range f.GetMetric() {
			return m.GetGauge().GetValue() > 0
		}
	}
	return true
}
