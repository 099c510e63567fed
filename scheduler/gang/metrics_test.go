package gang

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// TestMetrics: each scheduler counts its own gangs, in the registry that it was given.
func TestMetrics(t *testing.T) {
	first, second := metrics.NewKubeRegistry(), metrics.NewKubeRegistry()
	m := newMetrics(first, func() gangcache.Stats { return gangcache.Stats{Waiting: 2, Placed: 1} })
	newMetrics(second, func() gangcache.Stats { return gangcache.Stats{} })
	m.admissions.Inc()
	m.refusals.Add(3)
	m.admissionSeconds.Observe(1)
	want := map[string]float64{
		"tegen_gangs waiting": 2, "tegen_gangs placed": 1, "tegen_gangs broken": 0,
		"tegen_gangs_admitted_total": 1, "tegen_gang_refusals_total": 3, "tegen_gang_admission_duration_seconds": 1,
	}
	if diff := cmp.Diff(want, gathered(t, first)); diff != "" {
		t.Errorf("the first registry (-want +got):\n%s", diff)
	}
	for name, n := range gathered(t, second) {
		if n != 0 {
			t.Errorf("the second registry has %s %v, which the first one's gangs caused", name, n)
		}
	}
}

// gathered are the values of a registry by name and label; of a histogram how much it has observed.
func gathered(t *testing.T, registry metrics.KubeRegistry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}
