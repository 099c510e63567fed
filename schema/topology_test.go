package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// racks is an Environment with two levels of its own.
const racks = `apiVersion: tegen.dev/v1alpha1
kind: Environment
metadata: {name: racks}
spec:
  topology:
    - {name: zone, label: example.com/hall}
    - {name: rack, label: example.com/rack, tier: 1}
`

func gathered(scheduler, level string) string {
	return small("j") + "  gang: {scheduler: " + scheduler + ", topology: {level: " + level + "}}\n"
}

// TestTopologyLevel: an Environment's levels go before those that every cluster has, by their names and their labels.
func TestTopologyLevel(t *testing.T) {
	for _, c := range []struct{ environment, scheduler, level, label, layer string }{
		{"", "tegen", "zone", "topology.kubernetes.io/zone", ""},
		{"", "tegen", "node", "kubernetes.io/hostname", "NodeTopologyLayer"},
		{"", "tegen", "example.com/rack", "example.com/rack", ""},
		{"", "koordinator", "SpineLayer", "", "SpineLayer"},
		{racks, "tegen", "zone", "example.com/hall", "zone"},
		{racks, "koordinator", "rack", "example.com/rack", "rack"},
		{racks, "koordinator", "example.com/rack", "example.com/rack", "rack"},
		{racks, "koordinator", "node", "kubernetes.io/hostname", "NodeTopologyLayer"},
	} {
		sources := []string{gathered(c.scheduler, c.level)}
		if c.environment != "" {
			sources = append(sources, c.environment)
		}
		jobs, errs := load(t, sources...)
		if len(errs) > 0 {
			t.Errorf("%s of %s: %v", c.level, c.scheduler, errs)
			continue
		}
		if got := jobs[0].TopologyLevel().Label; got != c.label {
			t.Errorf("%s of %s is label %q, want %q", c.level, c.scheduler, got, c.label)
		}
		if got := jobs[0].TopologyLayer(); got != c.layer {
			t.Errorf("%s of %s is layer %q, want %q", c.level, c.scheduler, got, c.layer)
		}
	}
}

// TestTopologyDropped: where nothing is said of gangs, nothing is said of their topology, whatever level it names.
func TestTopologyDropped(t *testing.T) {
	anywhere := strings.Replace(racks, "spec:", "spec:\n  anywhere: true", 1)
	jobs, errs := load(t, gathered("volcano", "nobody-knows"), anywhere)
	if len(errs) > 0 || jobs[0].Spec.Topology() != nil {
		t.Errorf("topology %v: %v", jobs, errs)
	}
}

// TestTopologyOfSlices: each of the slices that workers are divided into has a domain, unless somebody says another
// number; JobSet's controller sees to it by itself.
func TestTopologyOfSlices(t *testing.T) {
	for more, want := range map[string]int32{
		"scheduler: kueue, queue: q, topology: {level: zone}":           4,
		"scheduler: kueue, queue: q, topology: {level: zone, slice: 2}": 2,
		"scheduler: none, topology: {level: zone}":                      0,
	} {
		text := strings.Replace(small("j"), "{replicas: 2}", "{replicas: 8, slices: 2}\n  target: jobset", 1)
		jobs, errs := load(t, text+"  gang: {"+more+"}\n")
		if len(errs) > 0 {
			t.Errorf("%s: %v", more, errs)
		} else if got := jobs[0].Spec.Topology().Slice; got != want {
			t.Errorf("%s: slices of %d, want %d", more, got, want)
		}
	}
}

// TestLauncherTopologyNote: who has Koordinator place an MPIJob by topology is told that its launcher is placed there
// too; no other target has a launcher, and other schedulers leave it out.
func TestLauncherTopologyNote(t *testing.T) {
	for spec, want := range map[string]bool{
		"framework: mpi\n  target: mpijob\n  gang: {scheduler: koordinator, topology: {level: node}}\n":     true,
		"framework: horovod\n  target: mpijob\n  gang: {scheduler: koordinator, topology: {level: node}}\n": true,
		"framework: mpi\n  target: mpijob\n  gang: {scheduler: tegen, topology: {level: node}}\n":           false,
		"framework: mpi\n  target: mpijob\n  gang: {scheduler: koordinator}\n":                              false,
		"framework: mpi\n  gang: {scheduler: koordinator, topology: {level: node}}\n":                       false,
	} {
		jobs, errs := load(t, strings.Replace(small("a"), "workers:", spec+"  workers:", 1))
		if errs != nil {
			t.Fatalf("%s: %v", spec, errs)
		}
		if got := slices.ContainsFunc(note.Of(jobs[0]),
			func(n string) bool { return strings.Contains(n, "roles.launcher") }); got != want {
			t.Errorf("%s: note %t, want %t", spec, got, want)
		}
	}
}
