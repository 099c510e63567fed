package generators_test

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestGoldenOverview compares the picture of README.md with the code: it shows every generator of the registry and the
// kinds that it emits for the fixtures. Kinds of README's own job come first.
func TestGoldenOverview(t *testing.T) {
	kinds := map[string]map[string]int{} // by generator, then by kind: how often the fixtures have it
	count := func(j *job.Job, weight int) {
		for _, c := range generators.Generate(j) {
			if kinds[c.Name] == nil {
				kinds[c.Name] = map[string]int{}
			}
			for _, o := range c.Objects {
				kinds[c.Name][overviewKind(o)] += weight
			}
		}
	}
	eachJob(t, func(_ *testing.T, j *job.Job, _ []runtime.Object) { count(j, 1) })
	const first = 1_000_000
	for _, j := range loadAll(t, source(t, "../fixtures/valid/readme.yaml")) {
		count(j, first)
		if !strings.Contains(yamlOf(objects(j)), "gang.scheduling.koordinator.sh/min-available") {
			t.Error("README.md's job renders no gang annotations")
		}
	}
	kinds["gang"]["annotations"] = first
	golden.Open(t, "../docs").Compare(t, "overview.svg", []byte(overview(kinds)))
}

// overviewKind is the kind of an object. It names a suspended Job and a headless Service as such.
func overviewKind(o runtime.Object) string {
	switch o := o.(type) {
	case *batchv1.Job:
		if o.Spec.Suspend != nil && *o.Spec.Suspend {
			return "suspended Job"
		}
	case *corev1.Service:
		if o.Spec.ClusterIP == corev1.ClusterIPNone {
			return "headless Service"
		}
	}
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name() // of Kubernetes' own types, whose kind the printer fills in
}

// overviewHead has colours for light and dark pages, as the pictures of tegen graph have.
const overviewHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">
<title>CUE validates a job, KRM generators render it, Argo CD or Flux applies it</title>
<style>
 svg { font: 13px sans-serif; } text { fill: #1f2328; } .code { font: 600 12px monospace; }
 .head { font-weight: 600; font-size: 14px; } .small { font-size: 11px; fill: #59636e; }
 rect { fill: #f6f8fa; stroke: #818b98; rx: 6px; } path { fill: none; stroke: #2f81f7; stroke-width: 1.6; }
 .companion { stroke-dasharray: 5 3; } marker path { fill: #2f81f7; stroke: none; }
 @media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .small { fill: #9198a1; } rect { fill: #151b23; stroke: #7d8590; }
 }
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" ` +
	`orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
`

// picture is an SVG being written. Lengths are in pixels.
type picture struct{ strings.Builder }

func (p *picture) text(class string, x, y int, s string) {
	fmt.Fprintf(&p.Builder, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(s))
}

// box draws a box with a name and, below it, what it contains.
func (p *picture) box(class string, x, y, width int, name, below string) {
	fmt.Fprintf(&p.Builder, `<rect class="%s" x="%d" y="%d" width="%d" height="42"/>`+"\n", class, x, y, width)
	p.text("code", x+10, y+18, name)
	p.text("small", x+10, y+34, below)
}

func (p *picture) column(x int, name, below string) {
	p.text("head", x, 20, name)
	p.text("small", x, 36, below)
}

func (p *picture) arrow(x, y, to int, label string) {
	fmt.Fprintf(&p.Builder, `<path marker-end="url(#arrow)" d="M%d %dH%d"/>`+"\n", x, y, to)
	p.text("small", x, y-8, label)
}

// overview draws four columns, from left to right: what goes in, what validates it, what renders it, what applies it.
func overview(kinds map[string]map[string]int) string {
	const (
		top, row, perRow                 = 48, 50, 3
		input, cue, grid, cell, cluster  = 12, 236, 452, 168, 1016
		inputWidth, cueWidth, lastColumn = 150, 150, 172
	)
	rows := (len(generators.Set{}.All()) + perRow - 1) / perRow
	middle := top + (rows*row-8)/2
	var p picture
	fmt.Fprintf(&p.Builder, overviewHead, cluster+lastColumn+12, top+rows*row+6)
	p.column(input, "Input", "YAML, in git")
	p.box("", input, middle-50, inputWidth, "job.yaml", "TrainingJob: what runs")
	p.box("", input, middle+8, inputWidth, "environment.yaml", "overlay: where it runs")
	p.arrow(input+inputWidth+4, middle, cue-6, "tegen vet")
	p.column(cue, "CUE schema", "validates, sets defaults")
	p.box("", cue, middle-50, cueWidth, "job.cue", "fields, types, limits")
	p.box("", cue, middle+8, cueWidth, "environment.cue", "defaults, caps")
	p.arrow(cue+cueWidth+4, middle, grid-6, "tegen fn")
	p.column(grid, "KRM function generators", "tegen render, kustomize, kpt")
	for i, g := range (generators.Set{}).All() {
		p.box("", grid+i%perRow*(cell+8), top+i/perRow*row, cell, g.Name, shortList(kinds[g.Name]))
	}
	p.arrow(grid+perRow*(cell+8)-4, middle, cluster-6, "git")
	p.column(cluster, "Cluster", "reconciled from git")
	p.box("", cluster, middle-104, lastColumn, "Argo CD", "an Application a job")
	p.box("", cluster, middle-50, lastColumn, "Flux", "a Kustomization a job")
	p.text("small", cluster, middle+16, "companion images, optional:")
	p.box("companion", cluster, middle+26, lastColumn, "tegen-rendezvous", "workers find each other")
	p.box("companion", cluster, middle+80, lastColumn, "tegen-scheduler", "random, gang placement")
	return p.String() + "</svg>\n"
}

// shortList names the most frequent kinds that fit into a box.
func shortList(counts map[string]int) string {
	const fits = 27
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], len(a)-len(b), cmp.Compare(a, b))
	})
	list := ""
	for i, kind := range kinds {
		next := strings.TrimPrefix(list+", "+kind, ", ")
		if i > 0 && len(next) > fits {
			return list + ", …"
		}
		list = next
	}
	return list
}
