package controllers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/slice"
)

const (
	root = "../../.."
	// atOnce is how many fixtures are in the cluster at a time. Most of a test's time is waiting for controllers, so
	// this is more than the machine has cores.
	atOnce = 8
)

// overlays that every fixture is rendered with; base is none.
var overlays = []string{"base", "kind", "eks"}

// TestControllers has one cluster for all that it holds. A single fixture runs with
// -run 'TestControllers/Plan/minimal'.
func TestControllers(t *testing.T) {
	if os.Getenv("TEGEN_E2E") != "1" {
		t.Skip("starts a control plane: set TEGEN_E2E=1, as make e2e does")
	}
	fixtures, foreign := load(t)
	t.Logf("%d fixtures with %d overlays have pods of core controllers; %d have pods of others: %s",
		len(fixtures), len(overlays), len(foreign), strings.Join(foreign, ", "))
	w := newWorld(t, fixtures)

	t.Run("Plan", func(t *testing.T) {
		var all counts
		each(t, fixtures, func(t *testing.T, f *fixture) { all.add(w.testPlan(t, f)) })
		w.checkNothingLeft(t, &all)
		t.Logf("in all: %s", &all)
	})
	t.Run("Suspend", func(t *testing.T) {
		var all counts
		each(t, shapes(fixtures), func(t *testing.T, f *fixture) { all.add(w.testSuspend(t, f)) })
		w.checkNothingLeft(t, &all)
		t.Logf("in all: %s", &all)
	})
	t.Run("Scale", func(t *testing.T) {
		var all counts
		each(t, elastic(fixtures), func(t *testing.T, f *fixture) { all.add(w.testScale(t, f)) })
		w.checkNothingLeft(t, &all)
		t.Logf("in all: %s", &all)
	})
	t.Run("Fit", w.testFit)
}

// each runs a subtest for every fixture, several at once. Subtests that call Parallel would be held to the number of
// cores.
func each(t *testing.T, fixtures []*fixture, test func(*testing.T, *fixture)) {
	if len(fixtures) == 0 {
		t.Fatal("no fixture to test: nothing was compared")
	}
	todo := make(chan *fixture, len(fixtures))
	for i, f := range fixtures {
		if slice.Has(t, i) {
			todo <- f
		}
	}
	close(todo)
	t.Logf("%d of %d fixtures are tested", len(todo), len(fixtures))
	var wg sync.WaitGroup
	for range min(atOnce, len(fixtures)) {
		wg.Go(func() {
			for f := range todo {
				t.Run(f.name, func(t *testing.T) { test(t, f) })
			}
		})
	}
	wg.Wait()
}

// counts say what was compared.
type counts struct {
	mu    sync.Mutex
	names []string
	of    map[string]int
}

func (c *counts) count(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	if !slices.Contains(c.names, what) {
		c.names = append(c.names, what)
	}
	c.of[what] += n
}

func (c *counts) add(other *counts) {
	for _, what := range other.names {
		c.count(what, other.of[what])
	}
}

func (c *counts) String() string {
	var words []string
	for _, what := range c.names {
		words = append(words, fmt.Sprintf("%d %s", c.of[what], what))
	}
	return strings.Join(words, ", ")
}

// newWorld starts the cluster with nodes for whatever the fixtures ask for.
func newWorld(t *testing.T, fixtures []*fixture) *world {
	c := cluster.Start(t, cluster.Options{
		// For the gangs that Kubernetes has itself, in the words of this release.
		Gates: map[string]bool{"GenericWorkload": true, "GangScheduling": true},
		APIs:  []string{"scheduling.k8s.io/v1alpha2"},
		// Another configuration of it is started below.
		NoScheduler: true,
		Args: map[string][]string{"kube-controller-manager": {
			// Each of these writes an object, or its status, for every pod that comes, is ready or goes, and nothing
			// here looks at it: a fourth of all writes. DNS reads EndpointSlices, whose controller is another.
			"--controllers=*,-ttl-controller,-endpoints-controller," +
				"-endpointslice-mirroring-controller,-disruption-controller",
			"--endpointslice-updates-batch-period=200ms", // one write for pods that come together
		}},
	})
	w := &world{c: c, outlive: map[string][]string{}}
	w.discover(t)
	w.runScheduler(t, fixtures)
	w.bindClaims(t)
	w.addNodes(t, fixtures)
	return w
}

func fixtureFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(root + "/fixtures/valid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures/valid: %v", err)
	}
	return files
}
